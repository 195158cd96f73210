"""`git coord contention`: figures that can be counted by hand, and a count that follows the rules."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.codec import Record, loads
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import all_claims
from gitcoord.claims.requests import all_requests
from gitcoord.claims.take import Take
from gitcoord.journal.contention import Contention, help_for, spread
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import with_refused
from gitcoord.sessions.events.stop import Stop
from gitcoord.simulation.run import Simulation
from tests.cli.support import World
from tests.cli.test_json import holds
from tests.ledger.test_golden import history
from tests.ledger.world import World as Rules
from tests.ledger.world import paths
from tests.tasks.test_task_walk import walk_tasks


def counted(log: list[bytes], **how: Any) -> Contention:
    found = Contention(**{"case": False, **how})
    for message in log:
        found.read(loads(message.split(b"\n\n")[1]))
    return found


def test_the_spread_of_some_times() -> None:
    assert spread([]) == {"count": 0, "total": 0, "p50": 0, "p95": 0, "longest": 0}
    assert spread([5]) == {"count": 1, "total": 5, "p50": 5, "p95": 5, "longest": 5}
    assert spread([4, 1, 3, 2]) == {"count": 4, "total": 10, "p50": 2, "p95": 4, "longest": 4}
    assert spread(list(range(100, 0, -1))) == {"count": 100, "total": 5050, "p50": 50, "p95": 95, "longest": 100}


class Script:
    """A ledger that is made a step at a time, with the seconds between."""

    def __init__(self) -> None:
        self.rules = Rules()

    def after(self, seconds: int, kind: str, command: Any, refused: tuple[Record, ...] = ()) -> int:
        self.rules.host.advance(seconds)
        answer = self.rules.decide(kind, command)
        assert isinstance(answer, Decision), answer
        self.rules.commit(with_refused(answer, refused))
        return self.rules.host.wall()


ALICE, BOB, CAROL, DAVE = (Actor(name) for name in ("alice", "bob", "carol", "dave"))


def _history() -> tuple[Script, int]:
    """A ledger, and the time of its middle."""
    script = Script()
    after = script.after
    after(0, "claim", Take(ALICE, paths("a")))
    after(10, "wait", Wait(BOB, paths("a", "b")))
    after(5, "claim", Take(CAROL, paths("b")), ({"path": "a", "holder": "alice", "count": 2},))  # passes bob
    after(15, "release", Release(ALICE))  # held 30
    middle = after(20, "release", Release(CAROL))  # held 35; bob waited 40
    script.rules.heartbeat("bob")
    after(1, "wait", Wait(BOB, paths("a", "b")))  # confirms
    after(9, "wait", Wait(CAROL, paths("a")))
    after(10, "leave", Leave(CAROL))  # waited 10
    after(0, "wait", Wait(DAVE, paths("a")), ({"path": "a", "holder": "[rule]", "count": 7},))
    after(30, "release", Release(BOB))  # held 50; dave waited 30
    after(0, "expire", Sweep(ALICE))  # sees the grant
    after(16, "expire", Sweep(ALICE))  # dave did not confirm
    after(24, "stop", Stop(DAVE))  # granted at once after it was put back: held 24
    return script, middle


def test_figures_by_path_and_by_agent() -> None:
    script, _ = _history()
    found = counted(script.rules.log).result()
    by_path = {row.pop("path"): row for row in found["paths"]}
    by_agent = {row.pop("agent"): row for row in found["agents"]}
    assert by_path["a"] == {
        "grants": 4, "refusals": 2, "expiries": 0, "overtaken": 1, "missed": 1, "waiting": 0,
        "waits": {"count": 4, "total": 80, "p50": 10, "p95": 40, "longest": 40},
        "holds": {"count": 3, "total": 104, "p50": 30, "p95": 50, "longest": 50},
    }  # fmt: skip
    assert by_path["b"]["waits"] == spread([40]) and by_path["b"]["holds"] == spread([35, 50])
    assert by_agent["bob"]["waits"] == spread([40]) and by_agent["bob"]["overtaken"] == 1
    assert by_agent["carol"]["refusals"] == 2 and by_agent["carol"]["waits"] == spread([10])
    assert by_agent["dave"]["refusals"] == 0, "a rule's refusal is no contention"
    assert by_agent["dave"]["waits"] == spread([30, 0]) and by_agent["dave"]["missed"] == 1
    assert [row["path"] for row in found["hot"]] == ["a"]
    assert found["hot"][0]["words"] == "4 waits and 2 refusals"


def test_only_what_ended_later_counts_with_its_whole_length() -> None:
    script, middle = _history()
    found = {row["path"]: row for row in counted(script.rules.log, since=middle).result()["paths"]}
    assert found["b"]["waits"] == spread([40]) and found["b"]["holds"] == spread([35, 50])
    assert found["a"]["refusals"] == 0 and found["a"]["holds"] == spread([50, 24])
    last = len(script.rules.log)
    assert counted(script.rules.log, seq=last).events == 1


def test_an_expiry_is_counted_for_the_path_and_its_holder() -> None:
    script = Script()
    script.after(0, "claim", Take(ALICE, paths("a"), ttl=60))
    script.after(5, "wait", Wait(BOB, paths("@gpu", "a")))
    script.after(4000, "claim", Take(CAROL, paths("c")))
    script.after(0, "expire", Sweep(CAROL))
    found = counted(script.rules.log).result()
    assert {row["path"]: row["expiries"] for row in found["paths"]} == {"a": 1, "@gpu": 0, "c": 0}
    assert {row["agent"]: row["expiries"] for row in found["agents"]} == {"alice": 1, "bob": 0, "carol": 0}


def assert_same(found: Contention, state: State) -> None:
    """The claims and requests that are left are those of the rules."""
    assert {(key, agent) for key, agent in found.holds} == {
        (("@" if claim.space == "resource" else "") + claim.path, claim.agent) for claim in all_claims(state)
    }
    waits = {ticket: each.agent for requests in found.waits.values() for ticket, each in requests.items()}
    assert waits == {request.ticket: request.agent for request in all_requests(state)}


def test_the_count_follows_every_kind_of_event() -> None:
    world, _ = history()
    assert_same(counted(world.log), world.state)


@pytest.mark.parametrize("seed", range(3))
def test_the_count_follows_tasks(seed: int) -> None:
    walk = walk_tasks(seed, 250)
    found = counted(walk.world.log)
    assert_same(found, walk.world.state)
    assert not [row for row in found.result()["paths"] if row["path"].startswith("@task/")]


@pytest.mark.parametrize("seed", (0, 2, 5))
def test_the_count_follows_simulated_agents(seed: int) -> None:
    simulation = Simulation(seed, 5, 4)
    simulation.run()
    authority = simulation.authority
    assert_same(counted([authority.objects[oid].message for oid in authority.history]), authority.state)


def test_what_helps() -> None:
    split, landing, union = help_for("src/app.py", ["src/app.py", "src/b.py"])
    assert "split the file" in split and "gitcoord-claim=landing" in landing and "merge=union" in union
    assert "lanes in [land]" in help_for("@land/main", [])[0] and "split it" in help_for("@lane/src/app.py", [])[0]
    assert "not the directory" in help_for("src", ["src", "src/b.py"])[0]
    assert "git coord number" in help_for("db/0007_users.sql", [])[0]
    assert '[resource "gpu"]' in help_for("@gpu", [])[0] and "cap" in help_for("@workers/all", [])[0]


def test_a_marked_path_and_its_lane_are_one_hot_spot(world: World) -> None:
    both = ("src/list", "@lane/src/list", "@lane/free")
    world.take(*both)
    for agent in ("bob", "carol", "dave"):
        assert world.claim("--queue", *both, agent=agent).code == 3
    for agent in ("alice", "bob", "carol"):
        world.free(agent)
    found = [row["path"] for row in world.coord("contention", "--json").json["hot"]]
    assert sorted(found) == ["@lane/free", "src/list"]


def test_the_command(world: World) -> None:
    empty = world.coord("contention")
    assert (empty.code, empty.out) == (0, "nobody claimed or waited for anything in this time\n")
    world.take("src/app.py")
    for agent in ("bob", "carol", "dave"):
        assert world.claim("--queue", "src/app.py", agent=agent).code == 3
    for agent in ("alice", "bob", "carol"):
        world.free(agent)
    row = holds(world.coord("contention", "--json"), "contention")
    assert [(each["path"], each["grants"], each["waits"]["count"]) for each in row["paths"]] == [("src/app.py", 4, 3)]
    assert {each["agent"] for each in row["agents"]} == {"alice", "bob", "carol", "dave"}
    shown = world.coord("contention", "--since", "1d", "-n", "1")
    assert shown.code == 0 and "hot: src/app.py (3 waits)" in shown.out and "split the file" in shown.out
    assert len(holds(world.coord("contention", "-n", "1", "--json"), "contention")["agents"]) == 1
    assert world.coord("contention", "--since", "yesterday-ish").code == 2
    assert holds(world.coord("contention", "--since", "99999", "--json"), "contention")["paths"] == []
