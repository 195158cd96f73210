"""The rules of lanes, in memory: landings that meet are never in lanes at the same time, and trunk moves in their order."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gitcoord.base.errors import CouldNotJudge, Refusal
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import Item, all_claims, turn_item
from gitcoord.claims.requests import all_requests
from gitcoord.claims.take import Take
from gitcoord.landing.events.land import Land
from gitcoord.landing.events.landing import Begin
from gitcoord.landing.model import (
    AGAIN,
    in_lanes,
    landing_queue,
    lands_before,
    lane_items,
    lasts_for_conflict,
    open_landings,
    own_turn,
    rules_of,
)
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.world import Resource
from gitcoord.views.render import since_words
from tests.ledger.world import World
from tests.server.test_retrace import served

__all__ = ["served"]

OLD = "1" * 40
TURN = turn_item("main")


@pytest.fixture
def world(served: list[str]) -> World:
    """Three lanes; each command is made again by a server before it counts."""
    world = World()
    world.resources["land/main"] = Resource(capacity=3)
    world.trunk = {OLD}
    return world


def commit(number: int) -> str:
    return f"{number:040x}"


def ask(world: World, agent: str, *changed: str) -> bool:
    """The turn with what the landing changes; gives whether it was granted."""
    items = (TURN, *lane_items(changed))
    world.must("wait", Wait(Actor(agent), items, ttl=60, expected=60, reason=f"lands {agent}"))
    return own_turn(world.state, "main", agent) is not None


def announced(world: World, agent: str, new: str, *changed: str) -> Begin:
    world.touched[new] = list(changed)
    return Begin(Actor(agent), "main", agent, new, OLD, new, "merge", [], "", ())


def moving(agent: str, new: str, **more: Any) -> Begin:
    items = ((*TURN, agent),)
    return Begin(Actor(agent), "main", agent, new, OLD, new, "merge", [], "", items)._replace(**more)


def test_landings_that_meet_wait_for_each_other_and_others_go_past(world: World) -> None:
    assert ask(world, "alice", "src/a", "b")
    assert not ask(world, "bob", "src/a"), "they meet"
    assert not ask(world, "carol", "b/c"), "a file and what is below a directory of its name meet too"
    assert ask(world, "dave", "d") and ask(world, "erin", "src/e"), "three lanes"
    assert not ask(world, "frank", "f")
    world.must("release", Release(Actor("alice")))
    assert own_turn(world.state, "main", "bob"), "the first of those that may go"
    assert {(each.agent, each.overtaken) for each in all_requests(world.state)} == {("carol", 0), ("frank", 0)}


def test_trunk_moves_in_the_order_of_the_record(world: World) -> None:
    for number, agent in enumerate(("alice", "bob", "carol")):
        assert ask(world, agent, agent)
        world.must("landing", announced(world, agent, commit(number), agent))
    world.trunk |= {commit(9), commit(0)}
    refusal = world.refused("landing", moving("bob", commit(9), together=True))
    assert refusal.code == "not-first" and "alice" in refusal.message
    assert world.refused("landing", moving("bob", commit(9))).code == "not-first", "nor where trunk moves afterwards"
    again = Take(Actor("alice"), (TURN, *lane_items(["alice"])), ttl=AGAIN, expected=AGAIN)
    world.must("claim", again)
    assert [row.agent for row in in_lanes(world.state)] == ["alice", "bob", "carol"], (
        "a turn taken again keeps its place"
    )
    seq = int(str(world.must("landing", moving("alice", commit(0))).result["seq"]))
    assert [row.agent for row in lands_before(world.state, "bob")] == ["alice"], "who moves trunk is first"
    assert world.refused("landing", moving("bob", commit(9), together=True)).code == "not-first"
    world.must("land", Land(Actor("alice"), "alice", seq))
    world.must("landing", moving("bob", commit(9), together=True))
    assert [row.agent for row in in_lanes(world.state)] == ["carol"]


def test_since_when_one_lands_is_not_since_its_turn_was_taken_again(world: World) -> None:
    def rows() -> list[tuple[str, int, bool]]:
        found: Any = landing_queue("main", all_claims(world.state), [], open_landings(world.state))["landing"]
        return [(row["agent"], row["since"], row.get("renewed", False)) for row in found]

    assert ask(world, "alice", "a") and ask(world, "bob", "b")
    began = world.host.wall()
    world.must("landing", announced(world, "alice", commit(1), "a"))
    assert rows() == [("alice", began, False), ("bob", began, False)]
    world.host.advance(40)
    for agent, changed in (("alice", "a"), ("bob", "b")):
        items = (TURN, *lane_items([changed]))
        world.must("claim", Take(Actor(agent), items, ttl=AGAIN, expected=AGAIN))
    assert rows() == [("alice", began, False), ("bob", began + 40, True)], "when bob began is on no record"
    assert [since_words({"since": 0, **more}).split()[0] for more in ({}, {"renewed": True})] == ["since", "renewed"]


def test_who_failed_or_died_keeps_nobody(world: World) -> None:
    for number, agent in enumerate(("alice", "bob", "carol")):
        assert ask(world, agent, agent)
        world.must("landing", announced(world, agent, commit(number), agent))
    world.trunk.add(commit(9))
    world.must("release", Release(Actor("alice")))  # its check failed
    world.must("expire", Sweep(Actor("carol")))
    world.host.advance(61)
    world.heartbeat("carol")
    again = Take(Actor("carol"), (TURN, *lane_items(["carol"])), ttl=AGAIN, expected=AGAIN)
    world.must("claim", again)
    world.must("expire", Sweep(Actor("carol"), only=((*TURN, "bob"),)))  # its process has died
    assert lands_before(world.state, "carol") == []
    world.must("landing", moving("carol", commit(9), together=True))
    assert open_landings(world.state) == [], "their records went with it"


def test_a_place_goes_with_its_turn(world: World) -> None:
    """An agent that failed and asks again is behind those that had a place meanwhile, although its old record is still there."""
    world.trunk.add(commit(9))
    for number, agent in enumerate(("alice", "bob")):
        assert ask(world, agent, agent)
        world.must("landing", announced(world, agent, commit(number), agent))
    world.must("release", Release(Actor("alice")))
    assert ask(world, "alice", "alice") and [row.agent for row in in_lanes(world.state)] == ["bob"]
    assert world.refused("landing", moving("alice", commit(9), together=True)).code == "not-first"
    world.must("landing", announced(world, "alice", commit(3), "alice"))
    assert [row.agent for row in in_lanes(world.state)] == ["bob", "alice"]


@pytest.mark.parametrize("seconds", [25, 60, AGAIN, 300])
def test_a_turn_that_is_kept_for_a_conflict_keeps_no_place(world: World, seconds: int) -> None:
    world.trunk.add(commit(9))
    for number, agent in enumerate(("alice", "bob", "carol")):
        assert ask(world, agent, agent)
        world.must("landing", announced(world, agent, commit(number), agent))
    lasts = lasts_for_conflict(seconds)
    kept = Take(Actor("bob"), (TURN, *lane_items(["bob"])), ttl=lasts, expected=lasts, reason="resolves")
    world.must("claim", kept)
    assert [row.agent for row in in_lanes(world.state)] == ["alice", "carol"]
    assert [row.agent for row in lands_before(world.state, "bob")] == ["alice", "carol"]
    world.must("release", Release(Actor("alice")))
    world.must("landing", moving("carol", commit(9), together=True))
    assert own_turn(world.state, "main", "bob") is not None, "it is his for resolving it"
    world.must("landing", announced(world, "bob", commit(3), "bob"))
    assert [row.agent for row in in_lanes(world.state)] == ["bob"], "he has a new place afterwards"


def test_a_place_needs_all_that_changes_and_trunk(world: World) -> None:
    assert ask(world, "alice", "a")
    refusal = world.refused("landing", announced(world, "alice", commit(1), "a", "hidden"))
    assert refusal.code == "lane" and "hidden" in refusal.message
    no_trunk = announced(world, "alice", commit(1), "a")._replace(old=commit(7))
    assert world.refused("landing", no_trunk).code == "not-landed"
    world.must("landing", announced(world, "alice", commit(1), "a"))


def test_a_landing_without_a_place_waits_for_those_that_have_one(world: World) -> None:
    """Such as one without a check, which takes the turn and lands in one step."""
    world.trunk.add(commit(9))
    assert ask(world, "alice", "a")
    world.must("landing", announced(world, "alice", commit(1), "a"))
    assert world.refused("landing", moving("bob", commit(9), takes=True, together=True)).code == "not-first"
    world.must("release", Release(Actor("alice")))
    world.must("landing", moving("bob", commit(9), takes=True, together=True))


def test_many_paths_are_claimed_by_directory() -> None:
    few = ["src/.hidden/a b", "ü"]
    assert [item.name for item in lane_items(few)] == ["lane/src/hidden/a_b", "lane/_"]
    many = [f"src/{number % 50}/{number}" for number in range(1000)]
    assert len(lane_items(many)) == 50 and Item("resource", "lane/src/49") in lane_items(many)
    assert lane_items([]) == ()
    assert len(lane_items([str(number) for number in range(500)])) == 500
    assert all(len(item.name) <= 200 for item in lane_items(["x/" * 300 + "x"]))


def test_the_setting() -> None:
    assert rules_of([("land.lanes", "4")]).lanes == 4
    for wrong in ("0", "65", "-1", "two", "٣"):
        with pytest.raises(CouldNotJudge, match=r"land\.lanes"):
            rules_of([("land.lanes", wrong)])


AGENTS = ("alice", "bob", "carol", "dave", "erin")
FILES = ("a", "b", "dir", "dir/c", "dir/d", "e")


class Play:
    """Agents that ask, announce, land, fail and die at random. After each step: those in lanes do not meet, and who moved trunk was the first of those
    that had a place."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self.changed: dict[str, tuple[str, ...]] = {}  # by agent: what its landing changes
        self.commits = 100
        self.landed = 0

    def step(self) -> None:
        agent = self.random.choice(AGENTS)
        move = self.random.choice(
            (self.ask, self.ask, self.announce, self.announce, self.land, self.land, self.fail, self.die)
        )
        before = [row.agent for row in in_lanes(self.world.state)]
        if move(agent):
            expired = [each for each in before if own_turn(self.world.state, "main", each) is None and each != agent]
            before = [each for each in before if each not in expired]  # by the claim of one that takes the turn at once
            assert before[:1] in ([], [agent]), f"{agent} landed before {before}"
            self.landed += 1
        self.check()

    def ask(self, agent: str) -> bool:
        self.world.heartbeat(agent)
        if own_turn(self.world.state, "main", agent) is None:
            changed = self.changed.setdefault(agent, tuple(self.random.sample(FILES, self.random.randint(1, 2))))
            ask(self.world, agent, *changed)
        return False

    def announce(self, agent: str) -> bool:
        if own_turn(self.world.state, "main", agent) is not None:
            self.commits += 1
            extra = (self.random.choice(FILES),) if self.random.random() < 0.5 else ()
            self.world.do(
                "landing", announced(self.world, agent, commit(self.commits), *self.changed.get(agent, ("a",)), *extra)
            )
        return False

    def land(self, agent: str) -> bool:
        self.commits += 1
        self.world.trunk.add(commit(self.commits))
        takes = self.random.random() < 0.3 and own_turn(self.world.state, "main", agent) is None
        together = self.random.random() < 0.7 or takes
        answer = self.world.do("landing", moving(agent, commit(self.commits), together=together, takes=takes))
        if isinstance(answer, Refusal):
            return False
        if not together:
            seq = int(str(answer.result["seq"]))
            self.world.must("land", Land(Actor(self.random.choice(AGENTS)), agent, seq))
        self.changed.pop(agent, None)
        self.world.do("release", Release(Actor(agent)))
        return True

    def fail(self, agent: str) -> bool:
        self.world.do("leave", Leave(Actor(agent), ()))
        self.world.do("release", Release(Actor(agent)))
        if own_turn(self.world.state, "main", agent) is None:
            self.changed.pop(agent, None)
        return False

    def die(self, agent: str) -> bool:
        """Time passes: turns are over, whoever lives."""
        self.world.do("expire", Sweep(Actor(agent)))
        self.world.host.advance(31)
        for each in AGENTS:
            self.world.heartbeat(each)
        self.world.do("expire", Sweep(Actor(agent)))
        return False

    def check(self) -> None:
        self.world.check()
        rows = [row for row in in_lanes(self.world.state) if row.announced]
        assert len(rows) <= 3
        for at, one in enumerate(rows):
            for other in rows[at + 1 :]:
                for mine in self.world.touched[one.new]:
                    for theirs in self.world.touched[other.new]:
                        meet = mine == theirs or mine.startswith(theirs + "/") or theirs.startswith(mine + "/")
                        assert not meet, f"{one.agent} and {other.agent} are in lanes with {mine} and {theirs}"


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens(world: World, seed: int) -> None:
    play = Play(world, seed)
    for _ in range(80):
        play.step()
    assert play.landed
    world.check_replay()
