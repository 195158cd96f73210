"""epoch: Seq leaps forward, after events may have been lost, so that no token is ever given twice."""

from __future__ import annotations

from gitcoord.base.errors import raise_if, refused
from gitcoord.ledger.event import Decision, Event
from gitcoord.ledger.kinds import Kind, Recalled, subject
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"reason": str}
LEAP = 1_000_000
FARTHEST = 10 * LEAP  # an agent's leap: far enough above a few lost epochs, and no way to use the numbers up


class Epoch(NamedTuple):
    actor: Actor
    seq: int
    reason: str


def decide(state: State, command: Epoch, world: World) -> Decision:
    """Begin an epoch. It grants nothing, so every agent that has seen a higher number may write one above it."""
    agent = command.actor.agent
    raise_if(dead(state, world, agent))
    if command.seq <= state.seq:
        raise refused("illegal-event", f"an epoch at event {command.seq} does not leap: the last event is {state.seq}")
    if command.seq > state.seq + FARTHEST and not command.actor.person:
        raise refused("person", f"only a person may leap by more than {FARTHEST} events")
    body = {"reason": command.reason}
    event = Event("epoch", command.seq, agent, world.wall, world.nonce, 0, body)
    return Decision([event], [], {"seq": command.seq})


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    event = events[0]
    return [Recalled(decide, Epoch(actor, event.seq, event.body["reason"]))]


def apply(state: State, event: Event) -> Changes:
    return {}


KIND = Kind(FIELDS, subject("epoch at {seq} by {agent}"), apply, recall)
