"""The commands that could have made a grant in the ledger. The server decides them again."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.claims.events.expire import expired_keys
from gitcoord.claims.model import WRITE, Item, own_claim, prefetch_own
from gitcoord.claims.renew import Renew
from gitcoord.claims.renew import decide as decide_renew
from gitcoord.claims.take import Take, decide
from gitcoord.ledger.event import Event
from gitcoord.ledger.kinds import Recalled
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.sessions.admission import as_started, resumed
from gitcoord.sessions.events import start
from gitcoord.startup.annotations import Any


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    """The commands that could have made a chain which ends in a grant: take, renew, start."""
    first, last = events[0], events[-1]
    bodies = [event.body for event in _granted(state, events)]
    items = tuple(Item(*pair) for body in bodies for pair in body["items"])
    actor = as_started(events, actor)
    common = {key: _common(bodies, key) for key in ("ttl", "expected", "units", "reason", "task")}
    said = last.keep or common
    units = common["units"] if said.get("units") == common["units"] else 0
    take = Take(
        actor, _in_order(items, said), last.body["mode"], _said(said, "ttl", 0), _said(common, "expected", 0),
        _said(said, "reason", ""), _said(said, "task", ""), _head(state, items, bodies, actor.agent), units or 0,
        first.nonce if last.keep is not None else "", expired_keys(events),
    )  # fmt: skip
    renew = Renew(actor, tuple(Item(*e.body["items"][0]) for e in events if e.kind == "claim"), last.body["ttl"])
    found = [Recalled(decide, take), Recalled(decide_renew, renew)]
    return found + start.recall(state, events, actor)


def _granted(state: State, events: list[Event]) -> list[Event]:
    """The chain's last grants, without those by which a new session goes on with the claims of the one before."""
    start = len(events)
    while start and events[start - 1].kind == "claim":
        start -= 1
    if start and events[start - 1].kind == "start":
        start += len(resumed(state, events[0].agent))
    return events[start:] or events[-1:]


def _in_order(items: tuple[Item, ...], said: Record) -> tuple[Item, ...]:
    """The items as the command named them, if that was kept. What was kept may be anything."""
    position = {str(pair): index for index, pair in enumerate(_said(said, "items", []))}
    return tuple(sorted(items, key=lambda item: position.get(str(list(item)), 0)))


def _common(bodies: list[Record], key: str) -> Any:
    """The value that all bodies have; None if they differ, so that it cannot have been given."""
    value = bodies[0][key]
    return value if all(body[key] == value for body in bodies) else None


def _said(record: Record, key: str, default: Any) -> Any:
    value = record.get(key, default)
    return value if type(value) is type(default) else default


def _head(state: State, items: tuple[Item, ...], bodies: list[Record], agent: str) -> str:
    """The claimant's HEAD: the base of an item that did not keep the base of an earlier claim."""
    prefetch_own(state, items, agent)
    for item, base in zip(items, (base for body in bodies for base in body["bases"])):
        own = own_claim(state, item, agent)
        if own is None or own.mode != WRITE or bodies[0]["mode"] != WRITE:
            return str(base)
    return ""
