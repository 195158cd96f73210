"""start: an agent opens a session and takes expired claims again that are still free."""

from __future__ import annotations

from gitcoord.base.errors import Refused, raise_if, refused
from gitcoord.base.names import shown
from gitcoord.claims.model import (
    Grant,
    Item,
    all_claims,
    capacity_of,
    conflicts_of,
    grant_body,
    grants_in,
    own_claim,
    prefetch_around,
    prefetch_own,
)
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, queue_rules, subject, touches_nothing
from gitcoord.ledger.sessions import (
    KILLED,
    OPEN,
    Actor,
    Agent,
    admit,
    agent_file,
    agent_record,
    alive,
    next_heartbeat,
)
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import as_started, halted, open_session
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"session": int, "instance": str, "parent": str}


class Start(NamedTuple):
    """The command. `fresh`: the caller needs a session of its own. `again`: grants that expired."""

    actor: Actor
    fresh: bool = False
    again: tuple[Grant, ...] = ()


def decide(state: State, command: Start, world: World) -> Decision:
    """Open a session, or continue the open one."""
    agent = command.actor.agent
    raise_if(halted(state))
    if command.actor.join and not command.actor.person:
        raise refused(
            "person", "only a person may join a session that is open", "take a name of your own: GITCOORD_AGENT"
        )
    admitted = admit(state, command.actor, world)
    if command.fresh and not admitted.opens and _is_running(state, world, agent):
        raise refused(
            "instance",
            f"'{agent}' is already at work (session {admitted.session})",
            "take a name of your own: git coord run --as <name> -- <command>",
        )
    if command.fresh and not admitted.opens:
        admitted = admitted._replace(opens=True, session=admitted.session + 1)
    chain = Chain(state, agent, world)
    open_session(chain, command.actor, world, admitted)
    prefetch_around(chain.state, [row.item for row in command.again])
    taken = [row.item for row in command.again if _take_again(chain, command.actor, world, admitted.session, row)]
    held = all_claims(chain.state, agent)
    beat = next_heartbeat(
        world.heartbeat(agent), agent, admitted.session, world, min([c.ttl for c in held if taken], default=0)
    )
    result = {
        "agent": agent,
        "session": admitted.session,
        "opened": admitted.opens,
        "claims": [c.to_json(c.ttl) for c in held],
        "again": [shown(item.name, item.space) for item in taken],
    }
    return Decision(chain.events, [beat] if beat else [], result)


def _take_again(chain: Chain, actor: Actor, world: World, session: int, row: Grant) -> bool:
    """Grant one expired claim again, if nothing conflicts. Each is decided by itself."""
    from gitcoord.claims.take import access_to

    item = row.item
    if _is_for_another(chain.state, row.task, actor.agent):
        return False
    if own_claim(chain.state, item, actor.agent) is not None or access_to(actor, item, row.mode, row.units, world):
        return False
    conflicts = conflicts_of(chain.state, world, item, actor.agent, row.mode, row.units)
    if conflicts.live or conflicts.expired:
        return False
    past = _overtaken(chain, actor, world, row)
    if past is None:
        return False
    chain.add("claim", grant_body(row, session, row.ttl, capacity_of([item], world)), past=past)
    return True


def _overtaken(chain: Chain, actor: Actor, world: World, row: Grant) -> tuple[int, ...] | None:
    """The tickets of the requests that the claim goes past; None where it has to wait for one."""
    if not chain.state.names("waits"):
        return ()
    try:
        return tuple(queue_rules().overtaken_by(chain.state, world, actor.agent, (row.item,), row.mode, row.units))
    except Refused:
        return None


def _is_for_another(state: State, id: str, agent: str) -> bool:
    """Return whether it was claimed for a task that the agent no longer owns: then it goes to the next owner."""
    from gitcoord.tasks.model import task_record

    task = task_record(state, id) if id else None
    return task is not None and task.owner != agent


def _is_running(state: State, world: World, agent: str) -> bool:
    """Return whether a known process runs under this name. A session without one may be replaced."""
    record = agent_record(state, agent)
    return record is not None and bool(record.instance) and alive(state, world, record)


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    actor = as_started(events, actor)
    prefetch_own(state, [Item(*event.body["items"][0]) for event in events if event.kind == "claim"], actor.agent)
    grants = [grants_in(event.body, 0)[0] for event in events if event.kind == "claim"]
    again = tuple(grant for grant in grants if own_claim(state, grant.item, actor.agent) is None)
    return [Recalled(decide, Start(actor, fresh, again)) for fresh in (False, True)]


def apply(state: State, event: Event) -> Changes:
    record = agent_record(state, event.agent)
    last = record.session if record is not None else 0
    if event.body["session"] != last + 1 or (record is not None and record.state in (OPEN, KILLED)):
        raise Illegal(f"event {event.seq} opens session {event.body['session']} of '{event.agent}', which may not open")
    new = Agent(event.agent, last + 1, OPEN, event.body["instance"], event.body["parent"], event.at, (), [])
    return {agent_file(event.agent): new.to_record()}


KIND = Kind(FIELDS, subject("start session {session} of {agent}"), apply, recall, touches=touches_nothing)
