"""revive: a killed agent may open sessions again. The killed session stays dead."""

from __future__ import annotations

from gitcoord.base.errors import raise_if, refused
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import REASON, Kind, recall_from_body, subject, touches_target, with_reason
from gitcoord.ledger.sessions import ENDED, KILLED, Actor, agent_file, agent_record, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import not_an_overseer
from gitcoord.sessions.admission import halted
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"target": str}


class Revive(NamedTuple):
    actor: Actor
    target: str
    reason: str = ""


def decide(state: State, command: Revive, world: World) -> Decision:
    """A person who was killed may always act again: it revives itself, also while halted, so that it can lift the halt."""
    oneself = command.actor.person and command.target == command.actor.agent
    raise_if(None if oneself else halted(state) or dead(state, world, command.actor.agent))
    record = agent_record(state, command.target)
    if record is None:
        raise refused("no-agent", f"no agent '{command.target}' is known here", "who is: git coord agents")
    world.heartbeat(command.target)  # a tombstone without a record is recorded before this is decided again
    if record.state != KILLED:
        return Decision([], [], {"agent": command.target, "revived": False})
    raise_if(None if oneself else not_an_overseer(state, command.actor, world, "revive the killed"))
    chain = Chain(state, command.actor.agent, world)
    chain.add("revive", with_reason({"target": command.target}, command.reason))
    return Decision(chain.events, [], {"agent": command.target, "revived": True})


def apply(state: State, event: Event) -> Changes:
    record = agent_record(state, event.body["target"])
    if record is None or record.state != KILLED:
        raise Illegal(f"event {event.seq} revives '{event.body['target']}', which was not killed")
    return {agent_file(event.body["target"]): record._replace(state=ENDED).to_record()}


KIND = Kind(
    FIELDS,
    subject("revive {target} by {agent}"),
    apply,
    recall_from_body(decide, Revive),
    touches=touches_target,
    agents=("target",),
    optional=REASON,
)
