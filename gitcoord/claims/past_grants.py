"""Past grants, read from the events that made them, by token."""

from __future__ import annotations

from gitcoord.base.codec import Malformed
from gitcoord.claims.model import Grant, grants_in
from gitcoord.git.commands.objects import first_parents
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event
from gitcoord.ledger.snapshot import Snapshot

_FURTHEST = 100_000  # events back; an agent that comes back later has to claim again


def read_grants(ctx: Context, snapshot: Snapshot, tokens: list[int]) -> list[Grant]:
    """The grants of these events. Events that are too old or missing are left out."""
    behind = {token: snapshot.state.seq - token for token in tokens if 0 <= snapshot.state.seq - token < _FURTHEST}
    if not behind:
        return []
    most = max(behind.values()) + 1
    oids = first_parents(ctx.repo.env, snapshot.head, most=most).require("git cannot walk the ledger").lines
    found: list[Grant] = []
    wanted = {token: oids[index] for token, index in behind.items() if index < len(oids)}
    for (token, oid), commit in zip(wanted.items(), ctx.store.read(list(wanted.values()))):
        try:
            event = Commit(commit, oid).event
        except Malformed:
            continue
        if event.seq == token:  # an epoch may have skipped numbers
            found += _granted(event)
    return found


def _granted(event: Event) -> list[Grant]:
    body = event.body
    if event.kind == "claim":
        return grants_in(body, event.seq)
    if event.kind == "accept":
        keys = ("mode", "ttl", "expected", "reason", "task", "base", "units")
        rows = zip(body["items"], body["grants"])
        return [Grant(space, path, event.seq, *(row[key] for key in keys)) for (space, path), row in rows]
    return []
