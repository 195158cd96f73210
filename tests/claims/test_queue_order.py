"""The order of the queue: nobody waits for itself by way of the order."""

from __future__ import annotations

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


def test_those_that_may_not_be_overtaken_do_not_overtake_each_other(world: World) -> None:
    wait(world, "bob", "a", "b")
    take(world, "erin", "e")
    wait(world, "dave", "b", "e")
    _overtake_three_times(world, "b")
    assert not release(world, "erin", "e").granted and waiting(world) == ["bob", "dave"]
    assert [row["agent"] for row in release(world, "alice", "a").granted] == ["bob"]
    assert [row["agent"] for row in release(world, "bob").granted] == ["dave"]
