"""The order of the queue: nobody waits for itself by way of the order, and grants come as in a small model of it."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.ledger.event import Event
from gitcoord.ledger.sessions import Actor
from tests.claims.test_queue_rules import holders, release, served, take, wait, waiting, world
from tests.ledger.world import World

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
