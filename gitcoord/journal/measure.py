"""Contention as the events of the ledger tell it: by path and by agent, and the hot spots."""

from __future__ import annotations

from gitcoord.base.codec import MAX_EVENT, Malformed, Record, loads
from gitcoord.git.commands.objects import first_parent_messages
from gitcoord.journal.contention import Contention
from gitcoord.journal.service import Since
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.snapshot import Snapshot

_EARLIER = 30 * 86_400  # a wait or hold that is counted may have begun so long before


def measure(ctx: Context, snapshot: Snapshot, since: Since, *, most: int = 0) -> Record:
    """The figures from `since` on; `most`: of so many events at most, the last ones. Events are read as they are; `fsck` is there to
    doubt them."""
    start = max(0, since.at - _EARLIER) if since.at else 0
    answer = first_parent_messages(ctx.repo.env, snapshot.head, since=start, most=most)
    if answer.code and ctx.store.replay_redo_log():
        answer = first_parent_messages(ctx.repo.env, snapshot.head, since=start, most=most)
    answer.require("git cannot walk the ledger")
    found = Contention(since.at, seq=since.seq, case=folds_case(snapshot.state))
    for entry in answer.out.split(b"\0\n"):
        parts = entry.split(b"\n\n")
        try:
            found.read(loads(parts[1], MAX_EVENT))
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, Malformed):
            continue  # no event, or a broken one: fsck names it
    return {"since": since.at, **found.result()}
