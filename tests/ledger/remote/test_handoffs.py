"""Journal, handoff and start where a remote decides, with a server that makes every event again."""

from __future__ import annotations

import pytest

from tests.ledger.remote.support import Fleet
from tests.ledger.remote.team import git
from tests.races.support import long_timeout

pytestmark = [pytest.mark.race, long_timeout]
SAID = ("--state", "it parses", "--changed", "the lexer", "--remaining", "the printer", "--next", "print")


def test_work_is_handed_over_from_machine_to_machine(gated: Fleet) -> None:
    one, two = gated.joined()
    assert one.coord("task", "add", "build", "--path", "src/app.py", agent="boss").code == 0
    id = one.coord("task", "next", "--json", agent="alice").json["task"]["id"]
    assert one.claim("a", agent="alice").code == 0
    made = one.handoff("new", "--task", id, *SAID, "--json", agent="alice")
    assert made.code == 0, made
    handoff = made.json["id"]
    row = two.coord("start", "--json", agent="bob").json
    assert [entry["id"] for entry in row["handoffs"]] == [handoff] and row["copy"]["behind"] == 0
    done = two.handoff("accept", handoff, "--json", agent="bob")
    assert done.code == 0 and sorted(claim["path"] for claim in done.json["claims"]) == ["a", "src/app.py"], done
    assert one.claim("a", agent="alice").code == 1
    assert [ref for ref in gated.refs() if ref.startswith("refs/claims/")] == [
        "refs/claims/path/a/@bob",
        "refs/claims/path/src/app.py/@bob",
    ]
    assert two.coord("task", "show", id, "--json", agent="bob").json["task"]["owner"] == "bob"
    gated.assert_sound()


def test_commits_that_nobody_else_has_are_not_left_behind(gated: Fleet) -> None:
    """Once a handoff is accepted its giver cannot push them any more, so it is not accepted before they can be had."""
    one, two = gated.joined()
    assert one.claim("a", agent="alice").code == 0
    one.git("switch", "-q", "-c", "lexer")
    (one.repo / "a").write_text("half\n")
    one.git("add", "a")
    git(one, "commit", "-q", "-m", "half of it", "--trailer", "Agent: alice", agent="alice")
    tip = one.git("rev-parse", "HEAD")
    handoff = one.handoff("new", *SAID, "--json", agent="alice").json["id"]
    done = two.handoff("accept", handoff, "--json", agent="bob")
    assert done.code == 1 and done.json["error"] == "lacking-commits", done
    assert done.json["hints"][0] == "alice pushes them: git push origin lexer"
    assert [row["agent"] for row in two.claim("list", "--json", agent="bob").json["claims"]] == ["alice"]
    git(one, "push", "-q", "origin", "lexer", agent="alice")
    assert two.handoff("accept", handoff, agent="bob").code == 0
    two.git("switch", "-q", "lexer")  # as the hint says
    assert two.git("rev-parse", "HEAD") == tip
    gated.assert_sound()


def test_who_hands_over_may_be_unable_to_push(gated: Fleet) -> None:
    one, two = gated.joined()
    assert one.claim("a", agent="alice").code == 0
    one.commit({"a": "half\n"})
    handoff = one.handoff("new", *SAID, "--json", agent="alice").json["id"]
    assert two.handoff("accept", handoff, agent="bob").code == 1
    assert two.handoff("accept", handoff, "--without-commits", agent="bob").code == 0
    assert two.claim("check", "a", agent="bob").code == 0
    gated.assert_sound()


def test_one_of_two_machines_accepts(gated: Fleet) -> None:
    one, two = gated.joined()
    assert one.claim("a", agent="alice").code == 0
    handoff = one.handoff("new", *SAID, "--json", agent="alice").json["id"]
    started = [m.start("git-handoff", "accept", handoff, agent=name) for m, name in ((one, "bob"), (two, "carol"))]
    for process in started:
        process.communicate(timeout=120)
    assert sorted(process.returncode for process in started) == [0, 1]
    assert len(gated.events("accept")) == 1
    gated.assert_sound()


def test_declined_and_written_down(gated: Fleet) -> None:
    one, two = gated.joined()
    assert one.claim("a", agent="alice").code == 0
    handoff = one.handoff("new", "--to", "bob", *SAID, "--json", agent="alice").json["id"]
    assert two.handoff("decline", handoff, "--reason", "no time", agent="bob").code == 0
    assert two.coord("journal", "add", "-m", "I have no time", agent="bob").code == 0
    story = one.coord("journal", "show", "--agent", "bob", "--json").json["entries"]
    assert [entry["kind"] for entry in story] == ["handoff", "close", "journal"]
    gated.assert_sound()


def test_what_expired_is_taken_again(gated: Fleet) -> None:
    one = gated.joined()[0]
    for path in ("a", "src/app.py"):
        assert one.claim(path, "--ttl", "1s", "-m", "mine", agent="alice").code == 0
    assert one.claim("a", "--wait", "60s", "--ttl", "1h", agent="bob").code == 0
    assert one.coord("sweep", agent="bob").code == 0
    row = one.coord("start", "--json", agent="alice").json
    assert row["again"] == ["src/app.py"] and [lost["path"] for lost in row["lost"]] == ["a"]
    assert [claim["path"] for claim in row["claims"]] == ["src/app.py"]
    gated.assert_sound()
