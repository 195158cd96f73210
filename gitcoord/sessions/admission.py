"""Rules that commands share: the halt, who may act, opening and ending sessions."""

from __future__ import annotations

from gitcoord.base.codec import Record, record_of, values_of
from gitcoord.base.errors import Refusal
from gitcoord.base.names import printable
from gitcoord.claims.model import Claim, Item, all_claims, capacity_of, grant_body, own_claims, prefetch_around
from gitcoord.ledger.event import Chain, Event, Illegal
from gitcoord.ledger.sessions import (
    OPEN,
    Actor,
    Admission,
    Agent,
    Heartbeat,
    admit_or_none,
    agent_file,
    agent_record,
    next_heartbeat,
)
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

_HALT = {"by": str, "reason": str, "seq": int, "at": int}


class Halted(NamedTuple):
    """The record of a halt, kept while it lasts."""

    by: str
    reason: str
    seq: int
    at: int

    def to_record(self) -> Record:
        return record_of(_HALT, self)


def halt_record(state: State) -> Halted | None:
    record = state.get("halt")
    return None if record is None else Halted._make(values_of(record, _HALT, "halt"))


def halted(state: State) -> Refusal | None:
    record = halt_record(state)
    if record is None:
        return None
    why = f": {printable(record.reason)}" if record.reason else ""
    return Refusal(
        "halted",
        f"everything was halted by {record.by}{why}",
        hints=("releases still work; a person may go on with: git coord unhalt",),
    )


def barred(state: State, actor: Actor, world: World) -> Refusal | None:
    """The refusal while everything is halted, for a killed agent, and for a second process under one name."""
    return halted(state) or admit_or_none(state, actor, world)


def actor_heartbeats(state: State, actor: Actor, world: World) -> list[Heartbeat]:
    """The actor's next heartbeat, if it has an open session and a heartbeat is due."""
    record = agent_record(state, actor.agent)
    if record is None or record.state != OPEN:
        return []
    beat = next_heartbeat(world.heartbeat(actor.agent), actor.agent, record.session, world)
    return [beat] if beat is not None else []


def open_session(chain: Chain, actor: Actor, world: World, admitted: Admission) -> None:
    """Open the session if it must be opened: end the one before it, and grant its claims again."""
    if not admitted.opens:
        return
    record = agent_record(chain.state, actor.agent)
    claims = resumed(chain.state, actor.agent)
    if record is not None and record.state == OPEN:
        end_session(chain, "stop", stop_body(record, "superseded", [], [[c.space, c.path] for c in claims]))
    body = {"session": admitted.session, "instance": actor.instance, "parent": actor.parent}
    chain.add("start", body)
    # Nobody else asked for these claims, and the work may be uncommitted.
    for claim in claims:
        chain.add("claim", grant_body(claim, admitted.session, claim.ttl, capacity_of([claim.item], world)))


def resumed(state: State, agent: str) -> list[Claim]:
    """The claims that a new session goes on with: all of a session that is still open, what it kept of one that ended."""
    record = agent_record(state, agent)
    if record is None or record.state == OPEN:
        return all_claims(state, agent) if record is not None else []
    items = [Item(*pair) for pair in record.kept]
    prefetch_around(state, items)
    return own_claims(state, items, agent)


def end_session(chain: Chain, kind: str, body: Record) -> Event:
    """Add the event that ends a session (`stop` or `kill` of its target), and end the open ones that were launched from inside it. What all of them
    let go is granted by the last event: until then some of them still wait."""
    others = {
        file: record for file, record in chain.state.below("agents").items() if file != agent_file(body["target"])
    }
    grants, children = chain.grants, _open_children(others, body["target"])
    chain.grants = grants and not children
    event = chain.add(kind, body)
    for record in children:
        chain.grants = grants and record is children[-1]
        # It is unknown whether its work is committed, so its claims stay until they expire.
        kept = [[c.space, c.path] for c in all_claims(chain.state, record.agent)]
        chain.add("stop", stop_body(record, f"ended with {record.parent}", [], kept))
    chain.grants = grants
    return event


def stop_body(record: Agent, cause: str, freed: list[list[str]], kept: list[list[str]]) -> Record:
    return {"target": record.agent, "session": record.session, "cause": cause, "freed": freed, "kept": kept}


def _open_children(agents: dict[str, Record], parent: str) -> list[Agent]:
    """The open sessions of these agents that were launched from inside this one's, each followed by those inside it. They are taken out of `agents`."""
    files = sorted(file for file, record in agents.items() if record.get("parent") == parent)
    inside = [Agent.from_record(agents.pop(file), file) for file in files]
    return [
        each for record in inside if record.state == OPEN for each in (record, *_open_children(agents, record.agent))
    ]


def require_open(state: State, agent: str, session: int) -> None:
    record = agent_record(state, agent)
    if record is None or record.state != OPEN or record.session != session:
        raise Illegal(f"session {session} of '{agent}' is not open")


def as_started(events: list[Event], actor: Actor) -> Actor:
    """The actor with instance and parent from the chain's `start` event, if it has one."""
    for event in events:
        if event.kind == "start":
            return actor._replace(instance=event.body["instance"], parent=event.body["parent"])
    return actor
