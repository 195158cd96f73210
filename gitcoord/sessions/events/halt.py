"""halt: nothing is granted until `unhalt`. Releases, kills and heartbeats go on; nothing expires."""

from __future__ import annotations

from gitcoord.base.errors import raise_if
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, recall_from_body, subject
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import may_not_stop
from gitcoord.sessions.admission import Halted, halt_record
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"reason": str}


class Halt(NamedTuple):
    actor: Actor
    reason: str = ""


def decide(state: State, command: Halt, world: World) -> Decision:
    raise_if(dead(state, world, command.actor.agent))
    if halt_record(state) is not None:
        return Decision([], [], {"halted": True, "changed": False})
    raise_if(may_not_stop(state, command.actor, world, "halt everything"))
    chain = Chain(state, command.actor.agent, world)
    chain.add("halt", {"reason": command.reason})
    return Decision(chain.events, [], {"halted": True, "changed": True})


def apply(state: State, event: Event) -> Changes:
    if halt_record(state) is not None:
        raise Illegal(f"event {event.seq} halts what is halted")
    return {"halt": Halted(event.agent, event.body["reason"], event.seq, event.at).to_record()}


KIND = Kind(FIELDS, subject("halt by {agent}"), apply, recall_from_body(decide, Halt))
