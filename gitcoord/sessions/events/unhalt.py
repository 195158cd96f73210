"""unhalt: a halt ends. A killed agent cannot end it."""

from __future__ import annotations

from gitcoord.base.errors import raise_if
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import REASON, Kind, recall_from_body, subject, with_reason
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import not_an_overseer
from gitcoord.sessions.admission import halt_record
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, type] = {}


class Unhalt(NamedTuple):
    actor: Actor
    reason: str = ""


def decide(state: State, command: Unhalt, world: World) -> Decision:
    raise_if(dead(state, world, command.actor.agent))
    if halt_record(state) is None:
        return Decision([], [], {"halted": False, "changed": False})
    raise_if(not_an_overseer(state, command.actor, world, "lift a halt"))
    chain = Chain(state, command.actor.agent, world)
    chain.add("unhalt", with_reason({}, command.reason))
    return Decision(chain.events, [], {"halted": False, "changed": True})


def apply(state: State, event: Event) -> Changes:
    if halt_record(state) is None:
        raise Illegal(f"event {event.seq} lifts a halt that is not there")
    return {"halt": None}


KIND = Kind(FIELDS, subject("unhalt by {agent}"), apply, recall_from_body(decide, Unhalt), optional=REASON)
