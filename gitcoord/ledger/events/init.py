"""init: the first event of a ledger. It fixes format, case folding, trunk and authority."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.ledger.event import Event, Illegal
from gitcoord.ledger.format import FORMAT_MAJOR, Format
from gitcoord.ledger.kinds import Kind, subject
from gitcoord.ledger.state import Changes, State

README = """This branch is the ledger of gitcoord: who claimed which path, who released it with which commit, who works here.

Each commit is one event, and the tree is the state after it. Do not commit here by hand, rebase or rewrite it; use
`git claim`, `git handoff` and `git coord`. `git coord log` shows the events, `git coord fsck` checks them.
"""

FIELDS = {"case": str, "sync": str, "authority": dict}


def first_event(agent: str, at: int, nonce: str, *, fold: bool, sync: str, authority: Record) -> Event:
    body = {"case": "fold" if fold else "exact", "sync": sync, "authority": authority}
    return Event("init", 1, agent, at, nonce, 0, body)


def apply(state: State, event: Event) -> Changes:
    if state.seq:
        raise Illegal("a ledger begins once")
    return {
        "format": Format(FORMAT_MAJOR, 0, **event.body, ledger=event.nonce).to_record(),
        "README.md": {"text": README},
    }


KIND = Kind(FIELDS, subject("init by {agent}"), apply)
