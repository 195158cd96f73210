"""revise: the content of a task changes, or the task moves: blocked, waiting for a person, given back, reviewed, abandoned."""

from __future__ import annotations

from gitcoord.base.codec import Record, has_shape
from gitcoord.base.errors import Refusal, Refused, UsageError, raise_if
from gitcoord.base.names import check_agent, printable
from gitcoord.base.texts import one_line
from gitcoord.claims.events.release import release_items
from gitcoord.claims.model import own_claim
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, Recalled
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import not_an_approver
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.events.assign import items_of
from gitcoord.tasks.events.finish import to_release
from gitcoord.tasks.events.lapse import after_loss, lost_task
from gitcoord.tasks.events.task import CONTENT, checked, known
from gitcoord.tasks.model import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    BLOCKED,
    DONE,
    FAILED,
    NEEDS_HUMAN,
    OPEN,
    REVIEW,
    Task,
    changed,
    closes_a_circle,
    given_back,
    not_the_owner,
    task_record,
    the_task,
)
from gitcoord.tasks.workers import caps_for

FIELDS = {"id": str, "set": dict, "move": str, "owner": str, "reason": str, "counted": bool}
# From each state, the states to which a task may move other than by being taken or finished.
MOVES = {
    OPEN: (ASSIGNED, BLOCKED, NEEDS_HUMAN, ABANDONED),
    ASSIGNED: (OPEN, ASSIGNED, BLOCKED, NEEDS_HUMAN, ABANDONED),
    ACTIVE: (OPEN, BLOCKED, NEEDS_HUMAN, ABANDONED),
    BLOCKED: (OPEN, ACTIVE, NEEDS_HUMAN, ABANDONED),
    NEEDS_HUMAN: (OPEN, ACTIVE, BLOCKED, ABANDONED),
    REVIEW: (OPEN, DONE, ABANDONED),
    FAILED: (OPEN, ABANDONED),
    ABANDONED: (OPEN,),
    DONE: (),
}
_UNBLOCK = "unblock"  # to active where the owner is still there, else to open
_EXPLAINED = (BLOCKED, NEEDS_HUMAN, ABANDONED)


class Revise(NamedTuple):
    """The command. `set` holds new content; `move` a state to go to, '' to stay."""

    actor: Actor
    id: str
    set: Record
    move: str = ""
    owner: str = ""
    reason: str = ""
    dirty: bool = False


def decide(state: State, command: Revise, world: World) -> Decision:
    raise_if(barred(state, command.actor, world))
    task = the_task(state, command.id)
    move = _target_state(state, world, task, command.move)
    reason = one_line(command.reason, "the reason", 1000, empty=True)
    if move in _EXPLAINED and not reason:
        raise UsageError(f"why is {command.id} {move}?", hints=("say so: --reason '...'",))
    content = checked(dict(command.set))
    try:
        content.update({"needs": known(state, content["needs"])} if "needs" in content else {})
    except UsageError as error:
        raise Refused(Refusal("no-task", error.message, hints=error.hints)) from None
    raise_if(_illegal(state, task, move, command.owner, content) or _may_not(state, world, command.actor, task, move))
    if not move and all(getattr(task, key) == value for key, value in content.items()):
        return Decision([], actor_heartbeats(state, command.actor, world), {"task": task.to_json(), "released": []})
    chain = Chain(state, command.actor.agent, world)
    released: list[dict[str, object]] | Refusal = []
    if move in (OPEN, ABANDONED) and task.owner == command.actor.agent and task.state != ASSIGNED:
        released = release_items(chain, world, to_release(state, world, command.actor, task), dirty=command.dirty)
    chain.add("revise", _body(command.id, content, move, command.owner, reason))
    after = the_task(chain.state, command.id)
    beats = actor_heartbeats(state, command.actor, world)
    return Decision(chain.events, beats, {"task": after.to_json(), "released": released})


def _body(id: str, content: Record, move: str, owner: str, reason: str, *, counted: bool = False) -> Record:
    owner = check_agent(owner) if move == ASSIGNED else ""
    return {"id": id, "set": content, "move": move, "owner": owner, "reason": reason, "counted": counted}


def give_up(chain: Chain, task: Task, why: str) -> None:
    """The owner's session ends without a result: the task goes to others, and the attempt counts."""
    chain.add("revise", _body(task.id, {}, after_loss(task), "", why, counted=True))


def _target_state(state: State, world: World, task: Task, move: str) -> str:
    """The state to move to. An owner that lost a claim of the task or its place under a cap has to take the task again."""
    if move not in (_UNBLOCK, ACTIVE):
        return move
    owner = task.owner
    there = bool(owner) and not_the_owner(state, task, owner) is None and _is_whole(state, task)
    places = caps_for(state, world, Actor(owner)) if there else ()
    return ACTIVE if there and all(own_claim(state, item, owner) is not None for item in places) else OPEN


def _is_whole(state: State, task: Task) -> bool:
    return all(own_claim(state, item, task.owner) is not None for item in items_of(task))


def _illegal(state: State, task: Task, move: str, owner: str, content: Record) -> Refusal | None:
    id = task.id
    if move and move not in MOVES[task.state]:
        return Refusal("move", f"{id} is {task.state}: from there it does not become {printable(move)}")
    gone = not task.owner or not_the_owner(state, task, task.owner) is not None
    if move == ACTIVE and (gone or not _is_whole(state, task)):
        return Refusal("move", f"{id} has nobody at work on it", hints=(f"git coord task take {id}",))
    if (move == ASSIGNED) != bool(owner):
        return Refusal("move", "a task is assigned to somebody", hints=(f"git coord task update {id} --owner <agent>",))
    if task.handoff and move in (OPEN, ABANDONED):
        return Refusal(
            "handoff",
            f"{id} is being handed over ({task.handoff})",
            hints=(f"git handoff withdraw {task.handoff}",),
        )
    missing = [need for need in content.get("needs", ()) if task_record(state, need) is None]
    if missing:
        return Refusal("no-task", f"there is no task {printable(missing[0])} to wait for")
    circle = closes_a_circle(state, id, content.get("needs", ()))
    if circle:
        return Refusal("circle", f"{id} cannot wait for {circle}, which waits for {id}")
    held = ("paths", "line", "role")
    if task.session and any(key in held and getattr(task, key) != value for key, value in content.items()):
        return Refusal(
            "active",
            f"{id} is at work: what it needs cannot change under it",
            hints=("claim a further path for it: git claim --task <id> <path>",),
        )
    return None


def _may_not(state: State, world: World, actor: Actor, task: Task, move: str) -> Refusal | None:
    """Anyone may revise a task without an owner; else only the owner, and its author to pause it."""
    id, agent = task.id, actor.agent
    if task.state == NEEDS_HUMAN and move:
        return not_an_approver(actor, world, f"decide on {id}, which waits for a person", "ask one of them")
    if task.state == REVIEW and move in (OPEN, DONE) and task.result.get("agent") == agent and not actor.person:
        return Refusal("own-work", f"'{agent}' did {id}: another one reviews it")
    gone = task.state != ASSIGNED and not task.handoff and not_the_owner(state, task, task.owner) is not None
    if gone or agent == task.owner or actor.person:
        return None
    if agent == task.by and move in ("", ASSIGNED, BLOCKED, NEEDS_HUMAN, ACTIVE):
        return None
    if task.state == ASSIGNED and agent == task.by:
        return None
    return Refusal(
        "not-yours",
        f"{id} is {task.owner}'s",
        hints=(
            f"ask {task.owner}, who gives it back: git coord task release {id}; or hands it over: git handoff new --task {id}",
        ),
    )


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    body = events[-1].body
    said = (body["id"], body["set"], body["move"], body["owner"], body["reason"])
    return [Recalled(decide, Revise(actor, *said, dirty=True))]


def subject(event: Event) -> str:
    body = event.body
    what = body["move"] or ", ".join(sorted(body["set"])) or "nothing"
    return f"revise {body['id']} by {event.agent}: {what}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    task = task_record(state, body["id"])
    if task is None:
        raise Illegal(f"event {event.seq} revises a task that is not there")
    if not all(key in CONTENT and has_shape(value, CONTENT[key]) for key, value in body["set"].items()):
        raise Illegal(f"event {event.seq} sets what a task does not have")
    content = check_legal(event, checked, body["set"])
    check_legal(event, one_line, body["reason"], "the reason", 1000, empty=True)
    if content != body["set"] or _illegal(state, task, body["move"], body["owner"], body["set"]) is not None:
        raise Illegal(f"event {event.seq} revises {body['id']} as it may not be")
    after = task._replace(**body["set"], changed=event.at)
    if body["counted"]:
        if task.state != ACTIVE or body["move"] != after_loss(task):
            raise Illegal(f"event {event.seq} counts an attempt that was none")
        after = lost_task(after, event.at, body["reason"])
    elif body["move"]:
        after = _moved(after, body, event.at)
    return changed(state, task, after)


def _moved(task: Task, body: Record, at: int) -> Task:
    move = body["move"]
    if move == OPEN:
        return given_back(task, at, reason=body["reason"])
    if move in (ABANDONED, DONE, ASSIGNED):
        return given_back(task, at, reason=body["reason"])._replace(state=move, owner=body["owner"])
    return task._replace(state=move, reason=body["reason"])


KIND = Kind(FIELDS, subject, apply, recall)
