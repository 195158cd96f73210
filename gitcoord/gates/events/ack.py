"""ack: an agent says that it has read one version of the project's rules."""

from __future__ import annotations

from gitcoord.base.errors import UsageError, raise_if
from gitcoord.base.names import is_oid, quote
from gitcoord.gates.model import Reading, RulesReader, ack_file, reader
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, recall_from_body
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"version": str}
_KEPT = 8  # versions: branches may have different rules for a while


class Ack(NamedTuple):
    """The command. `version` is the id of the rules' blob."""

    actor: Actor
    version: str


def decide(state: State, command: Ack, world: World) -> Decision:
    if not is_oid(command.version):
        raise UsageError(f"{quote(command.version[:80])} is no version of the rules")
    raise_if(barred(state, command.actor, world))
    agent = command.actor.agent
    beats = actor_heartbeats(state, command.actor, world)
    result = {"agent": agent, "version": command.version}
    if command.version in [row.version for row in reader(state, agent).read[-1:]]:
        return Decision([], beats, {**result, "changed": False})
    chain = Chain(state, agent, world)
    chain.add("ack", {"version": command.version})
    return Decision(chain.events, beats, {**result, "changed": True})


def subject(event: Event) -> str:
    return f"ack rules {event.body['version'][:12]} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    version = event.body["version"]
    if not is_oid(version):
        raise Illegal(f"event {event.seq} names no version of the rules")
    read = [row for row in reader(state, event.agent).read if row.version != version][1 - _KEPT :]
    new = RulesReader(event.agent, (*read, Reading(version, event.seq, event.at)))
    return {ack_file(event.agent): new.to_record()}


KIND = Kind(FIELDS, subject, apply, recall_from_body(decide, Ack))
