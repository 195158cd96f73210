"""How claims were granted that are no more: the events that made them, found by their tokens."""

from __future__ import annotations

from gitcoord.base.codec import Malformed
from gitcoord.git.commands.objects import first_parents
from gitcoord.ledger.snapshot import Commit
from gitcoord.sessions.events.start import AGAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.codec import Record
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.snapshot import Snapshot

_FURTHEST = 100_000  # events back; whoever comes back later claims anew


def read_grants(ctx: Context, snapshot: Snapshot, tokens: list[int]) -> list[Record]:
    """What each of these events granted; nothing for one that is too far back, or cannot be found where it should be."""
    behind = {token: snapshot.state.seq - token for token in tokens if 0 <= snapshot.state.seq - token < _FURTHEST}
    if not behind:
        return []
    most = max(behind.values()) + 1
    oids = first_parents(ctx.repo.env, snapshot.head, most=most).require("git cannot walk the ledger").lines
    found: list[Record] = []
    wanted = {token: oids[index] for token, index in behind.items() if index < len(oids)}
    for (token, oid), commit in zip(wanted.items(), ctx.store.read(list(wanted.values()))):
        try:
            event = Commit(commit, oid).event
        except Malformed:
            continue
        if event.seq == token:  # an epoch may have leapt
            found += [{**row, "token": token} for row in _granted(event)]
    return found


def _granted(event: Event) -> list[Record]:
    body = event.body
    if event.kind == "claim":
        said = {key: body[key] for key in AGAIN if key != "base"}
        return [{"item": item, "base": base, **said} for item, base in zip(body["items"], body["bases"])]
    if event.kind == "accept":
        rows = zip(body["items"], body["grants"])
        return [{"item": item, **{key: grant[key] for key in AGAIN}} for item, grant in rows]
    return []
