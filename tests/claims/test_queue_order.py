"""The order of the queue: nobody waits for itself by way of the order, and grants come as in a small model of it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitcoord.base.codec import Record
from gitcoord.base.errors import Refusal
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import MODES
from gitcoord.claims.requests import all_requests
from gitcoord.claims.take import Take
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.ledger.event import Decision, Event, apply, effects
from gitcoord.ledger.sessions import Actor
from gitcoord.simulation.mutants import mutated
from gitcoord.simulation.queue_invariants import Waiters
from tests.claims.test_queue_rules import holders, release, served, take, wait, waiting, world
from tests.ledger.world import World, paths

__all__ = ["served", "world"]


def hand_over(world: World, giver: str, taker: str) -> Event:
    said = {"state": "s", "changed": "c", "remaining": "r", "next": "n"}
    offered = world.must("handoff", Offer(Actor(giver), said, taker)).result
    return world.must("accept", Accept(Actor(taker), str(offered["id"]))).events[-1]


def _overtake_three_times(world: World, name: str) -> None:
    for _ in range(3):
        take(world, "carol", name)
        release(world, "carol", name)


def test_one_that_is_handed_what_its_keeper_waits_for_goes_at_once(world: World) -> None:
    """bob may not be overtaken, and waits for 'a'. Whoever is given 'a' and is kept waiting for bob would wait for itself."""
    wait(world, "bob", "a", "b")
    _overtake_three_times(world, "b")
    wait(world, "dave", "b")
    event = hand_over(world, "alice", "dave")
    assert [row["agent"] for row in event.granted] == ["dave"] and waiting(world) == ["bob"]


def test_one_that_the_handed_agent_waits_for_goes_at_once(world: World) -> None:
    """As before, by way of another: dave is given 'a' and waits for erin, who is kept waiting for bob."""
    wait(world, "bob", "a", "b")
    _overtake_three_times(world, "b")
    take(world, "erin", "e")
    wait(world, "erin", "b")
    wait(world, "dave", "e")
    assert holders(world) == {("a", "alice"), ("e", "erin")}
    event = hand_over(world, "alice", "dave")
    assert [row["agent"] for row in event.granted] == ["erin"]


def test_one_that_may_go_since_the_same_event_lets_another_go_is_not_overtaken(world: World) -> None:
    """bob is kept for kim. The grant to rob overtakes eve for the last time: kim waits for eve then, eve for amy, and amy is kept for bob."""
    take(world, "amy", "u")
    take(world, "hank", "h")
    take(world, "alice", "v", "x")
    wait(world, "eve", "u", "v", "y", "t")
    for _ in range(2):
        take(world, "carol", "t")
        release(world, "carol", "t")
    wait(world, "kim", "h", "y", "k")
    _overtake_three_times(world, "k")
    wait(world, "bob", "x", "y", "w")
    _overtake_three_times(world, "w")
    wait(world, "rob", "v")
    wait(world, "amy", "x")
    assert [row["agent"] for row in release(world, "alice", "v", "x").granted] == ["rob", "bob"]


def test_those_that_may_not_be_overtaken_do_not_overtake_each_other(world: World) -> None:
    wait(world, "bob", "a", "b")
    take(world, "erin", "e")
    wait(world, "dave", "b", "e")
    _overtake_three_times(world, "b")
    assert not release(world, "erin", "e").granted and waiting(world) == ["bob", "dave"]
    assert [row["agent"] for row in release(world, "alice", "a").granted] == ["bob"]
    assert [row["agent"] for row in release(world, "bob").granted] == ["dave"]


class Model:
    """The order alone, for agents that either hold or wait: each request is its class and ticket, its agent, and its names."""

    def __init__(self) -> None:
        self.held: dict[str, set[str]] = {}
        self.line: list[tuple[tuple[int, int], str, set[str]]] = []
        self.passed: dict[str, int] = {}

    def ask(self, agent: str, names: set[str], priority: str, ticket: int) -> None:
        """Asked for the first time and free, it is a claim without a request: the last in the order, whatever its priority."""
        rivals = [name for _, name, wanted in self.line if wanted & names]
        if not any(names & held for held in self.held.values()) and all(self.passed[name] < 3 for name in rivals):
            for name in rivals:
                self.passed[name] += 1
            self.held[agent] = names
            return
        self.passed[agent] = 0
        self.line.append(((("high", "normal", "low").index(priority), ticket), agent, names))
        self.grant()

    def grant(self) -> list[str]:
        self.line.sort(key=lambda each: (self.passed[each[1]] < 3, each[0]))
        stay: list[tuple[tuple[int, int], str, set[str]]] = []
        granted = []
        for each in self.line:
            ahead = [name for _, name, wanted in stay if wanted & each[2]]
            if any(each[2] & names for names in self.held.values()) or any(self.passed[name] >= 3 for name in ahead):
                stay.append(each)
                continue
            for name in ahead:
                self.passed[name] += 1
            self.held[each[1]] = each[2]
            granted.append(each[1])
        self.line = stay
        return granted


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_grants_come_in_the_order_of_the_model(seed: int) -> None:
    chance, world, model = Random(seed), World(), Model()
    for _ in range(60):
        agent = chance.choice(("alice", "bob", "carol", "dave", "erin", "frank", "gina"))
        if agent in model.held:
            del model.held[agent]
            assert [row["agent"] for row in release(world, agent).granted] == model.grant()
        elif all(name != agent for _, name, _ in model.line):
            names = set(chance.choices("abcd", k=chance.randint(1, 3)))
            priority = chance.choice(("high", "normal", "normal", "low"))
            wait(world, agent, *sorted(names), priority=priority)
            model.ask(agent, names, priority, world.state.seq)
        assert holders(world) == {(name, who) for who, names in model.held.items() for name in names}


# --- any history


class Compared(World):
    """Each event is compared with the queue as the simulation has it, which shares no function with the rules."""

    def __init__(self) -> None:
        self.waiters = Waiters(_require)
        super().__init__()

    def commit(self, decision: Decision) -> None:
        state, follows = self.state, _follows(decision)
        for event in decision.events:
            changes = _as_readers(effects(state, event))
            if follows:
                self.waiters.appended(event._replace(body=_as_reader(event.body)), changes)
            state = apply(state, event)
        super().commit(decision)
        if not follows:
            self.waiters.reset(_as_readers(state.below("claims")), _as_readers(state.below("waits")))
        sessions = {record["agent"]: (record["state"], record["session"]) for record in state.below("agents").values()}
        self.waiters.settled(sessions, halted=False)


def _require(condition: bool, what: str) -> None:
    assert condition, what


def _follows(decision: Decision) -> bool:
    """The simulation has no agent that changes a mode and claims something else in one command, or claims what it waits for."""
    claims = [event for event in decision.events if event.kind == "claim"]
    own = any(row["agent"] == event.agent for event in claims for row in event.granted)
    return not own and not (claims and any(event.kind == "release" for event in decision.events))


def _as_reader(record: Any) -> Any:
    """The simulation knows no intents: to others, who intends to write is as a reader."""
    return {**record, "mode": "read"} if record and record.get("mode") == "intent" else record


def _as_readers(files: Mapping[str, Record | None]) -> dict[str, Any]:
    return {file: _as_reader(record) for file, record in files.items()}


def any_requests(seed: int) -> None:
    chance, world = Random(seed), Compared()
    agents = ("alice", "bob", "carol", "dave")
    names = ("a", "a/b", "c", "d", "@gpu")
    for _ in range(40):
        agent = Actor(chance.choice(agents))
        items = paths(*dict.fromkeys(chance.choices(names, k=chance.randint(1, 3))))
        mode = chance.choice(("write", "write", "read", "intent"))
        units = chance.randint(1, 2) if items == paths("@gpu") else 0
        step = chance.randint(0, 9)
        answer: Decision | Refusal | None = None
        if step < 5:
            priority = chance.choice(("normal", "normal", "high", "low"))
            asked = Wait(agent, items, mode, units=units, priority=priority, blocking=chance.random() < 0.7)
            answer = world.do("wait", asked)
        elif step < 6:
            answer = world.do("claim", Take(agent, items, mode, units=units))
        elif step < 9:
            world.do("release", Release(agent, items if chance.random() < 0.3 else ()))
        else:
            world.host.advance(chance.choice((1, 20, 4000)))
        if isinstance(answer, Decision) and not answer.again and "waiting" not in answer.result:
            enough = [c.item for c in world.claims(agent.agent) if MODES.index(c.mode) >= MODES.index(mode)]
            assert set(enough) >= set(items), "granted in part, or as less than was asked for"
        world.check()
        assert all(request.overtaken <= 3 for request in all_requests(world.state))
    for _ in range(12):
        for name in agents:
            world.do("release", Release(Actor(name)))
    assert not all_requests(world.state), "somebody waits for what nobody holds"
    world.check_replay()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_any_requests(seed: int) -> None:
    """The order of grants, overtakings, all or nothing, no lost wake-up, no deadlock, the bound, and the replay."""
    any_requests(seed)


@pytest.mark.parametrize(
    "name",
    ["grant-out-of-order", "classes-ignored", "overtakings-not-counted", "plain-claim-not-counted", "granted-in-part", "grant-takes-away"],
)  # fmt: skip
def test_a_fault_of_the_queue_is_caught(name: str) -> None:
    with mutated(name), pytest.raises(AssertionError):
        for seed in range(20):
            any_requests(seed)
