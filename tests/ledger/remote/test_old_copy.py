"""A commit or a pull that is refused by an old copy of the ledger is judged again by a new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.remote.support import Fleet, Machine

SHARED = "src/app.py gitcoord-claim\n"


@pytest.fixture
def machines(fleet: Fleet) -> list[Machine]:
    one, two = fleet.machines
    one.commit({".gitattributes": SHARED})
    one.git("push", "-q", "origin", "main")
    two.git("pull", "-q")
    found = fleet.joined()
    for machine in found:
        assert machine.run("git-coord", "install-hooks", agent="setup").code == 0
    return found


def test_what_was_released_meanwhile_is_not_refused(machines: list[Machine]) -> None:
    one, two = machines
    assert one.claim("free", agent="alice").code == 0
    assert "alice" in two.claim("list").out
    assert one.claim("release", "free", agent="alice").code == 0
    (Path(two.repo) / "free").write_text("bob's\n")
    two.git("add", "free")
    done = two.run("git", "commit", "-q", "-m", "x", agent="bob")
    assert done.code == 0, done


def test_what_is_held_still_is_refused_by_what_is_known_now(machines: list[Machine]) -> None:
    one, two = machines
    assert one.claim("free", agent="alice").code == 0
    assert "alice" in two.claim("list").out
    assert one.claim("other", agent="carol").code == 0
    (Path(two.repo) / "free").write_text("bob's\n")
    two.git("add", "free")
    done = two.run("git", "commit", "-q", "-m", "x", agent="bob")
    assert done.code == 1 and "alice holds it" in done.err and "judged by" not in done.err, done
    two.git("config", "remote.origin.url", "/nowhere")
    done = two.run("git", "commit", "-q", "-m", "x", agent="bob")
    assert done.code == 1 and "alice holds it" in done.err, done
