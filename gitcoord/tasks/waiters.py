"""Agents that wait for a task: for one by its id, with all that it needs; or for any, and then the tasks that each may have."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Refused
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.events.wait import decide as decide_wait
from gitcoord.claims.model import WRITE, Item, all_claims, own_claim
from gitcoord.claims.requests import NEXT, Request, blocking_claims, task_item, task_of
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterator
from gitcoord.tasks import workers
from gitcoord.tasks.events.assign import Assign, items_of, offered, out_of_reach, reserved_tasks
from gitcoord.tasks.events.assign import decide as decide_assign
from gitcoord.tasks.model import ASSIGNED, Task, held_by, ready, task_record, the_task

_MOST = 64  # tasks that an event looks at; a waiter itself looks at all of them


def forms(state: State, world: World, request: Request) -> Iterator[Request]:
    """The request of an agent for any task, once for each task that it may have, most urgent first."""
    if any(claim.agent == request.agent for claim in reserved_tasks(state)):
        return  # it has one to take
    actor = Actor(request.agent)
    caps = workers.caps_for(state, world, actor)
    if caps and blocking_claims(state, world, request._replace(items=caps)):
        return  # all places are taken
    kept = [held.id for held in held_by(state, request.agent) if held.state == ASSIGNED]
    for id in [*kept, *ready(state)][:_MOST]:
        task = task_record(state, id)
        if task is None or out_of_reach(state, world, task, actor) or offered(state, task, request.agent):
            continue
        yield _form(request, task, (task_item(id), *_missing(state, request.agent, (*items_of(task), *caps))))


def form_for(state: State, request: Request, items: list[Item]) -> Request | None:
    """The same for the task among the items that an event grants; None where they do not belong together."""
    task = task_record(state, task_of(items))
    if task is None or request.items != (NEXT,):
        return None
    needed = [task_item(task.id), *_missing(state, request.agent, items_of(task))]
    if items[: len(needed)] != needed or not all(map(workers.is_cap, items[len(needed) :])):
        return None
    return _form(request, task, tuple(items))


def _missing(state: State, agent: str, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items that the agent does not hold yet. A reservation that is missed must not take away what it held before."""
    owns = {item: own_claim(state, item, agent) for item in items}
    return tuple(item for item, own in owns.items() if own is None or own.mode != WRITE)


def _form(request: Request, task: Task, items: tuple[Item, ...]) -> Request:
    return request._replace(items=items, expected=task.expected, reason=task.title, task=task.id)


# --- the commands of the one who waits


_MAY_END = ("held", "cap", "kept")  # refusals that may end by themselves


def take_or_wait(state: State, command: Assign, world: World) -> Decision:
    """The task, or a place in the queue with `why` and `held`; the same place where the agent has it already. `ticket` is 0 where the
    place was granted just now, or where none is needed since a task is about to be taken: ask again."""
    held: list[Record] = []
    try:
        answer = decide_assign(state, command, world)
        if answer.again or answer.result["task"] is not None:
            return answer
        if answer.events:
            return answer._replace(again=True)  # tasks of lost owners are open again
        why = str(answer.result["why"])
    except Refused as refused:
        if refused.code not in _MAY_END:
            raise
        why, held = refused.message, list(refused.refusal.blocking_claims)
    told: Record = {"task": None, "why": why, "ticket": 0}
    if command.id and any(str(row["path"]).startswith(f"@{task_item(command.id).name}") for row in held):
        return Decision([], [], {**told, "held": held})
    place = decide_wait(state, _wait_for(state, world, command), world)
    return place._replace(result={**told, **place.result, "held": held})


def _wait_for(state: State, world: World, command: Assign) -> Wait:
    """The command that puts the agent into the queue for this task, or for any."""
    plain = Wait(command.actor, (NEXT,), base=command.base)
    plain = plain._replace(ttl=command.ttl or workers.task_ttl(world, command.actor))
    if not command.id:
        return plain
    task = the_task(state, command.id)
    items = (*items_of(task), *workers.caps_for(state, world, command.actor))
    items = _missing(state, command.actor.agent, items) or items
    return plain._replace(items=items, expected=task.expected, reason=task.title, task=task.id)


def leave_for(state: State, world: World, command: Assign) -> Leave:
    """The command that takes the agent out of that queue."""
    if command.id:
        items = _wait_for(state, world, command).items
    else:
        mine = [claim.item for claim in all_claims(state, command.actor.agent)]
        items = (NEXT, *(item for item in mine if task_of([item])))
    return Leave(command.actor, items, 0)
