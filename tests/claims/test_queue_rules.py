"""The queue for claims, on the rules alone: order, bound, grants in the event that frees, reservations, deadlocks."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal, UsageError
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.promote import Promote
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.takeover import Takeover
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import Item, file_of
from gitcoord.claims.requests import all_requests
from gitcoord.claims.take import Take
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.ledger.event import Decision, Event, Illegal, apply, decode_event, encode_event, refs_of
from gitcoord.ledger.format import format_record
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.stop import Stop
from gitcoord.sessions.events.unhalt import Unhalt
from tests.ledger.world import World, paths
from tests.server.test_retrace import judged, served

__all__ = ["served"]

ADA = Actor("ada", person=True)
FINISH = "finish and release what others wait for, then ask again: git claim release"


def wait(world: World, agent: str, *names: str, **how: Any) -> dict[str, Any]:
    result: dict[str, Any] = world.must("wait", Wait(Actor(agent), paths(*names), **how)).result
    return result


def take(world: World, agent: str, *names: str, **how: Any) -> None:
    world.must("claim", Take(Actor(agent), paths(*names), **how))


def release(world: World, agent: str, *names: str) -> Event:
    return world.must("release", Release(Actor(agent), paths(*names))).events[-1]


def waiting(world: World) -> list[str]:
    return [request.agent for request in all_requests(world.state)]


def holders(world: World) -> set[tuple[str, str]]:
    return {(claim.path, claim.agent) for claim in world.claims()}


@pytest.fixture
def world(served: list[str]) -> World:
    """alice holds 'a'. Each command is made again by a server before it counts."""
    world = World()
    take(world, "alice", "a")
    return world


def test_first_come_first_served(world: World) -> None:
    assert wait(world, "bob", "a")["position"] == 1
    second = wait(world, "carol", "a")
    assert (second["position"], second["of"], second["before"]) == (2, 2, ["bob"])
    event = release(world, "alice", "a")
    assert [row["agent"] for row in event.granted] == ["bob"] and waiting(world) == ["carol"]
    assert holders(world) == {("a", "bob")} and world.claims("bob")[0].token == event.seq
    assert [row["agent"] for row in release(world, "bob", "a").granted] == ["carol"]


def test_priorities_go_first_and_agents_may_not_ask_for_the_highest(world: World) -> None:
    wait(world, "bob", "a", priority="low")
    wait(world, "carol", "a", priority="high")
    for path in ("a", "free"):
        assert world.refused("wait", Wait(Actor("dave"), paths(path), priority="critical")).code == "priority"
    with pytest.raises(UsageError):
        world.decide("wait", Wait(Actor("dave"), paths("a"), priority="urgent"))
    assert [row["agent"] for row in release(world, "alice", "a").granted] == ["carol"]


def test_the_same_request_is_the_same_ticket_and_no_event(world: World) -> None:
    first = wait(world, "bob", "a", "b")
    again = world.must("wait", Wait(Actor("bob"), paths("b", "a")))
    assert again.result["ticket"] == first["ticket"] and not again.events
    other = wait(world, "bob", "a")
    assert other["ticket"] > first["ticket"] and len(all_requests(world.state)) == 1, "one request for one item"


def test_all_or_nothing_and_nothing_is_held_while_waiting(world: World) -> None:
    take(world, "bob", "b")
    wait(world, "carol", "a", "b")
    release(world, "alice", "a")
    assert holders(world) == {("b", "bob")}
    release(world, "bob", "b")
    assert holders(world) == {("a", "carol"), ("b", "carol")}


def test_nobody_is_overtaken_more_than_three_times(world: World) -> None:
    wait(world, "bob", "a", "b")
    for _ in range(3):
        take(world, "carol", "b")
        assert all_requests(world.state)[0].overtaken
        release(world, "carol", "b")
    refusal = world.refused("claim", Take(Actor("carol"), paths("b")))
    assert refusal.code == "kept" and "bob" in refusal.message
    wait(world, "carol", "b", priority="high")
    assert holders(world) == {("a", "alice")}
    event = release(world, "alice", "a")
    assert [row["agent"] for row in event.granted] == ["bob"]


def test_a_holder_gets_one_more_file_three_times_then_is_told_to_finish(world: World) -> None:
    wait(world, "bob", "a", "b")
    for name in ("b/1", "b/2", "b/3"):
        take(world, "alice", name)
    for refusal in (
        world.refused("claim", Take(Actor("alice"), paths("b/4"))),
        world.refused("wait", Wait(Actor("alice"), paths("b/4"))),
        world.refused("wait", Wait(Actor("alice"), paths("b/4"), blocking=False)),
    ):
        assert refusal.code == "kept" and refusal.hints == (f"{FINISH} a b/1 b/2 b/3",)
    assert world.refused("claim", Take(Actor("carol"), paths("b/4"))).hints == (), "carol may wait"
    (hint,) = world.refused("claim", Take(Actor("alice.x"), paths("b/4"))).hints
    assert hint == "finish, so that alice, whose subagent you are, can release what others wait for"
    assert world.refused("claim", Take(Actor("alicex"), paths("b/4"))).hints == ()
    take(world, "alice", "b/1", ttl=99)  # its own stays its own
    release(world, "alice")
    assert ("b", "bob") in holders(world)


def test_a_holder_is_told_to_finish_for_one_that_waits_by_way_of_another(world: World) -> None:
    take(world, "carol", "c")
    wait(world, "carol", "a")
    wait(world, "bob", "b", "c")
    for name in ("b/1", "b/2", "b/3"):
        take(world, "alice", name)
    assert world.refused("claim", Take(Actor("alice"), paths("b/4"))).hints == (f"{FINISH} b/1 b/2 b/3 a",)


def test_a_later_request_goes_past_one_that_cannot_go(world: World) -> None:
    take(world, "bob", "b")
    wait(world, "carol", "a", "b")
    wait(world, "dave", "b")
    event = release(world, "bob", "b")
    assert [(row["agent"], len(row["past"])) for row in event.granted] == [("dave", 1)]


def test_units_are_counted_together(world: World) -> None:
    take(world, "alice", "@gpu", units=2)
    wait(world, "bob", "@gpu", units=2)
    take(world, "carol", "@gpu")
    release(world, "alice", "@gpu")
    assert {c.agent for c in world.claims() if c.path == "gpu"} == {"carol", "bob"}


def test_a_reservation_is_confirmed_by_a_heartbeat(world: World) -> None:
    wait(world, "bob", "a")
    release(world, "alice", "a")
    wait(world, "carol", "a")
    assert wait(world, "bob", "a")["token"]
    world.host.advance(60)
    assert wait(world, "carol", "a")["waiting"], "a confirmed claim lives as long as its ttl"


def test_a_missed_reservation_goes_to_the_end_and_the_second_is_dropped(world: World) -> None:
    for agent in ("bob", "carol"):
        wait(world, agent, "a")
    release(world, "alice", "a")
    wait(world, "carol", "a")  # sees it
    world.host.advance(16)
    assert wait(world, "carol", "a")["token"], "carol ends the reservation and is next"
    assert waiting(world) == ["bob"] and all_requests(world.state)[0].missed == 1
    release(world, "carol", "a")
    world.refused("claim", Take(Actor("dave"), paths("a")))
    world.host.advance(16)
    take(world, "dave", "a")
    assert waiting(world) == [] and holders(world) == {("a", "dave")}


@pytest.mark.parametrize("rule", ["session over", "killed"])
def test_a_reservation_ends_at_once_where_its_session_is_over(world: World, rule: str) -> None:
    """It ended with uncommitted work, or was killed and only the tombstone is there. Nobody waits for the reserve to be over."""
    wait(world, "bob", "a")
    release(world, "alice", "a")
    assert not world.must("expire", Sweep(Actor("carol"))).events
    if rule == "killed":
        world.commit(Decision([], [world.beats["bob"]._replace(killed=world.state.seq)], {}))
    else:
        world.dirty = {"a"}
        world.must("stop", Stop(Actor("bob"), keep=True))
    event = world.must("expire", Sweep(Actor("carol"))).events[-1]
    assert [(row["path"], row["rule"]) for row in event.body["claims"]] == [("a", rule)]
    assert not world.claims() and not waiting(world), "the request does not go back into the queue"


def test_two_requests_of_one_agent_that_one_event_grants_stay_two(world: World) -> None:
    """The time of the one that blocks is over first. Each goes back into the queue as it was asked for."""
    take(world, "alice", "b")
    wait(world, "bob", "a", blocking=False)
    wait(world, "bob", "b")
    event = world.must("release", Release(Actor("alice"), paths("a", "b"))).events[-1]
    assert [(row["agent"], row["items"]) for row in event.granted] == [
        ("bob", [["path", "a"]]),
        ("bob", [["path", "b"]]),
    ]
    world.must("expire", Sweep(Actor("carol")))  # carol has seen the grants
    world.host.advance(16)
    world.must("expire", Sweep(Actor("carol")))
    assert holders(world) == {("a", "bob"), ("b", "bob")}, "nobody else waits for it"
    tokens = {claim.path: claim.token for claim in world.claims()}
    assert tokens == {"a": event.seq, "b": world.state.seq}
    world.host.advance(120)
    ended = world.must("expire", Sweep(Actor("carol"))).events[0]
    assert [row["path"] for row in ended.body["claims"]] == ["a"]
    assert [row["items"] for row in ended.granted] == [[["path", "a"]]]


def test_an_expiry_for_a_plain_claim_serves_those_who_wait_first(world: World) -> None:
    wait(world, "bob", "a")
    world.host.advance(3 * 3600)
    answer = world.must("claim", Take(Actor("carol"), paths("a")))
    assert answer.again and [row["agent"] for row in answer.events[-1].granted] == ["bob"]
    assert world.refused("claim", Take(Actor("carol"), paths("a"))).code == "held"


def test_an_expired_claim_is_ended_for_one_that_does_not_ask_and_keeps_others_waiting(world: World) -> None:
    wait(world, "bob", "a", "b")  # and never asks again
    for _ in range(3):
        take(world, "carol", "b")
        release(world, "carol", "b")
    wait(world, "carol", "b")  # kept for bob
    world.host.advance(3 * 3600)
    wait(world, "carol", "b")
    assert {("a", "bob"), ("b", "bob")} <= holders(world), "alice is gone, and bob is served"


def test_a_wait_ends_with_its_session(world: World) -> None:
    for agent in ("bob", "carol"):
        wait(world, agent, "a")
    world.must("stop", Stop(Actor("bob")))
    assert waiting(world) == ["carol"]
    world.must("kill", Kill(ADA, "carol"))
    assert waiting(world) == []


def test_leaving_and_who_may_withdraw(world: World) -> None:
    ticket = wait(world, "bob", "a")["ticket"]
    wait(world, "carol", "a", "b")
    assert world.refused("leave", Leave(Actor("dave"), ticket=ticket)).code == "person"
    world.must("leave", Leave(ADA, ticket=ticket))
    assert waiting(world) == ["carol"]
    assert world.must("leave", Leave(Actor("carol"), paths("b"))).result["left"] and waiting(world) == []
    assert not world.must("leave", Leave(Actor("carol"))).events


def test_why_a_person_did_it_is_on_record(world: World) -> None:
    """In events that take no reason otherwise; a server comes to the same event."""
    ticket = wait(world, "bob", "a")["ticket"]
    for kind, command in (
        ("promote", Promote(ADA, ticket, "high", reason="it is urgent")), ("leave", Leave(ADA, ticket=ticket, reason="not needed")),
        ("kill", Kill(ADA, "bob")), ("revive", Revive(ADA, "bob", "it was the wrong one")),
        ("halt", Halt(ADA)), ("unhalt", Unhalt(ADA, "it is out")),
    ):  # fmt: skip
        event = world.must(kind, command).events[-1]
        assert event.kind == kind and event.body.get("reason", "") == command.reason
        assert decode_event(encode_event(event)) == event


def test_nothing_is_granted_while_everything_is_halted(world: World) -> None:
    wait(world, "bob", "a")
    world.must("halt", Halt(ADA))
    assert not release(world, "alice", "a").granted
    event = world.must("unhalt", Unhalt(ADA)).events[-1]
    assert [row["agent"] for row in event.granted] == ["bob"]


def test_a_person_takes_over_before_all_who_wait(world: World) -> None:
    wait(world, "bob", "a")
    token = world.claims("alice")[0].token
    world.must("takeover", Takeover(ADA, Item("path", "a"), token, "because"))
    assert holders(world) == {("a", "ada")} and waiting(world) == ["bob"]


# --- deadlocks


def test_a_deadlock_is_refused_when_the_wait_that_closes_it_is_made(world: World) -> None:
    take(world, "bob", "b")
    wait(world, "bob", "a")
    refusal = world.refused("wait", Wait(Actor("alice"), paths("b")))
    assert refusal.code == "deadlock"
    assert "alice waits for b, bob holds b" in refusal.message and "bob waits for a, alice holds a" in refusal.message
    assert wait(world, "alice", "b", blocking=False)["waiting"], "who does not block may release"


def test_three_in_a_circle_over_directories(world: World) -> None:
    take(world, "bob", "b/x")
    take(world, "carol", "@db1")
    wait(world, "bob", "a/deep")
    wait(world, "carol", "b")
    assert world.refused("wait", Wait(Actor("alice"), paths("@db1"))).code == "deadlock"


def test_units_that_another_holder_can_give_back_are_no_deadlock(world: World) -> None:
    take(world, "bob", "@gpu", units=2)
    take(world, "carol", "@gpu")
    wait(world, "bob", "a")
    assert wait(world, "alice", "@gpu")["waiting"], "carol can still help"
    world.must("leave", Leave(Actor("alice")))
    assert world.refused("wait", Wait(Actor("alice"), paths("@gpu"), units=2)).code == "deadlock"


def test_a_handoff_that_closes_a_circle_is_refused(world: World) -> None:
    take(world, "bob", "b")
    take(world, "carol", "c")
    wait(world, "alice", "c")
    wait(world, "bob", "a")
    said = {"state": "s", "changed": "c", "remaining": "r", "next": "n"}
    offered = world.must("handoff", Offer(Actor("carol"), said, "bob", items=paths("c"))).result
    assert world.refused("accept", Accept(Actor("bob"), str(offered["id"]))).code == "deadlock"


def test_an_agent_does_not_wait_for_what_it_was_handed(world: World) -> None:
    """Else its own request would be granted in place of the claim, here as a reader instead of the writer."""
    wait(world, "bob", "a", mode="read")
    wait(world, "carol", "a", mode="read")
    said = {"state": "s", "changed": "c", "remaining": "r", "next": "n"}
    offered = world.must("handoff", Offer(Actor("alice"), said, "bob", items=paths("a"))).result
    event = world.must("accept", Accept(Actor("bob"), str(offered["id"]))).events[-1]
    assert not event.granted and waiting(world) == ["carol"]
    assert [(claim.agent, claim.mode) for claim in world.claims()] == [("bob", "write")]


def test_a_grant_takes_nothing_away(world: World) -> None:
    """alice holds a as a writer and waits for a and b as a reader: with b she has both, and stays the writer of a."""
    take(world, "bob", "b")
    wait(world, "carol", "a", mode="read")
    wait(world, "alice", "a", "b", mode="read")
    release(world, "bob", "b")
    assert {(c.path, c.agent, c.mode) for c in world.claims()} == {("a", "alice", "write"), ("b", "alice", "read")}
    assert waiting(world) == ["carol"]


def test_a_circle_through_the_order_alone_is_resolved_by_the_order(world: World) -> None:
    """bob may not be overtaken, and waits for carol, who waits for what is kept for bob: carol goes first."""
    wait(world, "bob", "a", "b", "c")
    take(world, "carol", "c")
    for _ in range(2):
        take(world, "dave", "b")
        release(world, "dave", "b")
    take(world, "erin", "x")
    assert all_requests(world.state)[0].overtaken == 3
    wait(world, "dave", "b", "x")  # kept for bob, and erin holds x
    wait(world, "carol", "x")
    assert [row["agent"] for row in release(world, "erin", "x").granted] == ["carol"]


# --- what is not believed


def test_forged_grants_are_refused_by_apply_and_by_the_server(world: World) -> None:
    wait(world, "bob", "a")
    wait(world, "carol", "a")
    answer = world.decide("release", Release(Actor("alice"), paths("a")))
    assert not isinstance(answer, Refusal)
    (event,) = answer.events
    second = next(r for r in all_requests(world.state) if r.agent == "carol")
    row = {**event.granted[0], "ticket": second.ticket, "agent": "carol"}
    jumped = event._replace(granted=(row,))
    assert apply(world.state, jumped) and isinstance(judged(world, [jumped]), Refusal), "order is the server's to see"
    for wrong in (
        {"ticket": 99},
        {"agent": "dave"},
        {"items": [["path", "z"]]},
        {"past": [77]},
        {"capacity": {"a": "x"}},
    ):
        forged = event._replace(granted=({**event.granted[0], **wrong},))
        with pytest.raises(Illegal):
            apply(world.state, forged)
        assert isinstance(judged(world, [event._replace(granted=())]), Refusal), "a grant may not be left out"


def test_a_forged_class_or_ticket_is_refused(world: World) -> None:
    answer = world.decide("wait", Wait(Actor("bob"), paths("a")))
    assert not isinstance(answer, Refusal)
    *first, event = answer.events
    for wrong in ({"priority": "critical"}, {"reserve": 9999}):
        forged = event._replace(body={**event.body, **wrong})
        assert isinstance(judged(world, [*first, forged]), Refusal), wrong
    illegal: list[dict[str, Any]] = [{"ticket": 2}, {"priority": "now"}, {"items": []}, {"units": 0}]
    for row in illegal:
        state = world.state
        for each in first:
            state = apply(state, each)
        with pytest.raises(Illegal):
            apply(state, event._replace(body={**event.body, **row}))


def test_somebody_elses_withdrawal_is_refused(world: World) -> None:
    """An agent's client that lets it withdraw another's request is stopped by the server; a ticket that is not there, by all."""
    ticket = wait(world, "bob", "a")["ticket"]
    answer = world.decide("leave", Leave(ADA, ticket=ticket))
    assert not isinstance(answer, Refusal)
    (event,) = answer.events
    forged = event._replace(agent="carol")
    assert isinstance(judged(world, [forged]), Refusal)
    assert isinstance(judged(world, [event]), Refusal), "nor for ada's name without ada"
    for wrong in ({"ticket": ticket + 1}, {"target": "carol"}, {"items": [["path", "b"]]}):
        with pytest.raises(Illegal):
            apply(world.state, event._replace(body={**event.body, **wrong}))


def test_an_event_of_an_old_client_cannot_overtake(world: World) -> None:
    """A version that knows no queue releases without grants, and claims past those who wait: the server makes both otherwise."""
    wait(world, "bob", "a")
    answer = world.decide("release", Release(Actor("alice"), paths("a")))
    assert not isinstance(answer, Refusal)
    (event,) = answer.events
    assert isinstance(judged(world, [event._replace(granted=())]), Refusal)
    wait(world, "carol", "a", "c")
    passing = world.decide("claim", Take(Actor("alice"), paths("c")))
    assert not isinstance(passing, Refusal) and passing.events[-1].past
    *first, last = passing.events
    assert isinstance(judged(world, [*first, last._replace(past=())]), Refusal), "not counted"


def test_the_first_wait_makes_the_ledger_one_that_earlier_versions_do_not_write(world: World) -> None:
    assert format_record(world.state).minor == 0
    wait(world, "bob", "a")
    assert format_record(world.state).minor == 1


# --- the order, in scenes like those of CockroachDB's lock table


def test_one_that_waits_elsewhere_is_skipped_and_keeps_its_place(world: World) -> None:
    take(world, "bob", "b")
    first = wait(world, "carol", "a", "b")["ticket"]
    wait(world, "dave", "b")
    release(world, "bob", "b")
    assert ("b", "dave") in holders(world)
    release(world, "alice", "a")
    assert [row["ticket"] for row in release(world, "dave", "b").granted] == [first]


def test_released_and_taken_again_by_the_same_agent_goes_behind_those_who_waited(world: World) -> None:
    wait(world, "bob", "a")
    release(world, "alice", "a")
    assert wait(world, "alice", "a")["before"] == []
    assert holders(world) == {("a", "bob")}
    assert [row["agent"] for row in release(world, "bob", "a").granted] == ["alice"]


def test_readers_go_together_and_a_writer_between_them_goes_alone(world: World) -> None:
    for agent, mode in (("r1", "read"), ("w", "write"), ("r2", "read"), ("r3", "read")):
        wait(world, agent, "a", mode=mode)
    event = release(world, "alice", "a")
    assert [(row["agent"], len(row["past"])) for row in event.granted] == [("r1", 0), ("r2", 1), ("r3", 1)]
    for agent in ("r1", "r2"):
        assert not release(world, agent, "a").granted
    assert [row["agent"] for row in release(world, "r3", "a").granted] == ["w"]


def test_one_that_does_not_block_is_served_in_the_same_order(world: World) -> None:
    wait(world, "bob", "a", blocking=False)
    wait(world, "carol", "a")
    assert [row["agent"] for row in release(world, "alice", "a").granted] == ["bob"]


def test_a_holders_upgrade_goes_before_the_queue(world: World) -> None:
    take(world, "bob", "r", mode="read")
    wait(world, "carol", "r")
    take(world, "bob", "r")
    assert {(c.agent, c.mode) for c in world.claims() if c.path == "r"} == {("bob", "write")}


# --- nobody loses by waiting


def test_a_grant_leaves_alone_what_is_held_already(world: World) -> None:
    """bob's 'b' keeps its token and base, and stays his when he misses the reservation of 'a'."""
    take(world, "bob", "b", base="old", reason="mine")
    (before,) = world.claims("bob")
    wait(world, "bob", "b", "a")
    wait(world, "carol", "a")
    event = release(world, "alice", "a")
    assert event.granted[0]["items"] == [["path", "a"]]
    assert {claim.path: claim for claim in world.claims("bob")}["b"] == before
    wait(world, "carol", "a")  # sees it
    world.host.advance(16)
    assert wait(world, "carol", "a")["token"]
    assert world.claims("bob") == [before]
    (request,) = all_requests(world.state)
    assert request.missed == 1 and set(request.items) == set(paths("a", "b")), "it waits for the same as before"
    release(world, "carol", "a")
    assert len(wait(world, "bob", "a", "b")["claims"]) == 2


def test_a_stronger_claim_is_not_weakened_by_a_grant(world: World) -> None:
    take(world, "bob", "b")
    wait(world, "bob", "a", "b", mode="read")
    release(world, "alice", "a")
    assert {(c.path, c.mode) for c in world.claims("bob")} == {("a", "read"), ("b", "write")}


@pytest.mark.parametrize(
    "name, weak, strong, all_of_it", [("r", {"mode": "read"}, {}, {}), ("@gpu", {}, {"units": 3}, {"units": 3})]
)
def test_a_missed_upgrade_leaves_what_was_held_before(
    world: World, name: str, weak: dict[str, Any], strong: dict[str, Any], all_of_it: dict[str, Any]
) -> None:
    take(world, "bob", name, **weak, ttl=3600, reason="mine")
    take(world, "alice", name, **weak)
    (before,) = world.claims("bob")
    wait(world, "bob", name, **strong)
    release(world, "alice", name)
    (granted,) = world.claims("bob")
    assert (granted.mode, granted.units, granted.reason) == ("write", strong.get("units", 1), "mine")
    for _ in range(2):  # the second miss drops the request
        assert world.refused("claim", Take(Actor("dave"), paths(name), **all_of_it)).code == "held"
        world.host.advance(16)
        assert world.refused("claim", Take(Actor("dave"), paths(name), **all_of_it)).code == "held", "bob is alive"
        event = world.must("expire", Sweep(Actor("dave"))).events[-1]
    (after,) = world.claims("bob")
    assert after == before._replace(token=event.seq) and not waiting(world)
    bob = world.agent("bob")
    assert bob is not None and not bob["lost"]
    assert refs_of(world.state, event) == {"refs/" + file_of(world.state, after.item, "bob"): True}
    world.host.advance(2 * 3600)
    take(world, "dave", name, **all_of_it)
    assert not [c for c in world.claims("bob") if c.item == after.item], "and it expires as it would have"


def test_a_reader_may_share_what_an_upgrade_missed(world: World) -> None:
    take(world, "bob", "r", mode="read")
    take(world, "alice", "r", mode="read")
    wait(world, "bob", "r")
    wait(world, "dave", "r", mode="read")
    release(world, "alice", "r")
    wait(world, "dave", "r", mode="read")  # sees the grant
    world.host.advance(16)
    assert wait(world, "dave", "r", mode="read")["token"]
    assert {(c.agent, c.mode) for c in world.claims() if c.path == "r"} == {("bob", "read"), ("dave", "read")}


def test_a_dead_agents_upgrade_and_what_it_held_expire_together(world: World) -> None:
    take(world, "bob", "r", mode="read", ttl=60)
    take(world, "alice", "r", mode="read")
    wait(world, "bob", "r", ttl=60)
    release(world, "alice", "r")
    world.refused("claim", Take(Actor("dave"), paths("r")))
    world.host.advance(400)
    take(world, "dave", "r")
    assert not world.claims("bob")


def test_a_holder_gives_up_writing_before_all_who_wait(world: World) -> None:
    wait(world, "bob", "a")
    take(world, "alice", "a", mode="read")
    assert [(c.agent, c.mode) for c in world.claims()] == [("alice", "read")] and waiting(world) == ["bob"]


def test_a_takeover_takes_all_units_beside_those_of_the_person(world: World) -> None:
    """Fewer would leave some free without a grant to those who wait."""
    gpu = (Item("resource", "gpu"),)
    world.must("claim", Take(Actor("alice"), gpu, units=2))
    world.must("claim", Take(ADA, gpu, units=1))
    world.must("wait", Wait(Actor("bob"), gpu, units=1))
    (own,) = [claim for claim in world.claims("alice") if claim.path == "gpu"]
    world.must("takeover", Takeover(ADA, gpu[0], own.token, "because"))
    assert [(c.agent, c.units) for c in world.claims() if c.path == "gpu"] == [("ada", 3)] and waiting(world) == ["bob"]
    event = world.must("release", Release(ADA, gpu)).events[-1]
    assert [row["agent"] for row in event.granted] == ["bob"]
