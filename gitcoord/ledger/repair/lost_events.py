"""Finding events of a ledger whose refs are gone: those that claim refs name, and those in the object store."""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.base.names import CLAIMS, Oid
from gitcoord.git.commands.objects import is_ancestor, list_objects
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event
from gitcoord.ledger.sessions import Actor
from gitcoord.startup.annotations import Iterator

_BATCH = 500


def commit_at(ctx: Context, oid: Oid | None) -> Commit | None:
    return next(events_among(ctx, [oid]), None) if oid is not None else None


def newest_claim(ctx: Context) -> Commit | None:
    """The newest grant that a claim ref still names: unlike a stray object, it was in the ledger."""
    grants = list(events_among(ctx, sorted(set(ctx.store.list_refs(CLAIMS).values()))))
    return max(grants, key=lambda commit: commit.event.seq, default=None)


def all_events(ctx: Context) -> Iterator[Commit]:
    """Every event that git still has, also of writers who lost their race."""
    rows = list_objects(ctx.repo.env).out.decode().split("\n")
    oids = [row[7:] for row in rows if row.startswith("commit ")]
    for start in range(0, len(oids), _BATCH):
        yield from events_among(ctx, oids[start : start + _BATCH])


def highest_seq(ctx: Context) -> int:
    return max((commit.event.seq for commit in all_events(ctx)), default=0)


def newest_event(ctx: Context) -> Commit | None:
    """The event with the highest Seq that descends from the recorded root."""
    root = ctx.settings.get("gitcoord.root")
    for commit in sorted(all_events(ctx), key=lambda commit: commit.event.seq, reverse=True):
        if not root or is_ancestor(ctx.repo.env, root, commit.oid):
            return commit
    return None


def epoch(ctx: Context, actor: Actor, seq: int, reason: str) -> Event:
    """The event that leaps to this number."""
    return Event("epoch", seq, actor.agent, ctx.host.wall(), ctx.host.random(), 0, {"reason": reason})


def events_among(ctx: Context, oids: list[Oid]) -> Iterator[Commit]:
    """The commits that can be read and are events."""
    try:
        objects = ctx.store.read(oids)
    except StoreError:
        # A damaged one ends git's reader: go on in halves until it stands alone.
        if len(oids) > 1:
            yield from events_among(ctx, oids[: len(oids) // 2])
            yield from events_among(ctx, oids[len(oids) // 2 :])
        return
    commits = [Commit(found, "an event") for found in objects if found is not None and found.kind == "commit"]
    yield from (commit for commit in commits if commit.is_event)
