"""`fsck --repair` with a remote authority: push the events that the server lost, or begin a new epoch there.

The server's own history is never replaced by this clone's. Events that are only missing there are pushed again. If other events
were written there since, they stay, and the repair lists the events that this clone has seen and that are not among them. Either
way an epoch leaps above every number that any clone can have seen, since it is unknown what other clones saw. An epoch grants
nothing, so a later clone that has seen more may still push its events below it, as long as nothing else was written on top.

Each push expects the refs that were fetched just before: of two concurrent repairs one wins, and the other is told.
"""

from __future__ import annotations

from gitcoord.base.errors import Contention, CouldNotJudge, StoreError, UsageError
from gitcoord.base.names import LEDGER, LOST, TIP, Oid
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.store import Reader, RefUpdate, SwapFailed, move
from gitcoord.ledger.commit import newer_ledger
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision
from gitcoord.ledger.events.epoch import LEAP
from gitcoord.ledger.fsck import replay
from gitcoord.ledger.remote.fetch import STUBBORN, store_of, unreachable
from gitcoord.ledger.remote.git_remote import LANDED, NO_LEDGER, RACED, REJECTED, RemoteResult
from gitcoord.ledger.remote.push import push_options
from gitcoord.ledger.remote.server_behind import Comparison, compare, event_lines, foreign_error
from gitcoord.ledger.remote.transaction import push_error
from gitcoord.ledger.repair.lost_events import epoch, events_among, newest_claim, newest_event
from gitcoord.ledger.repair.projection import Row, projection_rows
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import note_root, root_of
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.ledger.transaction import prepare, require_known_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.commit import Commit


def repair_server(ctx: Context, actor: Actor, reader: Reader, done: list[str]) -> None:
    """Make the server's ledger and the history that this clone has seen one again. The caller holds push lock and queue."""
    tip, ledger = ctx.local.resolve([TIP, LEDGER])
    # A plain `git fetch` may have moved the mirror forward or back, but never the tip.
    newest = ledger if tip is None or (ledger is not None and is_ancestor(ctx.repo.env, tip, ledger)) else tip
    there = _fetch(ctx)
    seen = newest or there or _newest_trace(ctx)
    head = there
    if there is None or not is_ancestor(ctx.repo.env, seen, there):
        comparison = compare(ctx, seen, there)
        if not comparison.related:
            raise foreign_error(ctx)
        if not (comparison.added and comparison.follows or comparison.rewritten and not comparison.lacking):
            head = _push_lacking(ctx, actor, reader, comparison, done) if comparison.replaceable else None
            head = head or _continue_there(ctx, actor, comparison, done)
    _move_local(ctx, [(TIP, tip, head)])
    _note_root(ctx, done)


def _note_root(ctx: Context, done: list[str]) -> None:
    """Note the root of the server's ledger, if it was rewritten with the same events."""
    known, root = ctx.settings.get("gitcoord.root"), root_of(ctx)
    if known and known != root:
        note_root(ctx, root)
        done.append(f"took the ledger that begins at {root[:12]}: it was rewritten, with the same first event")


def _newest_trace(ctx: Context) -> Oid:
    newest = newest_claim(ctx) or newest_event(ctx)
    if newest is None:
        raise CouldNotJudge(
            "no trace of the ledger is left, here or there", hints=("restore it from a backup or a clone",)
        )
    return newest.oid


def _fetch(ctx: Context) -> Oid | None:
    """Set the mirror to the server's refs as they are now, also back. The tip stays."""
    store = store_of(ctx)
    for _ in range(STUBBORN):
        result = store.remote.fetch(back=True)
        if result.kind == NO_LEDGER:
            result = store.remote.fetch(back=True, ledger=False)
            if result.kind == LANDED:
                store.refresh()
                _move_local(ctx, [(LEDGER, store.local.resolve([LEDGER])[0], None)])
        if result.kind != RACED:
            break
        ctx.host.pause(0.05)
    store.refresh()
    if result.kind != LANDED:
        raise unreachable(ctx, result.words)
    return store.local.resolve([LEDGER])[0]


def _push_lacking(ctx: Context, actor: Actor, reader: Reader, comparison: Comparison, done: list[str]) -> Oid | None:
    """Push the lacking events and an epoch on top. None if that needs a forced push and the host does not allow it."""
    head, seq = _epoch_on(ctx, actor, comparison.seen, comparison, "the server had lost events")
    replayed = replay(ctx, reader, start=head)
    if replayed.newer is not None:
        raise newer_ledger(replayed.newer)
    there = comparison.there.oid if comparison.there is not None else None
    result = _push(ctx, actor, [(LEDGER, there, head), *projection_rows(ctx, replayed)])
    # gitcoord's own gate allows it to a person.
    forced = bool(comparison.added) and not result.words.startswith("gitcoord: ")
    if forced and result.kind in (REJECTED, RACED) and _fetch(ctx) == there:
        return None
    _require(ctx, result, there)
    done += event_lines("brought back", comparison.lacking)
    done.append(f"began a new epoch at event {seq}: no number that anybody may have seen is given again")
    return head


def _continue_there(ctx: Context, actor: Actor, comparison: Comparison, done: list[str]) -> Oid:
    """Continue the server's history above all numbers that were seen here; keep aside and list what is not in it."""
    assert comparison.there is not None
    seen, head = comparison.seen.oid, comparison.there.oid
    if not comparison.leapt:
        head, seq = _epoch_on(ctx, actor, comparison.there, comparison, "histories diverged")
        _require(ctx, _push(ctx, actor, [(LEDGER, comparison.there.oid, head)]), comparison.there.oid)
        done.append(f"began a new epoch at event {seq}: numbers go on above all that were seen here")
    _move_local(ctx, [(LOST + seen, ctx.local.resolve([LOST + seen])[0], seen)])
    done.append(f"went on from what '{ctx.remote}' has; what was seen here before is kept at {LOST}{seen}")
    done += event_lines(
        "lost, since others have written there (claim or do again what is still needed)", comparison.lacking
    )
    return head


def _epoch_on(ctx: Context, actor: Actor, below: Commit, comparison: Comparison, reason: str) -> tuple[Oid, int]:
    """Write an epoch event on top of this commit without pushing it. Gives its commit and its number."""
    lost = events_among(ctx, sorted(set(ctx.local.list_refs(LOST).values())))
    known = [comparison.seen.event.seq, *(commit.event.seq for commit in lost)]
    known += [comparison.there.event.seq] if comparison.there is not None else []
    seq = max(known) + LEAP
    event = epoch(ctx, actor, seq, reason)
    snapshot = Snapshot(ctx.store, None, below)
    require_known_format(snapshot)
    head, _ = prepare(ctx, snapshot, Decision([event], [], {}))
    ctx.store.flush()
    return head, seq


def push_rows(ctx: Context, actor: Actor, rows: list[Row]) -> None:
    """Move these refs at the remote and in the mirror, all of them or none."""
    _require(ctx, _push(ctx, actor, rows), ctx.local.resolve([LEDGER])[0])


def _push(ctx: Context, actor: Actor, rows: list[Row]) -> RemoteResult:
    """Push all, each ref with the fetched value as the expected one, and update the mirror."""
    if ctx.reads_only:
        raise UsageError("this clone only reads the ledger", hints=("run it in a clone that has joined it",))
    store = store_of(ctx)
    store.flush()
    moves = [RefUpdate(ref, old or "", new or "") for ref, old, new in rows if old != new]
    result = store.remote.push(moves, push_options(ctx, actor.agent))
    if result.kind != LANDED:
        return result
    if not store.follow(moves):
        raise StoreError(f"'{ctx.remote}' has done it, but this clone could not follow", hints=("run it again",))
    return result


def _require(ctx: Context, result: RemoteResult, there: Oid | None) -> None:
    """Raise unless the push landed. A push that a gate rejected lost a race if the ledger has moved since."""
    if result.kind == LANDED:
        return
    if result.kind == RACED or (result.kind == REJECTED and _fetch(ctx) != there):
        raise Contention(
            f"somebody else changed the ledger at '{ctx.remote}' meanwhile: nothing was changed",
            hints=("run it again",),
        )
    raise push_error(ctx, result)


def _move_local(ctx: Context, rows: list[Row]) -> None:
    """Move refs of this clone only."""
    operations = [operation for row in rows if (operation := move(*row)) is not None]
    if operations:
        try:
            ctx.local.swap(operations)
        except SwapFailed as failure:
            raise StoreError(
                f"this clone's refs could not be moved: {failure.message}", hints=("run it again",)
            ) from None
