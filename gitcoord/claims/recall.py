"""The commands that could have made a grant in the ledger. The server decides them again."""

from __future__ import annotations

from gitcoord.claims.events.expire import expired_keys
from gitcoord.claims.model import WRITE, Item, own_claim, prefetch_own
from gitcoord.claims.renew import Renew, decide_renew
from gitcoord.claims.take import Take, decide
from gitcoord.ledger.kinds import attempt
from gitcoord.sessions.admission import as_started
from gitcoord.sessions.events import start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitcoord.base.codec import Record
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.kinds import Attempt
    from gitcoord.ledger.sessions import Actor
    from gitcoord.ledger.state import State


def recall(state: State, events: list[Event], actor: Actor) -> list[Attempt]:
    """The commands that could have made a chain which ends in a grant: take, renew, start."""
    first, last = events[0], events[-1]
    body, said = last.body, last.keep or last.body
    items = tuple(Item(*pair) for pair in body["items"])
    actor = as_started(events, actor)
    take = Take(
        actor, items, body["mode"], _said(said, "ttl", 0), body["expected"], _said(said, "reason", ""),
        _said(said, "task", ""), _head(state, items, body, actor.agent), body["units"], first.nonce,
        last.keep is not None, first.refused, expired_keys(events),
    )  # fmt: skip
    renew = Renew(actor, tuple(Item(*e.body["items"][0]) for e in events if e.kind == "claim"), body["ttl"])
    renew = renew._replace(nonce=first.nonce, refused=first.refused)
    found = [attempt(decide, take), attempt(decide_renew, renew)]
    return found + start.recall(state, events, actor)


def _said(record: Record, key: str, default: Any) -> Any:
    value = record.get(key, default)
    return value if type(value) is type(default) else default


def _head(state: State, items: tuple[Item, ...], body: Record, agent: str) -> str:
    """The claimant's HEAD: the base of an item that did not keep the base of an earlier claim."""
    prefetch_own(state, items, agent)
    for item, base in zip(items, body["bases"]):
        own = own_claim(state, item, agent)
        if own is None or own.mode != WRITE or body["mode"] != WRITE:
            return str(base)
    return ""
