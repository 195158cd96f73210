"""lapse: the owners of tasks are lost (no heartbeat, or session ended). The tasks are open again, or wait for a person.

The owner's claims for such a task end with it, in the next event of the same command. Otherwise an owner that comes back would
still hold the paths of a task that it no longer has.
"""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.errors import raise_if
from gitcoord.claims.events.expire import add_expire
from gitcoord.claims.model import Claim, all_claims, expiry_of_claim
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled
from gitcoord.ledger.sessions import (
    Actor,
    Agent,
    Expiry,
    Heartbeat,
    Lost,
    agent_file,
    agent_record,
    dead,
    valid_evidence,
)
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import halted
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import (
    ACTIVE,
    NEEDS_HUMAN,
    OPEN,
    Held,
    Task,
    all_held,
    changed,
    given_back,
    owner_is_lost,
    task_record,
)

Only = tuple[tuple[str, str, str], ...] | None  # (space, path, agent) of claims that may be ended; None: all

FIELDS: dict[str, Shape] = {"tasks": [{"id": str, "agent": str, "session": int, "beat": str, "rule": str, "to": str}]}


class Collect(NamedTuple):
    """The command: open the tasks again whose owners are lost."""

    actor: Actor
    only: tuple[str, ...] = ()  # ids; none: all
    claims: Only = None


def decide(state: State, command: Collect, world: World) -> Decision:
    raise_if(halted(state) or dead(state, world, command.actor.agent))
    chain = Chain(state, command.actor.agent, world)
    beats = collect(chain, world, lost(state, world, command.actor.agent, command.only), command.claims)
    rows = chain.events[0].body["tasks"] if chain.events else []
    return Decision(chain.events, beats, {"lapsed": [{key: row[key] for key in ("id", "agent", "to")} for row in rows]})


def lost(state: State, world: World, agent: str, only: tuple[str, ...] = ()) -> list[tuple[Held, Expiry]]:
    """The tasks whose owners are lost, other than the asking agent."""
    found = [held for held in all_held(state) if not only or held.id in only]
    world.prefetch_heartbeats([held.agent for held in found])
    judged = [(held, owner_is_lost(state, world, held)) for held in found]
    return [
        (held, verdict)
        for held, verdict in judged
        if verdict is not None and (held.agent != agent or verdict.rule == "session over")
    ]


def collect(chain: Chain, world: World, rows: list[tuple[Held, Expiry]], only: Only = None) -> list[Heartbeat]:
    """Open these tasks again, and end their owners' expired claims for them."""
    beats = add_lapses(chain, world, rows)
    return add_expire(chain, world, left_behind(chain, world, rows, only), beats)


def left_behind(
    chain: Chain, world: World, rows: list[tuple[Held, Expiry]], only: Only = None
) -> list[tuple[Claim, Expiry]]:
    """Expired claims that the former owners still hold for these tasks. Claims of an ended session stay until they expire."""
    gone = {(held.agent, held.id) for held, _ in rows if held.agent != chain.agent}
    claims = [c for c in all_claims(chain.state) if (c.agent, c.task) in gone] if gone else []
    if only is not None:
        claims = [c for c in claims if c.key in only]
    judged = [(c, expiry_of_claim(chain.state, world, c)) for c in claims]
    return [row for row in judged if row[1].expired]


def add_lapses(chain: Chain, world: World, rows: list[tuple[Held, Expiry]]) -> list[Heartbeat]:
    """Add one event for all; gives the judged heartbeats. A heartbeat in between wins."""
    if not rows:
        return []
    tasks, beats = [], {}
    for held, verdict in rows:
        beat = world.heartbeat(held.agent)
        tasks.append(
            {
                "id": held.id, "agent": held.agent, "session": held.session, "rule": verdict.rule,
                "beat": beat.oid if beat is not None else "", "to": after_loss(_task(chain.state, held.id)),
            }
        )  # fmt: skip
        if beat is not None and not beat.killed and beat.session == held.session:
            beats[held.agent] = beat
    event = chain.add("lapse", {"tasks": tasks})
    return [beat._replace(judged=event.seq) for beat in beats.values()]


def after_loss(task: Task) -> str:
    """The next state of a task whose owner was lost: back into the queue, until that has happened too often."""
    return NEEDS_HUMAN if task.attempts + 1 >= task.limit else OPEN


def lost_task(task: Task, at: int, why: str) -> Task:
    """The task without its owner, the attempt counted."""
    return given_back(task, at, reason=why)._replace(attempts=task.attempts + 1, state=after_loss(task))


def _task(state: State, id: str) -> Task:
    task = task_record(state, id)
    if task is None:
        raise Illegal(f"the task '{id}' is not there")
    return task


def lapsed_ids(events: list[Event]) -> tuple[str, ...]:
    """The tasks that a chain's lapse events open again."""
    return tuple(row["id"] for event in events if event.kind == "lapse" for row in event.body["tasks"])


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    return [Recalled(decide, Collect(actor, lapsed_ids(events), ()))]


def subject(event: Event) -> str:
    rows = event.body["tasks"]
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"lapse {rows[0]['id']} of {rows[0]['agent']}{more}, for {event.agent}"


def apply(state: State, event: Event) -> Changes:
    changes: Changes = {}
    for row in event.body["tasks"]:
        task = _task(state, row["id"])
        if (task.state, task.owner, task.session) != (ACTIVE, row["agent"], row["session"]):
            raise Illegal(f"event {event.seq}: {row['agent']} does not have {row['id']}")
        if row["to"] != after_loss(task) or not valid_evidence(row):
            raise Illegal(f"event {event.seq} sends {row['id']} where it does not go, or not for a reason")
        changes.update(changed(state, task, lost_task(task, event.at, f"{row['agent']} was lost ({row['rule']})")))
        _record_loss(state, event, task, changes)
    return changes


def _record_loss(state: State, event: Event, task: Task, changes: Changes) -> None:
    """Record the loss for the owner, which is told with its next command."""
    file = agent_file(task.owner)
    made = changes.get(file)
    record = Agent.from_record(made, file) if made is not None else agent_record(state, task.owner)
    if record is not None:
        row = Lost("task", task.id, task.token, event.agent, event.seq, event.kind)
        changes[file] = record.losing([row]).to_record()


KIND = Kind(FIELDS, subject, apply, recall, judged="tasks")
