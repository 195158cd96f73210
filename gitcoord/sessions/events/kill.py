"""kill: an agent is stopped, its claims are freed, its heartbeat becomes a tombstone. Only `revive` undoes it."""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.errors import raise_if, refused
from gitcoord.claims.model import all_claims
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Touched, paths_in, recall_from_body, subject
from gitcoord.ledger.sessions import KILLED, Actor, Agent, Heartbeat, agent_file, agent_record, dead, is_torn_kill
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import may_not_stop
from gitcoord.sessions.admission import end_session
from gitcoord.sessions.events.stop import free, refs
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {"target": str, "session": int, "reason": str, "freed": [(str, str)]}


class Kill(NamedTuple):
    actor: Actor
    target: str
    reason: str = ""


def decide(state: State, command: Kill, world: World) -> Decision:
    """A person may kill anybody, an agent those that it launched; also while halted."""
    raise_if(dead(state, world, command.actor.agent))
    record = agent_record(state, command.target)
    if record is None:
        raise refused("no-agent", f"no agent '{command.target}' is known here", "who is: git coord agents")
    if record.state == KILLED:
        return Decision([], [], {"agent": command.target, "killed": False, "freed": []})
    # A tombstone is half of a kill that was allowed: anybody may record the other half.
    if not is_torn_kill(record, world.heartbeat(command.target)) and not is_below(state, record, command.actor.agent):
        action = f"kill '{command.target}', which '{command.actor.agent}' did not launch"
        raise_if(may_not_stop(state, command.actor, world, action))
    claims = all_claims(state, command.target)
    chain = Chain(state, command.actor.agent, world)
    freed = [[c.space, c.path] for c in claims]
    body = {"target": command.target, "session": record.session, "reason": command.reason, "freed": freed}
    event = end_session(chain, "kill", body)
    tomb = Heartbeat("", command.target, world.boot, record.session, world.mono, world.wall, 1, killed=event.seq)
    result = {"agent": command.target, "killed": True, "freed": [c.to_json(None) for c in claims]}
    return Decision(chain.events, [tomb], result)


def is_below(state: State, record: Agent, agent: str) -> bool:
    """Return whether this session was launched inside the agent's, directly or not. A name alone proves nothing."""
    seen = {record.agent}
    while record.parent and record.parent not in seen:
        if record.parent == agent:
            return True
        above = agent_record(state, record.parent)
        if above is None:
            return False
        record = above
        seen.add(record.agent)
    return False


def apply(state: State, event: Event) -> Changes:
    body = event.body
    record = agent_record(state, body["target"])
    if record is None or record.session != body["session"] or record.state == KILLED:
        raise Illegal(f"event {event.seq} kills '{body['target']}', which is not there")
    changes: Changes = {agent_file(body["target"]): record._replace(state=KILLED, kept=[]).to_record()}
    free(state, body["target"], body["freed"], changes)
    if state.names("waits"):
        from gitcoord.claims.requests import drop_all  # only where somebody waits

        drop_all(state, body["target"], changes)
    return changes


def tombstone(event: Event) -> tuple[str, int]:
    """(agent, session) whose session ref must be a tombstone."""
    return event.body["target"], event.body["session"]


def touches(event: Event) -> Touched:
    return Touched((event.body["target"],), paths_in(event.body["freed"]))


KIND = Kind(
    FIELDS,
    subject("kill {target} by {agent}"),
    apply,
    recall_from_body(decide, Kill),
    refs,
    touches=touches,
    agents=("target",),
    leads=True,
)
