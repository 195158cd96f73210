"""forget: a person says that an effect which was to happen once may be tried again."""

from __future__ import annotations

from gitcoord.base.errors import Refused, raise_if, refused
from gitcoord.base.texts import one_line
from gitcoord.effects.once import UNDER_WAY, check_key, once_file, once_record, refuse_unfinished
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, recall_from_body, subject
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import not_an_approver
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"key": str, "token": int, "reason": str}


class Forget(NamedTuple):
    """The command."""

    actor: Actor
    key: str
    reason: str


def decide(state: State, command: Forget, world: World) -> Decision:
    """Refuse while it runs. A known outcome may be forgotten too, such as a failed one."""
    check_key(command.key)
    reason = one_line(command.reason, "reason")
    raise_if(dead(state, world, command.actor.agent))
    raise_if(not_an_approver(command.actor, world, "forget an outcome", "ask one of them"))
    record = once_record(state, command.key)
    if record is None:
        raise refused("unknown", f"nothing was ever begun as '{command.key}'", "git coord once --list")
    refusal = refuse_unfinished(state, world, record)
    if refusal is not None and refusal.code == UNDER_WAY:
        raise Refused(refusal)
    chain = Chain(state, command.actor.agent, world)
    event = chain.add("forget", {"key": command.key, "token": record.token, "reason": reason})
    return Decision(chain.events, [], {"key": command.key, "token": record.token, "seq": event.seq})


def apply(state: State, event: Event) -> Changes:
    key = check_legal(event, check_key, event.body["key"])
    check_legal(event, one_line, event.body["reason"], "reason")
    record = once_record(state, key)
    if record is None or record.token != event.body["token"]:
        raise Illegal(f"event {event.seq} forgets '{key}', which was not begun so")
    return {once_file(key): None}


KIND = Kind(FIELDS, subject("forget {key} by {agent}"), apply, recall_from_body(decide, Forget))
