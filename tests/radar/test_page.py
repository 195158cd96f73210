"""Work that will conflict on the page: found beside its other work, and told to pages that are open."""

from __future__ import annotations

from typing import Any

from tests.cli.support import World
from tests.page.support import Page, serving
from tests.radar.support import commit, edit, tree


def warnings(page: Page) -> list[dict[str, Any]]:
    return [row for row in page.get("overview").json["early_warnings"] if row["kind"] == "conflict"]


def test_an_open_page_is_told(world: World) -> None:
    login, form = tree(world, "login", "alice"), tree(world, "form", "bob")
    edit(login, 10, "by alice")
    edit(form, 10, "by bob")
    with serving(world) as page:
        assert page.open().status == 200
        with page.stream() as messages:
            for _ in messages:
                if rows := warnings(page):
                    break
        assert rows[0]["subject"] == "f" and rows[0]["message"].endswith("will conflict in f line 10")
        commit(login)
        world.git("merge", "-q", "--ff-only", "login")
        world.take("src/a.py", agent="carol")
        assert warnings(page) == []
