"""adopt: a copied repository becomes an authority of its own, on record."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.ledger.event import Chain, Decision, Event
from gitcoord.ledger.format import format_record
from gitcoord.ledger.kinds import Kind, Recalled, subject
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"authority": dict}


class Adopt(NamedTuple):
    actor: Actor
    authority: Record


def decide(state: State, command: Adopt, world: World) -> Decision:
    if format_record(state).authority == command.authority:
        return Decision([], [], {"adopted": False})
    chain = Chain(state, command.actor.agent, world)
    chain.add("adopt", {"authority": command.authority})
    return Decision(chain.events, [], {"adopted": True})


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    event = events[0]
    return [Recalled(decide, Adopt(actor, event.body["authority"]))]


def apply(state: State, event: Event) -> Changes:
    return {"format": format_record(state)._replace(authority=event.body["authority"]).to_record()}


KIND = Kind(FIELDS, subject("adopt by {agent}"), apply, recall, personal=True)
