"""Every action of a person: shown first, done by the verb's own rules, on record as the person's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import PERSON, World
from tests.gates.support import Project
from tests.page.support import Page, acting


@pytest.fixture
def page(world: World) -> Iterator[Page]:
    with acting(world) as found:
        yield found


def _done(world: World, page: Page, action: str, subject: str = "", value: str = "") -> str:
    """Do it with a reason, which is on record as the person's; gives the event's kind."""
    done = page.do(action, subject, value, reason=f"{action} {subject} because")
    assert done.status == 200, done
    row: Any = world.coord("log", "--json", "-n", "1").json["events"][0]
    assert (row["agent"], row["event"]["reason"]) == (PERSON, f"{action} {subject} because")
    assert f"{action} {subject} because" in world.coord("log", "-n", "1").out
    return str(row["kind"])


def test_stopping(world: World, page: Page) -> None:
    world.take("src/a.py")
    planned = page.get("plan", action="kill", subject="alice").json
    assert planned["title"] == "Kill alice" and "freed: src/a.py" in planned["lines"]
    assert _done(world, page, "kill", "alice") == "kill" and not world.claims()
    assert _done(world, page, "revive", "alice") == "revive"
    assert _done(world, page, "halt") == "halt"
    assert page.get("overview").json["halted"]["by"] == PERSON
    assert _done(world, page, "resume") == "unhalt"


def test_requests_in_the_queue(world: World, page: Page) -> None:
    world.take("src/a.py")
    world.claim("take", "--queue", "src/a.py", agent="bob")
    ticket = str(page.get("overview").json["waits"][0]["ticket"])
    assert _done(world, page, "raise", ticket, "critical") == "promote"
    assert page.get("overview").json["waits"][0]["priority"] == "critical"
    assert _done(world, page, "withdraw", ticket) == "leave"
    assert page.do("withdraw", ticket).json["error"] == "no-request"


def test_tasks(world: World, page: Page) -> None:
    id = world.coord("task", "add", "Fix it", "--json").json["tasks"][0]["id"]
    assert _done(world, page, "raise", id, "high") == "revise"
    assert _done(world, page, "reassign", id, "bob") == "revise"
    world.coord("task", "take", id, agent="bob")
    planned = page.get("plan", action="reassign", subject=id, value="carol").json
    assert any("taken back from bob" in line for line in planned["lines"])
    assert _done(world, page, "reassign", id, "carol") == "revise"
    task = page.get("task", of=id).json["task"]
    assert (task["owner"], task["state"], task["priority"]) == ("carol", "assigned", "high")


def test_without_a_reason_none_is_on_record(world: World, page: Page) -> None:
    assert page.do("halt").status == 200 and page.do("resume").status == 200
    row: Any = world.coord("log", "--json", "-n", "1").json["events"][0]
    assert row["kind"] == "unhalt" and "reason" not in row["event"]


def test_approvals(tmp_path: Path) -> None:
    project = Project(tmp_path, "money/** gitcoord-guard=checkpoint\n")
    for content in ("deny", "approve"):
        assert project.try_commit({"money/x": f"{content}\n"}, "alice").code
    with acting(project.world) as page:
        ids = {page.get("approval", of=row["approval"]).json["diff"].split("+")[-1]: row["approval"] for row in page.get("overview").json["approvals"]}  # fmt: skip
        for answer, state in (("deny", "denied"), ("approve", "approved")):
            planned = page.get("plan", action=answer, subject=ids[answer]).json
            assert f"+{answer}" in planned["diff"] and "asked by alice" in planned["lines"][0]
            assert _done(project.world, page, answer, ids[answer]) == "answer"
            assert page.get("approval", of=ids[answer]).json["approval"]["state"] == state
        assert page.get("overview").json["approvals"] == []
    assert project.try_commit({"money/x": "approve\n"}, "alice").code == 0


def test_what_changed_since_it_was_shown_is_not_done(world: World, page: Page) -> None:
    world.take("src/a.py")
    asked: dict[str, object] = {"action": "kill", "subject": "alice", "value": ""}
    seal = page.get("plan", **asked).json["seal"]
    world.take("src/b.py")
    before = world.head
    assert page.post("act", {**asked, "seal": seal}).json["error"] == "changed"
    assert page.post("act", {**asked, "seal": ""}).json["error"] == "changed"
    assert page.post("act", {"action": "halt", "subject": "", "seal": seal}).json["error"] == "changed"
    assert world.head == before


def test_a_confirmation_that_is_sent_twice_is_done_once(world: World, page: Page) -> None:
    world.take("src/a.py")
    world.claim("take", "--queue", "src/a.py", agent="bob")
    ticket = str(page.get("overview").json["waits"][0]["ticket"])
    id = world.coord("task", "add", "Fix it", "--json").json["tasks"][0]["id"]
    for action, subject, value in (
        ("raise", ticket, "high"), ("withdraw", ticket, ""), ("raise", id, "high"), ("reassign", id, "carol"), ("kill", "alice", ""),
        ("revive", "alice", ""), ("halt", "", ""), ("resume", "", ""),
    ):  # fmt: skip
        asked: dict[str, object] = {"action": action, "subject": subject, "value": value}
        asked["seal"] = page.get("plan", **asked).json["seal"]
        assert page.post("act", asked).status == 200
        before = world.head
        page.post("act", asked)
        assert world.head == before, action


def test_the_rules_decide(world: World, page: Page) -> None:
    """A person whom the policy does not list as approver may not revive, from the page as from a terminal."""
    world.commit({".gitcoord/config": "[gitcoord]\n\tapprover = somebody.else\n"})
    world.take("src/a.py")
    assert page.do("kill", "alice").status == 200
    before = world.head
    done = page.do("revive", "alice")
    assert done.status == 409 and done.json["error"] == "person" and world.head == before
