"""finish: the owner of a task hands in its result, or its failure. The claims for it are released."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Refusal, raise_if
from gitcoord.claims.events.release import release_items
from gitcoord.claims.model import Item
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, Recalled, subject
from gitcoord.ledger.nonces import remembered
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.contracts import checked_record
from gitcoord.tasks.events.assign import items_of, needed_beside
from gitcoord.tasks.model import (
    ACTIVE,
    DONE,
    FAILED,
    NEEDS_HUMAN,
    REVIEW,
    Task,
    changed,
    given_back,
    held_by,
    not_the_owner,
    task_record,
    the_task,
)
from gitcoord.tasks.workers import caps_for

FIELDS = {"id": str, "outcome": str, "result": dict}
_RECORDS = {DONE: "complete", FAILED: "failed"}


class Finish(NamedTuple):
    """The command. `outcome` is done or failed; `record` is the worker's result."""

    actor: Actor
    id: str
    outcome: str
    record: Record
    dirty: bool = False
    nonce: str = ""


def decide(state: State, command: Finish, world: World) -> Decision:
    """All at once: the claims go back with the commits that carry the work, and the task is over or to be reviewed."""
    result = checked_record(_RECORDS[command.outcome], command.record)
    raise_if(barred(state, command.actor, world))
    memo = {"verb": "finish", "id": command.id, "outcome": command.outcome, "record": result}
    task = the_task(state, command.id)
    first = remembered(state, command.actor.agent, command.nonce, memo) if command.nonce else None
    if first is not None:
        return Decision([], [], {"task": task.to_json(), "released": [], "repeated": True})
    raise_if(not_the_owner(state, task, command.actor.agent) or _waits_for_a_person(task))
    chain = Chain(state, command.actor.agent, world)
    released = release_items(chain, world, to_release(state, world, command.actor, task), dirty=command.dirty)
    body = {"id": command.id, "outcome": command.outcome, "result": result}
    chain.add("finish", body, memo if command.nonce else None)
    after = the_task(chain.state, command.id)
    beats = actor_heartbeats(state, command.actor, world)
    return Decision(chain.events, beats, {"task": after.to_json(), "released": released})


def _waits_for_a_person(task: Task) -> Refusal | None:
    """Refuse to finish a task that waits for a person."""
    if task.state != NEEDS_HUMAN:
        return None
    return Refusal(
        "needs-human",
        f"{task.id} waits for a person, who decides how it goes on",
        hints=(f"a person lets it go on: git coord task unblock {task.id}",),
    )


def to_release(state: State, world: World, actor: Actor, task: Task) -> tuple[Item, ...]:
    """The task's items that no other task of the agent needs; with its last task also its place under a cap."""
    others = [held for held in held_by(state, actor.agent) if held.id != task.id and held.state == ACTIVE]
    kept = needed_beside(state, actor.agent, task.id)
    items = tuple(item for item in items_of(task) if item not in kept)
    return (*items, *(() if others else caps_for(state, world, actor)))


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    first, last = events[0], events[-1]
    outcome = FAILED if last.body["outcome"] == FAILED else DONE
    command = Finish(
        actor, last.body["id"], outcome, last.body["result"], True, first.nonce if last.keep is not None else ""
    )
    return [Recalled(decide, command)]


def apply(state: State, event: Event) -> Changes:
    body = event.body
    task = task_record(state, body["id"])
    if task is None or not_the_owner(state, task, event.agent) is not None or body["outcome"] not in _RECORDS:
        raise Illegal(f"event {event.seq} finishes {body['id']}, which is not {event.agent}'s")
    if _waits_for_a_person(task) is not None:
        raise Illegal(f"event {event.seq} finishes {body['id']}, which waits for a person")
    if check_legal(event, checked_record, _RECORDS[body["outcome"]], body["result"]) != body["result"]:
        raise Illegal(f"event {event.seq} has a result that is not normalised")
    over = REVIEW if body["outcome"] == DONE and task.review else body["outcome"]
    result = {**body["result"], "agent": event.agent, "seq": event.seq}
    return changed(state, task, given_back(task, event.at)._replace(state=over, result=result))


KIND = Kind(FIELDS, subject("finish {id} by {agent}: {outcome}"), apply, recall)
