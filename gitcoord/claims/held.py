"""The refusal of a claim that others hold: every holder, how many wait, and what helps."""

from __future__ import annotations

from gitcoord.base.errors import Refusal
from gitcoord.base.names import printable, shown
from gitcoord.claims.model import INTENT, WRITE, Claim, Item, own_claim
from gitcoord.ledger.sessions import Expiry, hint_of_ended
from gitcoord.ledger.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.claims.take import Take


def held(state: State, command: Take, live: list[tuple[Claim, Expiry]]) -> Refusal:
    """The refusal with every holder. It never says how to take a live claim away."""
    rows = [claim.to_json(verdict.expires_in) for claim, verdict in live]
    names = ", ".join(sorted({claim.agent for claim, _ in live}))
    what = f"{len(command.items)} paths: nothing was claimed;"
    if len(command.items) == 1:
        what = f"'{printable(shown(command.items[0].name, command.items[0].space))}'"
    waiters = _waiters(state, command.items)
    hints = _two_intents(state, command, [claim for claim, _ in live])
    ended = hint_of_ended(state, (claim.agent for claim, _ in live))
    hints = hints or ((ended,) if ended else ())
    return Refusal("held", f"{what} held by {names}{waiters}", tuple(rows), hints)


def _waiters(state: State, items: tuple[Item, ...]) -> str:
    """How many requests wait for one of these items, in words."""
    if not state.names("waits"):
        return ""
    from gitcoord.claims.requests import directory_of, requests_around  # only where somebody waits

    count = len({r.ticket for item in items for r in requests_around(state, directory_of(state, item))})
    return f", {count} waiting" if count else ""


def _two_intents(state: State, command: Take, others: list[Claim]) -> tuple[str, ...]:
    """Hints for intents on one path of which one wants to write: the younger gives way to the oldest."""
    if command.mode != WRITE:
        return ()
    older: list[tuple[int, str]] = []
    younger: list[tuple[int, str]] = []
    for other in others:
        mine = own_claim(state, other.item, command.actor.agent) if other.mode == INTENT else None
        if mine is not None and mine.mode == INTENT:
            (older if other.token < mine.token else younger).append((other.token, other.agent))
    if older:
        return (f"{min(older)[1]} has the older intent: release yours, then wait for the path",)
    return tuple(f"your intent is the older one: wait until {name} releases its own" for _, name in younger)
