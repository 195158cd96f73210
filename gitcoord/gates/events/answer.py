"""answer: a person approves or denies a request."""

from __future__ import annotations

from gitcoord.base.errors import raise_if, refused
from gitcoord.base.names import printable
from gitcoord.gates.model import APPROVED, DENIED, OPEN, approval, approval_file, approvals
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, recall_from_body
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import not_an_approver
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"id": str, "approved": bool, "path": str, "blob": str, "reason": str}


class Answer(NamedTuple):
    """The command. `blob` is the content that the person was shown, '' for a deletion."""

    actor: Actor
    id: str
    approved: bool
    blob: str
    reason: str = ""


def decide(state: State, command: Answer, world: World) -> Decision:
    raise_if(dead(state, world, command.actor.agent))
    record = next((one for one in approvals(state) if one.id == command.id), None)
    if record is None:
        raise refused("unknown", f"there is no request '{printable(command.id)}'", "git coord approvals")
    raise_if(not_an_approver(command.actor, world, "answer", "ask one of them"))
    if command.actor.agent == record.agent:
        raise refused("own", "the one who asked may not answer", "ask another person")
    if command.blob != record.blob:
        raise refused("content", "that is not the content that was shown", "git coord approvals")
    wanted = APPROVED if command.approved else DENIED
    result = {"id": record.id, "path": record.path, "state": wanted, "changed": record.state != wanted}
    if record.state == wanted:
        return Decision([], [], result)
    chain = Chain(state, command.actor.agent, world)
    body = {
        "id": record.id, "approved": command.approved, "path": record.path, "blob": record.blob,
        "reason": command.reason,
    }  # fmt: skip
    chain.add("answer", body)
    return Decision(chain.events, [], result)


def subject(event: Event) -> str:
    verb = "approve" if event.body["approved"] else "deny"
    return f"{verb} {printable(event.body['path'])} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    record = approval(state, event.body["id"])
    if record is None or record.blob != event.body["blob"] or record.path != event.body["path"]:
        raise Illegal(f"event {event.seq} answers a request that was not made")
    if record.agent == event.agent:
        raise Illegal(f"event {event.seq} is an answer by the one who asked")
    state_now = APPROVED if event.body["approved"] else DENIED
    if record.state == state_now and record.state != OPEN:
        raise Illegal(f"event {event.seq} answers again what was answered so")
    new = record._replace(state=state_now, by=event.agent, reason=event.body["reason"])
    return {approval_file(record.id): new.to_record()}


KIND = Kind(FIELDS, subject, apply, recall_from_body(decide, Answer))
