"""repair: the ledger goes on over commits that are no legal events; they are named and have no effect."""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.names import is_oid
from gitcoord.ledger.event import Event, Illegal
from gitcoord.ledger.kinds import Kind
from gitcoord.ledger.state import Changes, State

FIELDS: dict[str, Shape] = {"skipped": [str], "reason": str}


def subject(event: Event) -> str:
    return f"repair over {len(event.body['skipped'])} commit(s) by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    if not all(is_oid(oid) for oid in event.body["skipped"]):
        raise Illegal(f"event {event.seq} skips something that is no commit")
    return {}


KIND = Kind(FIELDS, subject, apply, personal=True)
