"""done: an effect that was to happen once has ended, with this exit code; or it could not even be started."""

from __future__ import annotations

from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.effects.once import DONE, MOST_CODE, RUNNING, Effect, check_key, once_file, once_record
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, recall_from_body
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"key": str, "token": int, "code": int}
NOT_STARTED = -1  # nothing happened: the key is free again


class Done(NamedTuple):
    """The command. `token` names the beginning."""

    actor: Actor
    key: str
    token: int
    code: int


def decide(state: State, command: Done, world: World) -> Decision:
    """Record the end, also after the session ended and while halted. Only killed agents are refused."""
    raise_if(dead(state, world, command.actor.agent))
    check_key(command.key)
    if not NOT_STARTED <= command.code <= MOST_CODE:
        raise UsageError(f"{command.code} is no exit code")
    record = once_record(state, command.key)
    if record is None or not _is_own(record, command.actor.agent, command.token):
        raise refused("not-held", f"'{command.key}' is not (any more) what '{command.actor.agent}' began")
    chain = Chain(state, command.actor.agent, world)
    chain.add("done", {"key": command.key, "token": command.token, "code": command.code})
    after = once_record(chain.state, command.key)
    return Decision(chain.events, [], after.to_json() if after is not None else {"key": command.key})


def _is_own(record: Effect, agent: str, token: int) -> bool:
    return record.state == RUNNING and (record.agent, record.token) == (agent, token)


def subject(event: Event) -> str:
    if event.body["code"] == NOT_STARTED:
        return f"{event.body['key']} was not started by {event.agent}"
    return f"done {event.body['key']} by {event.agent}: exit code {event.body['code']}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    key = check_legal(event, check_key, body["key"])
    record = once_record(state, key)
    if (
        record is None
        or not _is_own(record, event.agent, body["token"])
        or not NOT_STARTED <= body["code"] <= MOST_CODE
    ):
        raise Illegal(f"event {event.seq} ends '{key}', which '{event.agent}' did not begin so")
    if body["code"] == NOT_STARTED:
        return {once_file(key): None}
    return {once_file(key): record._replace(state=DONE, code=body["code"], ended=event.at).to_record()}


KIND = Kind(FIELDS, subject, apply, recall_from_body(decide, Done))
