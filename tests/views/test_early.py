"""The rules of early warnings: for each kind a case in which it is there, and those in which it is not."""

from __future__ import annotations

from gitcoord.deploy.model import FAILED, INTERRUPTED, OK, Deployed, Deploys
from gitcoord.radar.model import Conflict, Side
from gitcoord.views import early, needs
from gitcoord.views.early import Lease
from gitcoord.views.needs import Held
from tests.views.test_needs import claim, request


def test_leases_in_their_last_quarter_a_row_for_each_agent() -> None:
    leases = [Lease("alice", "a", 450, 1800), Lease("alice", "t5", 60, 1800), Lease("bob", "b", 451, 1800)]
    (row,) = early.of_leases(leases)
    assert row.message == "alice was last seen 29m ago: it loses t5 and 1 more in 1m" and row.agent == "alice"
    assert row.help == "git coord log --agent alice" and row.source == "heartbeat of alice"


def test_a_wait_that_is_longer_than_expected_until_it_needs_a_person() -> None:
    held = Held(claim(expected=600), waiters=(request(), request("carol", ticket=8, at=700)))
    assert early.of_waits([held], 600) == []
    (row,) = early.of_waits([held], 601)
    assert row.message == "bob waited 10m1s for src/a.py; alice expected 10m" and row.source == "event 7"
    assert early.of_waits([held], 1200) and not needs.of_waits([held], 1200)
    assert not early.of_waits([held], 1201) and needs.of_waits([held], 1201), "then it is among what needs somebody"
    assert (
        early.of_waits([held._replace(expired=True)], 700) == [] == early.of_waits([held._replace(is_turn=True)], 700)
    )
    assert early.of_waits([Held(claim(ttl=100), waiters=(request(),))], 150)[0].message.endswith(
        "; alice has had it since 2m30s"
    )


def test_a_copy_that_is_old() -> None:
    (row,) = early.of_old_copy("main", 2, ["a", "b"])
    assert (
        row.message == "this work tree lacks 2 commits of 'main' that changed a or 1 more"
        and row.help == "git coord sync --pull"
    )
    assert early.of_old_copy("main", 0, ["a"]) == [] == early.of_old_copy("main", 2, [])


def test_a_target_whose_last_deploy_did_not_succeed() -> None:
    good = Deployed(5, 1, "alice", "c" * 40, OK, 0, 0, 1)
    failed = Deployed(9, 2, "bob", "d" * 40, FAILED, 1, -1, 1)
    (row,) = early.of_deploys([Deploys("live", good, good), Deploys("test", failed, good)])
    assert row.message == "the last deploy to test, by bob, failed; the last good one is cccccccccccc"
    assert (row.subject, row.source, row.since) == ("@deploy/test", "event 9", 2)
    (row,) = early.of_deploys([Deploys("test", failed._replace(outcome=INTERRUPTED), None)])
    assert row.message == "the last deploy to test, by bob, was interrupted"


def test_work_that_will_conflict_a_row_for_each_pair_and_how_many_more() -> None:
    def side(agent: str) -> Side:
        return Side(agent, agent, "", "", f"refs/heads/{agent}", "c" * 40, "", "", [])

    rows = [Conflict("a b", "contents", (side("alice"), side(f"b{number}"))) for number in range(7)]
    found = early.of_conflicts(rows, 3)
    assert [row.kind for row in found] == ["conflict"] * 6
    assert found[0].message == "alice (alice) and b0 (b0) will conflict in a b" and found[0].subject == "a b"
    assert found[0].help.endswith("git claim --wait 30m 'a b'") and found[0].agent == "alice"
    assert found[-1].message == "2 more pairs of work under way and 3 more files will conflict"
    assert (found[-1].help, found[-1].subject) == ("git coord radar", "")
    assert len(early.of_conflicts(rows[:5], 0)) == 5 and early.of_conflicts([], 0) == []
