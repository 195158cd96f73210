"""The rules of landing, in memory: the turn and its lease, who is passed over, records that are finished or dropped."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.requests import all_requests
from gitcoord.claims.take import Take
from gitcoord.landing.events.land import Land
from gitcoord.landing.events.landing import Begin
from gitcoord.landing.model import MAX_CHECKS, Rules, open_landings, rules_of
from gitcoord.ledger.sessions import Actor
from tests.ledger.world import World, paths
from tests.server.test_retrace import served

__all__ = ["served"]

OLD, NEW = "1" * 40, "2" * 40


@pytest.fixture
def world(served: list[str]) -> World:
    """Each command is made again by a server before it counts."""
    return World()


def turn(world: World, agent: str, *names: str) -> dict[str, Any]:
    command = Wait(Actor(agent), paths("@land/main", *names), ttl=60, expected=60, reason=f"lands {agent}")
    return dict(world.must("wait", command).result)


def holders(world: World) -> set[tuple[str, str]]:
    return {(claim.path, claim.agent) for claim in world.claims()}


def begin(agent: str, **more: Any) -> Begin:
    said = Begin(Actor(agent), "main", agent, NEW, OLD, NEW, "merge", [], "", (("resource", "land/main", agent),))
    return said._replace(**more)


def test_who_waits_for_a_path_lets_others_land_and_is_not_overtaken_by_that(world: World) -> None:
    world.must("claim", Take(Actor("holder"), paths("hot")))
    turn(world, "alice", "hot")
    for number in range(6):
        other = f"other{number}"
        turn(world, other, f"path{number}")
        assert ("land/main", other) in holders(world), "trunk does not stand still"
        world.must("release", Release(Actor(other)))
    (request,) = all_requests(world.state)
    assert (request.agent, request.overtaken) == ("alice", 0)
    turn(world, "bob", "b")
    turn(world, "carol", "c")
    world.must("release", Release(Actor("holder")))
    world.must("release", Release(Actor("bob")))
    assert ("land/main", "alice") in holders(world) and ("land/main", "carol") not in holders(world), (
        "its turn is first"
    )


def test_a_turn_is_over_although_its_agent_lives(world: World) -> None:
    turn(world, "alice", "a")
    world.must("claim", Take(Actor("alice"), paths("kept")))
    world.must("expire", Sweep(Actor("bob")))
    world.host.advance(61)
    world.heartbeat("alice")
    done = world.must("expire", Sweep(Actor("bob")))
    assert {row["path"] for row in done.events[-1].body["claims"]} == {"land/main", "a"}
    assert holders(world) == {("kept", "alice")}


def test_a_turn_that_is_taken_again_goes_on(world: World) -> None:
    turn(world, "alice", "a")
    for number in range(3):
        world.must("expire", Sweep(Actor("bob")))
        world.host.advance(40)
        again = Take(Actor("alice"), paths("@land/main", "a"), ttl=60, expected=60, reason=f"again {number}")
        world.must("claim", again)
    assert world.must("expire", Sweep(Actor("bob"))).events == []


def test_land_needs_trunk_and_is_written_once_by_anybody(world: World) -> None:
    turn(world, "alice")
    seq = int(str(world.must("landing", begin("alice")).result["seq"]))
    assert world.refused("land", Land(Actor("bob"), "alice", seq)).code == "not-landed"
    world.trunk = {NEW}
    assert world.must("land", Land(Actor("bob"), "alice", seq)).result == {"landed": True}
    assert holders(world) == set() and open_landings(world.state) == []
    assert world.must("land", Land(Actor("alice"), "alice", seq)).result == {"landed": False}


def test_all_in_one_chain(world: World) -> None:
    """Where nothing but the turn is needed: it is taken, used and given back at once, unless another has it or waits for it."""
    world.trunk = {NEW}
    done = world.must("landing", begin("alice", takes=True, together=True))
    assert [event.kind for event in done.events] == ["start", "claim", "landing", "land"]
    assert holders(world) == set() and open_landings(world.state) == []
    turn(world, "bob")
    assert world.refused("landing", begin("alice", takes=True, together=True)).code == "held"


def test_a_landing_needs_the_turn_and_drops_those_whose_turn_is_over(world: World) -> None:
    assert world.refused("landing", begin("alice")).code == "turn-over"
    turn(world, "alice")
    world.must("landing", begin("alice"))
    world.must("release", Release(Actor("alice")))
    turn(world, "bob")
    world.must("landing", begin("bob"))
    assert [landing.agent for landing in open_landings(world.state)] == ["bob"]


def test_a_claim_that_was_lost_meanwhile_stays_with_who_has_it(world: World) -> None:
    turn(world, "alice", "a")
    items = (("resource", "land/main", "alice"), ("path", "a", "alice"))
    seq = int(str(world.must("landing", begin("alice", items=items)).result["seq"]))
    world.must("release", Release(Actor("alice"), paths("a")))
    world.must("claim", Take(Actor("bob"), paths("a")))
    world.trunk = {NEW}
    world.must("land", Land(Actor("alice"), "alice", seq))
    assert holders(world) == {("a", "bob")}


def test_settings() -> None:
    pairs = [("land.check", "make"), ("land.check", "lint"), ("land.timeout", "90s"), ("land.only", "true")]
    assert rules_of([*pairs, ("other.check", "x")]) == Rules(checks=("make", "lint"), timeout=90, only=True)
    for wrong in (("land.how", "push"), ("land.timeout", "soon"), ("land.only", "perhaps")):
        with pytest.raises(CouldNotJudge, match=wrong[0]):
            rules_of([wrong])


def test_guarded_paths_are_no_patterns() -> None:
    assert rules_of([("land.guarded", "Makefile tests/run"), ("land.guarded", "app/[id]/a?")]).guarded == (
        "Makefile",
        "tests/run",
        "app/[id]/a?",
    )
    for wrong in ("tests/*", "Makefile **"):
        with pytest.raises(CouldNotJudge, match=r"land\.guarded.*name the file or the directory"):
            rules_of([("land.guarded", wrong)])


def test_no_check_is_left_out() -> None:
    most = [("land.check", str(number)) for number in range(MAX_CHECKS)]
    assert len(rules_of(most).checks) == MAX_CHECKS
    with pytest.raises(CouldNotJudge, match=r"land\.check.* 21 times"):
        rules_of([*most, ("land.check", "more")])


def test_claims_of_others_are_released_where_their_commits_land(world: World) -> None:
    world.must("claim", Take(Actor("bob"), paths("b")))
    turn(world, "alice")
    items = (("resource", "land/main", "alice"), ("path", "b", "bob"))
    with pytest.raises(UsageError, match="by 'bob'"):
        world.must("landing", begin("alice", items=items))
    world.agents, world.trunk = ["bob"], {NEW}
    world.must("landing", begin("alice", items=items, together=True))
    assert holders(world) == set()
