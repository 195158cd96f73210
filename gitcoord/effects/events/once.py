"""once: an outside effect begins, for the first and only time under its key."""

from __future__ import annotations

from gitcoord.base.errors import raise_if
from gitcoord.effects.once import begun, check_key, once_file, once_record, refuse_unfinished
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, Recalled, subject
from gitcoord.ledger.sessions import Actor, admit, next_heartbeat
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import as_started, halted, open_session, require_open
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"key": str, "session": int}


class Once(NamedTuple):
    """The command: begin the effect. The nonce names the runner, also for the notes of its machine."""

    actor: Actor
    key: str
    nonce: str = ""


def decide(state: State, command: Once, world: World) -> Decision:
    """Give the known outcome, or begin the effect in a session, whose heartbeats show that the runner lives."""
    check_key(command.key)
    record = once_record(state, command.key)
    if record is not None:
        raise_if(refuse_unfinished(state, world, record))
        return Decision([], [], {"begun": False, **record.to_json()})
    raise_if(halted(state))
    admitted = admit(state, command.actor, world)
    agent = command.actor.agent
    chain = Chain(state, agent, world)
    open_session(chain, command.actor, world, admitted)
    event = chain.add("once", {"key": command.key, "session": admitted.session})
    beat = next_heartbeat(world.heartbeat(agent), agent, admitted.session, world)
    return Decision(chain.events, [beat] if beat else [], {"begun": True, **begun(event).to_json()})


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    last = events[-1]
    return [Recalled(decide, Once(as_started(events, actor), last.body["key"], last.nonce))]


def apply(state: State, event: Event) -> Changes:
    key = check_legal(event, check_key, event.body["key"])
    require_open(state, event.agent, event.body["session"])
    if once_record(state, key) is not None:
        raise Illegal(f"event {event.seq} begins '{key}' a second time")
    return {once_file(key): begun(event).to_record()}


KIND = Kind(FIELDS, subject("once {key} by {agent}"), apply, recall)
