"""claim: one or several paths or resources are granted to one agent, all or none."""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.names import PATH, RESOURCE, check_path, check_resource, printable, shown
from gitcoord.claims.model import (
    MAX_TTL,
    MIN_TTL,
    MODES,
    WRITE,
    Claim,
    Item,
    compatible,
    file_of,
    overlapping,
    own_claim,
)
from gitcoord.ledger.event import Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, Recalled, Touched, paths_in
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.sessions.admission import require_open

FIELDS: dict[str, Shape] = {
    "session": int, "items": [(str, str)], "mode": str, "ttl": int, "expected": int, "reason": str, "task": str,
    "bases": [str], "units": int, "capacity": dict,
}  # fmt: skip


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    from gitcoord.claims import recall as recalled

    return recalled.recall(state, events, actor)


def subject(event: Event) -> str:
    items = event.body["items"]
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    mode = "" if event.body["mode"] == WRITE else f" ({event.body['mode']})"
    return f"claim {shown(items[0][1], items[0][0])}{more}{mode} by {event.agent}"


def _claim(event: Event, item: Item, base: str, before: Claim | None) -> Claim:
    """The claim. A text that is not given again stays as it was."""
    body = event.body
    return Claim(
        item.name, item.space, event.agent, body["session"], body["mode"], event.seq, body["ttl"], body["expected"],
        body["reason"] or (before.reason if before is not None else ""),
        body["task"] or (before.task if before is not None else ""),
        base, event.nonce, event.at, body["units"],
    )  # fmt: skip


def apply(state: State, event: Event) -> Changes:
    require_open(state, event.agent, event.body["session"])
    if event.body["mode"] not in MODES or event.body["units"] < 1 or not MIN_TTL <= event.body["ttl"] <= MAX_TTL:
        raise Illegal(f"event {event.seq} grants in a mode, number or ttl that does not exist")
    if len(event.body["items"]) != len(event.body["bases"]) or not all(
        type(units) is int for units in event.body["capacity"].values()
    ):
        raise Illegal(f"event {event.seq} does not fit together")
    changes: Changes = {}
    for pair, base in zip(event.body["items"], event.body["bases"]):
        item = checked_item(Item(*pair), event)
        capacity = event.body["capacity"].get(item.name, 1)
        require_free(state, event, item, event.body["mode"], event.body["units"], capacity)
        file = file_of(state, item, event.agent)
        claim = _claim(event, item, base, own_claim(state, item, event.agent))
        changes[file] = claim.checked(file).to_record()
    if state.names("waits"):
        from gitcoord.claims.requests import consume  # only where somebody waits

        consume(state, event.agent, changes)
    return changes


def checked_item(item: Item, event: Event) -> Item:
    """The item itself; Illegal if no command could have named it so."""
    clean = check_legal(event, check_path if item.space == PATH else check_resource, item.name)
    if clean != item.name or item.space not in (PATH, RESOURCE):
        raise Illegal(f"event {event.seq} names something that cannot be claimed")
    return item


def require_free(state: State, event: Event, item: Item, mode: str, units: int, capacity: int) -> None:
    """Illegal if claims of others conflict with what the event grants."""
    capacity = capacity if item.space == RESOURCE else 1
    for claim in overlapping(state, item):
        if claim.agent == event.agent:
            continue
        if capacity > 1 and claim.path == item.name:
            units += claim.units
        elif not compatible(claim.mode, mode):
            raise Illegal(f"event {event.seq} grants '{printable(item.name)}', which {claim.agent} holds")
    if units > max(capacity, 1) and item.space == RESOURCE:
        raise Illegal(f"event {event.seq} grants more of '@{item.name}' than there is")


def refs(state: State, event: Event) -> dict[str, bool]:
    return {"refs/" + file_of(state, Item(*pair), event.agent): True for pair in event.body["items"]}


def touches(event: Event) -> Touched:
    return Touched(paths=paths_in(event.body["items"]))


KIND = Kind(FIELDS, subject, apply, recall, refs, touches=touches)
