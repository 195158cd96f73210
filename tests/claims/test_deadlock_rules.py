"""Deadlocks on the rules alone: circles over paths, directories and units, and circles that the order of the queue makes and resolves.

Each circle is told as a short history of claims, waits and releases. test_scenes.py has those of two databases, as a table.
"""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.takeover import Takeover
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.requests import all_requests
from gitcoord.claims.take import Take
from gitcoord.ledger.sessions import Actor
from tests.claims.test_queue_rules import holders, release, take, wait, waiting
from tests.ledger.world import World, paths
from tests.server.test_retrace import served

__all__ = ["served"]


@pytest.fixture
def world(served: list[str]) -> World:
    """Each command is made again by a server before it counts."""
    return World()


def refused(world: World, agent: str, *names: str, **how: Any) -> Refusal:
    refusal = world.refused("wait", Wait(Actor(agent), paths(*names), **how))
    assert refusal.code == "deadlock", refusal
    return refusal


# --- circles of claims


def test_two_readers_that_both_want_to_write(world: World) -> None:
    """Each upgrade waits for the other's read claim: the second is refused, and the first goes when the second gives way."""
    for agent in ("alice", "bob"):
        take(world, agent, "a", mode="read")
    assert wait(world, "alice", "a")["waiting"]
    refusal = refused(world, "bob", "a")
    assert "bob waits for a, alice holds a" in refusal.message and "alice waits for a, bob holds a" in refusal.message
    assert any("git claim release a" in hint for hint in refusal.hints), "the way out can be followed as it is"
    release(world, "bob", "a")
    assert {(c.agent, c.mode) for c in world.claims()} == {("alice", "write")}


def test_eight_in_a_circle(world: World) -> None:
    """Seven may wait; the eighth would close the circle, and is told of all of it."""
    for n in range(8):
        take(world, f"s{n}", f"p{n}")
    for n in range(7):
        assert wait(world, f"s{n}", f"p{n + 1}")["waiting"]
    refusal = refused(world, "s7", "p0")
    assert all(f"s{n} waits for p{(n + 1) % 8}, s{(n + 1) % 8} holds" in refusal.message for n in range(8))
    release(world, "s7")
    for n in range(6, -1, -1):
        assert ("p" + str(n + 1), f"s{n}") in holders(world)
        release(world, f"s{n}")
    assert not waiting(world)


def test_a_circle_over_a_directory_a_file_and_a_resource(world: World) -> None:
    take(world, "alice", "src")
    take(world, "bob", "@gpu", units=3)
    take(world, "carol", "doc/a.md")
    wait(world, "alice", "doc")
    wait(world, "bob", "src/deep/x")
    assert "@gpu" in refused(world, "carol", "@gpu").message


def test_one_of_several_holders_that_waits_is_enough(world: World) -> None:
    """All readers must go before a writer can: one of them that waits for the writer closes the circle."""
    for agent in ("alice", "bob", "carol"):
        take(world, agent, "a", mode="read")
    take(world, "dave", "d")
    wait(world, "bob", "d")
    refused(world, "dave", "a")


def test_a_group_that_shares_a_lock_may_grow_around_one_that_waits(world: World) -> None:
    """Readers that come later wait behind a writer or pass it, and that is no deadlock: somebody can still go on."""
    take(world, "alice", "a", mode="read")
    take(world, "bob", "b")
    wait(world, "bob", "a")
    assert wait(world, "carol", "a", mode="read"), "a reader beside a reader"
    refused(world, "alice", "b")
    release(world, "alice", "a")
    release(world, "carol", "a")
    assert ("a", "bob") in holders(world)


# --- no deadlock


@pytest.mark.parametrize("units, stuck", [(1, False), (2, True)])
def test_units_that_somebody_else_can_give_back_are_no_deadlock(world: World, units: int, stuck: bool) -> None:
    """Of three units bob, who waits for alice, has two, and carol, who waits for nobody, one."""
    take(world, "alice", "a")
    take(world, "bob", "@gpu", units=2)
    take(world, "carol", "@gpu")
    wait(world, "bob", "a")
    answer = world.do("wait", Wait(Actor("alice"), paths("@gpu"), units=units))
    assert isinstance(answer, Refusal) is stuck


def test_a_holder_that_waits_for_nothing_can_always_help(world: World) -> None:
    take(world, "alice", "a")
    take(world, "bob", "b")
    wait(world, "carol", "a", "b")
    assert wait(world, "alice", "b")["waiting"], "bob may release"
    release(world, "bob", "b")
    assert ("b", "alice") in holders(world)


def test_a_wait_that_was_withdrawn_closes_no_circle(world: World) -> None:
    take(world, "alice", "a")
    take(world, "bob", "b")
    wait(world, "bob", "a")
    world.must("leave", Leave(Actor("bob")))
    assert wait(world, "alice", "b")["waiting"]
    refused(world, "bob", "a")


def test_a_new_wait_replaces_the_one_in_which_the_agent_blocked(world: World) -> None:
    """alice's tool killed her wait for a and g. Asking for a alone, she no longer waits for bob, who waits for a."""
    take(world, "bob", "g")
    take(world, "carol", "d")
    wait(world, "alice", "a", "g")
    wait(world, "bob", "a", "d")
    assert wait(world, "alice", "a")["token"] and waiting(world) == ["bob"]


# --- circles that the order makes


def _exhaust(world: World, name: str, times: int) -> None:
    """Somebody takes this so often while others wait for it together with something else."""
    for _ in range(times):
        take(world, "passer", name)
        release(world, "passer", name)


def test_a_circle_through_the_order_alone_is_reordered(world: World) -> None:
    """bob may not be overtaken and waits for alice, who waits behind bob: alice goes first, as nobody else could."""
    take(world, "alice", "a")
    take(world, "dave", "b")
    wait(world, "bob", "a", "c")
    _exhaust(world, "c", 3)
    wait(world, "alice", "b", "c")
    assert [row["agent"] for row in release(world, "dave", "b").granted] == ["alice"]
    release(world, "alice")
    assert ("a", "bob") in holders(world) and not waiting(world)


def test_a_circle_through_the_order_over_two_agents_is_reordered(world: World) -> None:
    """bob waits for alice, she for carol, and carol waits behind bob."""
    take(world, "alice", "a")
    take(world, "carol", "k")
    take(world, "dave", "d")
    wait(world, "bob", "a", "c")
    _exhaust(world, "c", 3)
    wait(world, "alice", "k")
    wait(world, "carol", "c", "d")
    assert [row["agent"] for row in release(world, "dave", "d").granted] == ["carol"]


def test_who_holds_and_queues_without_blocking_does_not_stand_still_behind_one_that_waits_for_it(world: World) -> None:
    """alice does not block, so she is in no deadlock; but if she waits for her answer before she releases, bob waits for ever."""
    take(world, "alice", "a")
    take(world, "dave", "d")
    wait(world, "bob", "a", "c")
    wait(world, "alice", "c", "d", blocking=False)
    _exhaust(world, "c", 3)
    assert all(request.overtaken == 3 for request in all_requests(world.state))
    assert [row["agent"] for row in release(world, "dave", "d").granted] == ["alice"]
    release(world, "alice")
    assert ("c", "bob") in holders(world) and not waiting(world)


def test_who_holds_something_cannot_ask_for_more_past_one_that_waits_for_it(world: World) -> None:
    take(world, "alice", "a")
    wait(world, "bob", "a", "c")
    _exhaust(world, "c", 3)
    for blocking in (True, False):
        assert world.refused("wait", Wait(Actor("alice"), paths("c"), blocking=blocking)).code == "kept"
    assert world.refused("claim", Take(Actor("alice"), paths("c"))).code == "kept"


def _queues_for_two_and_may_not_be_overtaken(world: World) -> None:
    """bob, while dave holds one of them. A third file is erin's."""
    take(world, "dave", "a")
    take(world, "erin", "c")
    wait(world, "bob", "a", "b", blocking=False)
    _exhaust(world, "b", 3)


def test_a_request_that_would_close_a_deadlock_is_not_waited_for(world: World) -> None:
    """bob's grant would close one as soon as he waits for erin: it waits for her too, so her request goes past it, uncounted."""
    _queues_for_two_and_may_not_be_overtaken(world)
    wait(world, "erin", "b")
    granted = world.must("wait", Wait(Actor("bob"), paths("c"))).events[-1].granted
    assert [(row["agent"], row["past"]) for row in granted] == [("erin", [])]


def test_nobody_asks_for_more_past_a_request_that_would_close_a_deadlock(world: World) -> None:
    """As where bob waits for erin directly: she is refused, and does not stand still behind him."""
    _queues_for_two_and_may_not_be_overtaken(world)
    wait(world, "bob", "c")
    assert world.refused("wait", Wait(Actor("erin"), paths("b"))).code == "kept"
    assert release(world, "dave", "a").granted and release(world, "erin", "c").granted
    assert {("a", "bob"), ("b", "bob"), ("c", "bob")} == holders(world)


def test_a_takeover_lets_one_go_that_would_have_closed_a_deadlock(world: World) -> None:
    """The claim that the person takes over is as strong as it was, so the takeover frees no path; but erin, for whom bob waited, does not
    hold it any more."""
    _queues_for_two_and_may_not_be_overtaken(world)
    take(world, "gus", "d")
    wait(world, "erin", "b", "d")
    wait(world, "bob", "c")
    assert not release(world, "dave", "a").granted, "erin would wait for bob, and he for her"
    taken = world.must(
        "takeover", Takeover(Actor("ada", person=True), paths("c")[0], world.claims("erin")[0].token, "ill")
    )
    assert [row["agent"] for row in taken.events[-1].granted] == ["bob"]
    assert {("a", "bob"), ("b", "bob")} <= holders(world)


def test_a_grant_lets_one_go_for_which_its_agent_waits_elsewhere(world: World) -> None:
    """bob may not be overtaken, and keeps eve waiting. He waits for una, she for tom as soon as he is granted 'w', and he for eve."""
    take(world, "eve", "h")
    take(world, "una", "g")
    take(world, "ned", "w")
    wait(world, "bob", "g", "f")
    _exhaust(world, "f", 3)
    wait(world, "eve", "f", blocking=False)
    wait(world, "tom", "h", blocking=False)
    wait(world, "tom", "w", priority="high")
    wait(world, "una", "w")
    assert [row["agent"] for row in release(world, "ned", "w").granted] == ["tom", "eve"]


def test_a_grant_lets_one_go_for_which_the_last_waits_that_it_overtakes(world: World) -> None:
    """bob keeps eve waiting. Once una may not be overtaken either, he waits for her, and she for eve."""
    for agent, name in (("eve", "h"), ("zed", "g"), ("ned", "w")):
        take(world, agent, name)
    wait(world, "una", "g", "h", "w", "x")
    _exhaust(world, "x", 2)
    wait(world, "bob", "g", "f")
    _exhaust(world, "f", 3)
    wait(world, "eve", "f", blocking=False)
    wait(world, "tom", "w")
    assert [row["agent"] for row in release(world, "ned", "w").granted] == ["tom", "eve"]
