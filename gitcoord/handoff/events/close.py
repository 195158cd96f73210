"""close: a handoff is declined by its addressee or withdrawn by its giver."""

from __future__ import annotations

from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.texts import one_line
from gitcoord.claims.model import own_claim
from gitcoord.handoff.model import (
    DECLINED,
    WITHDRAWN,
    Handoff,
    closed_record,
    handoff_record,
    not_addressed,
    not_open,
    the_handoff,
)
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, recall_from_body, touches_nothing
from gitcoord.ledger.sessions import KILLED, Actor, agent_record
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import may_approve
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import Task, changed, given_back, set_handoff, task_record
from gitcoord.tasks.workers import caps_for

# `returned`: the task that was offered goes back into the queue.
FIELDS = {"handoff": str, "state": str, "reason": str, "returned": bool}
_REASON = 1000


class Close(NamedTuple):
    """The command. `state`: declined or withdrawn."""

    actor: Actor
    handoff: str
    state: str
    reason: str = ""


def decide(state: State, command: Close, world: World) -> Decision:
    agent = command.actor.agent
    if command.state not in (DECLINED, WITHDRAWN):
        raise UsageError("a handoff is declined or withdrawn")
    reason = one_line(command.reason, "the reason", _REASON, empty=command.state == WITHDRAWN)
    raise_if(barred(state, command.actor, world))
    record = the_handoff(state, command.handoff)
    result = {"id": record.id, "from": record.giver, "state": command.state, "reason": reason, "returned": False}
    if (record.state, record.by) == (command.state, agent):
        return Decision([], [], {**result, "reason": record.reason, "changed": False})
    raise_if(not_open(record))
    _require_closable(state, command, world, record)
    chain = Chain(state, agent, world)
    returned = _lost_place(state, world, record)
    body = {"handoff": record.id, "state": command.state, "reason": reason, "returned": returned}
    chain.add("close", body)
    beats = actor_heartbeats(state, command.actor, world)
    return Decision(chain.events, beats, {**result, "changed": True, "returned": returned})


def _lost_place(state: State, world: World, record: Handoff) -> bool:
    """Return whether the task's owner lost its place under a cap meanwhile: then the task goes back to the queue."""
    task = _task(state, record)
    if task is None or task.owner != record.giver:
        return False
    needed = caps_for(state, world, Actor(record.giver))
    return any(own_claim(state, item, record.giver) is None for item in needed)


def _task(state: State, record: Handoff) -> Task | None:
    """The task that this handoff offers, while it does."""
    task = task_record(state, record.task) if record.task else None
    return task if task is not None and task.handoff == record.id else None


def _require_closable(state: State, command: Close, world: World, record: Handoff) -> None:
    if command.state == WITHDRAWN:
        if record.giver != command.actor.agent and not may_approve(command.actor, world.approvers()):
            raise refused("not-yours", f"{record.id} is {record.giver}'s: only they, or a person, may take it back")
    elif not record.to and not record.role:
        raise refused("for-anyone", f"{record.id} is for anyone: leave it to the others", "git handoff list")
    else:
        raise_if(not_addressed(state, world, record, command.actor))


def subject(event: Event) -> str:
    verb = "decline" if event.body["state"] == DECLINED else "withdraw"
    return f"{verb} {event.body['handoff']} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    record = handoff_record(state, body["handoff"])
    mine = agent_record(state, event.agent)
    if record is None or not_open(record) is not None or (mine is not None and mine.state == KILLED):
        raise Illegal(f"event {event.seq} closes a handoff that does not wait")
    own = record.giver == event.agent
    if body["state"] not in (DECLINED, WITHDRAWN) or (body["state"] == DECLINED and (own or not body["reason"])):
        raise Illegal(f"event {event.seq} closes a handoff in a way that does not exist")
    check_legal(event, one_line, body["reason"], "the reason", _REASON, empty=True)
    changes = closed_record(record, body["state"], event.agent, body["reason"], event.at)
    task = _task(state, record)
    if task is None:
        return changes
    if not body["returned"]:
        changes.update(set_handoff(state, task, ""))
    else:
        reason = f"{record.id} was {body['state']}, and {record.giver} had lost its place"
        changes.update(changed(state, task, given_back(task, event.at, reason=reason)))
    return changes


KIND = Kind(FIELDS, subject, apply, recall_from_body(decide, Close), touches=touches_nothing)
