"""`fsck --repair` where a remote decides: the server gets back what it lost, or a new epoch begins there.

The server's own history is never given up for this clone's. Events that are only missing there are pushed again. Where somebody
has written there since, that stays, and this clone is told which of the events it has seen are not in it. Either way an epoch
event leaps above every number that anybody can have seen: nobody knows what other clones saw. An epoch grants nobody anything, so a
later clone that has seen more may still put its events below it, as long as nothing else was written on top.

Each push expects the refs that were fetched just before: of two who repair at the same time one wins, and the other is told.
"""

from __future__ import annotations

from gitcoord.base.errors import Contention, CouldNotJudge, StoreError, UsageError
from gitcoord.base.names import LEDGER, LOST, TIP
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.store import RefUpdate, SwapFailed, move
from gitcoord.ledger.event import Decision, Event
from gitcoord.ledger.events.epoch import LEAP
from gitcoord.ledger.fsck import replay
from gitcoord.ledger.remote.batch import PushResult
from gitcoord.ledger.remote.fetch import STUBBORN, store_of, unreachable
from gitcoord.ledger.remote.git_remote import HOST, LANDED, NONE, Report
from gitcoord.ledger.remote.git_remote import LOST as LOST_RACE
from gitcoord.ledger.remote.push import push_options
from gitcoord.ledger.remote.server_behind import Comparison, compare, event_lines, foreign_error
from gitcoord.ledger.remote.transaction import push_error
from gitcoord.ledger.repair.lost_events import events_among, newest_claim, newest_event
from gitcoord.ledger.repair.projection import projection_rows
from gitcoord.ledger.setup import note_root, root_of
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.ledger.transaction import prepare, require_known_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.names import Oid
    from gitcoord.git.store import Reader
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.repair.projection import Row
    from gitcoord.ledger.sessions import Actor
    from gitcoord.ledger.snapshot import Commit


def repair_server(ctx: Context, actor: Actor, reader: Reader, done: list[str]) -> None:
    """Make the server's ledger and what this clone has seen one history again. The carrier's lock and the queue are held."""
    tip, ledger = ctx.local.resolve([TIP, LEDGER])
    # A plain `git fetch` may have moved the mirror on, or back; never the tip.
    newest = ledger if tip is None or (ledger is not None and is_ancestor(ctx.repo.env, tip, ledger)) else tip
    there = _fetch(ctx)
    seen = newest or there or _trace(ctx)
    if there is not None and is_ancestor(ctx.repo.env, seen, there):
        _move_here(ctx, [(TIP, tip, there)])
        _note_root(ctx, done)
        return
    comparison = compare(ctx, seen, there)
    if not comparison.related:
        raise foreign_error(ctx)
    if comparison.added and comparison.follows or comparison.rewritten and not comparison.lacking:
        _move_here(ctx, [(TIP, tip, there)])
        _note_root(ctx, done)
        return
    head = _restore(ctx, actor, reader, comparison, done) if comparison.replaceable else None
    _move_here(ctx, [(TIP, tip, head or _give_up(ctx, actor, comparison, done))])
    _note_root(ctx, done)


def _note_root(ctx: Context, done: list[str]) -> None:
    """The server's ledger is the one: also where it was rewritten, with the same events."""
    known, root = ctx.settings.get("gitcoord.root"), root_of(ctx)
    if known and known != root:
        note_root(ctx, root)
        done.append(f"took the ledger that begins at {root[:12]}: it was rewritten, with the same first event")


def _trace(ctx: Context) -> Oid:
    newest = newest_claim(ctx) or newest_event(ctx)
    if newest is None:
        raise CouldNotJudge(
            "no trace of the ledger is left, here or there", hints=("restore it from a backup or a clone",)
        )
    return newest.oid


def _fetch(ctx: Context) -> Oid | None:
    """Make the mirror the server's refs as they are now, whatever was seen before. The tip stays."""
    store = store_of(ctx)
    for _ in range(STUBBORN):
        report = store.remote.fetch(back=True)
        if report.kind == NONE:
            report = store.remote.fetch(back=True, ledger=False)
            if report.kind == LANDED:
                store.refresh()
                _move_here(ctx, [(LEDGER, store.local.resolve([LEDGER])[0], None)])
        if report.kind != LOST_RACE:
            break
        ctx.host.pause(0.05)
    store.refresh()
    if report.kind != LANDED:
        raise unreachable(ctx, report.words)
    return store.local.resolve([LEDGER])[0]


def _restore(ctx: Context, actor: Actor, reader: Reader, comparison: Comparison, done: list[str]) -> Oid | None:
    """Push what the server lacks, and an epoch on top. None where that takes a forced push, which the host does not allow."""
    head, seq = _epoch_on(ctx, actor, comparison.seen, comparison, "the server had lost events")
    outcome = replay(ctx, reader, start=head)
    there = comparison.there.oid if comparison.there is not None else None
    report = _push(ctx, actor, [(LEDGER, there, head), *projection_rows(ctx, outcome)])
    forced = bool(comparison.added) and not report.words.startswith(
        "gitcoord: "
    )  # a gate of ours takes it, from a person
    if forced and report.kind in (HOST, LOST_RACE) and _fetch(ctx) == there:
        return None
    _require(ctx, report, there)
    done += event_lines("brought back", comparison.lacking)
    done.append(f"began a new epoch at event {seq}: no number that anybody may have seen is given again")
    return head


def _give_up(ctx: Context, actor: Actor, comparison: Comparison, done: list[str]) -> Oid:
    """Go on from the server's history, above all numbers that were seen here; what is not in it is kept aside and named."""
    assert comparison.there is not None
    seen, head = comparison.seen.oid, comparison.there.oid
    if not comparison.leapt:
        head, seq = _epoch_on(ctx, actor, comparison.there, comparison, "histories diverged")
        _require(ctx, _push(ctx, actor, [(LEDGER, comparison.there.oid, head)]), comparison.there.oid)
        done.append(f"began a new epoch at event {seq}: numbers go on above all that were seen here")
    _move_here(ctx, [(LOST + seen, ctx.local.resolve([LOST + seen])[0], seen)])
    done.append(f"went on from what '{ctx.remote}' has; what was seen here before is kept at {LOST}{seen}")
    done += event_lines(
        "lost, since others have written there (claim or do again what is still needed)", comparison.lacking
    )
    return head


def _epoch_on(ctx: Context, actor: Actor, below: Commit, comparison: Comparison, reason: str) -> tuple[Oid, int]:
    """An epoch event on top of this commit, written and not pushed; and its number."""
    lost = events_among(ctx, sorted(set(ctx.local.list_refs(LOST).values())))
    known = [comparison.seen.event.seq, *(commit.event.seq for commit in lost)]
    known += [comparison.there.event.seq] if comparison.there is not None else []
    seq = max(known) + LEAP
    event = Event("epoch", seq, actor.agent, ctx.host.wall(), ctx.host.random(), 0, {"reason": reason})
    snapshot = Snapshot(ctx.store, None, below)
    require_known_format(snapshot)
    head, _ = prepare(ctx, snapshot, Decision([event], [], {}))
    ctx.store.flush()
    return head, seq


def push_rows(ctx: Context, actor: Actor, rows: list[Row]) -> None:
    """Move these refs there and here, all of them or none, or say why not."""
    _require(ctx, _push(ctx, actor, rows), ctx.local.resolve([LEDGER])[0])


def _push(ctx: Context, actor: Actor, rows: list[Row]) -> Report:
    """One push of all, each ref with what was fetched; this clone follows."""
    if ctx.reads_only:
        raise UsageError("this clone only looks at the ledger", hints=("run it in a clone that has joined it",))
    store = store_of(ctx)
    store.flush()
    moves = [RefUpdate(ref, old or "", new or "") for ref, old, new in rows if old != new]
    report = store.remote.push(moves, push_options(ctx, actor.agent))
    if report.kind != LANDED:
        return report
    if not store.follow(moves):
        raise StoreError(f"'{ctx.remote}' has done it, but this clone could not follow", hints=("run it again",))
    return report


def _require(ctx: Context, report: Report, there: Oid | None) -> None:
    """A gate that refuses what came too late says so in its own words: whether the ledger moved tells."""
    if report.kind == LANDED:
        return
    if report.kind == LOST_RACE or (report.kind == HOST and _fetch(ctx) != there):
        raise Contention(
            f"somebody else changed the ledger at '{ctx.remote}' meanwhile: nothing was changed",
            hints=("run it again",),
        )
    raise push_error(ctx, PushResult(*report))


def _move_here(ctx: Context, rows: list[Row]) -> None:
    """Refs of this clone alone."""
    operations = [operation for row in rows if (operation := move(*row)) is not None]
    if operations:
        try:
            ctx.local.swap(operations)
        except SwapFailed as failure:
            raise StoreError(
                f"this clone's refs could not be moved: {failure.message}", hints=("run it again",)
            ) from None
