"""`fsck --repair`: every difference that `fsck` names is repaired, and nothing is thrown away.

A ledger that is replaced stays below refs/gitcoord/lost/. Commits that are no events stay in the history, named by a
repair event. Where events may be lost for good, an epoch event leaps, so that no token is ever given twice.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, LockHeld, StoreError
from gitcoord.base.names import CLAIMS, LEDGER, LOST, SESSIONS, TIP, Oid
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.locks.queue import QueuedLock
from gitcoord.git.loose_writer import framed, hasher
from gitcoord.git.plumbing_store import PlumbingStore
from gitcoord.git.store import Reader, Store, SwapFailed, Verify, move
from gitcoord.git.tree import TreeEditor, Trees
from gitcoord.ledger.commit import refuse_newer
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event
from gitcoord.ledger.events.epoch import LEAP
from gitcoord.ledger.fsck import Replay, blobs_of, examine, replay, tree_differences
from gitcoord.ledger.remote.fetch import PushLock
from gitcoord.ledger.remote.server_repair import push_rows, repair_server
from gitcoord.ledger.repair.lost_events import commit_at, epoch, events_among, highest_seq, newest_claim, newest_event
from gitcoord.ledger.repair.projection import projection_rows
from gitcoord.ledger.repair.rewritten_ledger import is_rewritten, restore_original
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.transaction import event_commit, swap_over_locks

_LOCKED_MS = 5000  # how long a lock is waited for that may be a living git's


def repair(ctx: Context, actor: Actor, reader: Reader | None = None) -> dict[str, object]:
    """Repair what `fsck` names, under the writers' queue. Gives what was done and what is left."""
    done: list[str] = []
    with _push_lock(ctx), ctx.queue():
        if isinstance(ctx.local, PlumbingStore):
            ctx.local.replay_redo_log(every=True)
        _clear_locks(ctx, done)
        _clear_broken_refs(ctx, done)
        if ctx.remote:
            repair_server(ctx, actor, reader or ctx.store, done)
        else:
            _restore_ledger(ctx, actor, reader or ctx.store, done)
        _, outcome = examine(ctx, reader or ctx.store)
        _append_repair(ctx, actor, outcome, done)
        _, outcome = examine(ctx, reader or ctx.store)
        _project(ctx, actor, outcome, done)
    found, _ = examine(ctx, reader or ctx.store)
    return {"clean": not found["differences"], "repaired": done, **found}


def _push_lock(ctx: Context) -> QueuedLock:
    """The lock that keeps this clone from pushing and fetching meanwhile. It is taken before the queue, as everywhere."""
    return PushLock(ctx) if ctx.remote else QueuedLock(ctx.scratch("carry.lock"), 0)


def _clear_locks(ctx: Context, done: list[str]) -> None:
    end = ctx.host.mono() + _LOCKED_MS
    while True:
        try:
            if ctx.store.remove_stale_locks([Verify(LEDGER, ""), Verify(TIP, "")]):
                done.append("removed lock files of a dead git process")
            return
        except LockHeld:  # most likely a git at work, which lets go in a moment
            if ctx.host.mono() > end:
                raise
            ctx.host.pause(0.05)


def _clear_broken_refs(ctx: Context, done: list[str]) -> None:
    """git refuses to move or delete a ref whose file it cannot read: such a file is set aside."""
    for name in ctx.store.move_broken_refs_aside([LEDGER, TIP, CLAIMS.rstrip("/"), SESSIONS.rstrip("/")]):
        done.append(f"set a broken {name} aside")


def _swap(ctx: Context, actor: Actor, *rows: tuple[str, Oid | None, Oid | None]) -> None:
    if ctx.remote:
        push_rows(ctx, actor, list(rows))
        return
    operations = [operation for row in rows if (operation := move(*row)) is not None]
    if operations:
        try:
            swap_over_locks(ctx, operations)
        except SwapFailed as failure:
            raise StoreError(
                f"the repair could not move the refs: {failure.message}", hints=("run it again",)
            ) from None


def _restore_ledger(ctx: Context, actor: Actor, reader: Reader, done: list[str]) -> None:
    """A ledger that is gone, rewound or replaced goes back to its recorded tip; without one, to the newest grant left."""
    head, tip = ctx.store.resolve([LEDGER, TIP])
    for oid in (head, tip):
        if oid is not None:
            refuse_newer(ctx.store, oid)
    if head is not None and is_rewritten(ctx, head, tip):
        new = restore_original(ctx, actor, reader, head, done)
        if new is not None:
            _keep_replaced(ctx, actor, head, done)
            _swap(ctx, actor, (LEDGER, head, new), (TIP, tip, new))
        return
    if tip is not None and head is not None and (head == tip or is_ancestor(ctx.repo.env, tip, head)):
        return
    if tip is not None:
        if head is not None and not is_ancestor(ctx.repo.env, head, tip):
            _keep_replaced(ctx, actor, head, done)
        _swap(ctx, actor, (LEDGER, head, tip))
        done.append(f"put the ledger back to its recorded tip {tip[:12]}")
        return
    # The tip is gone too. A head that is an event is the best evidence; without one, the newest event that is left.
    newest = commit_at(ctx, head) or newest_claim(ctx) or newest_event(ctx)
    if newest is None:
        raise CouldNotJudge(
            "no trace of the ledger is left in this repository", hints=("restore it from a backup or a clone",)
        )
    if head is not None and newest.oid == head and not newest.parents:
        return  # a torn init: the tip is set below
    if head is not None and newest.oid != head:
        _keep_replaced(ctx, actor, head, done)
    # Events after this one may be lost: leap, so that none of their tokens is ever given again.
    highest = max(newest.event.seq, highest_seq(ctx))
    event = epoch(ctx, actor, highest + LEAP, "the ledger's tip was lost")
    commit = ctx.store.write("commit", event_commit(ctx, event, newest.tree, newest.oid))
    _swap(ctx, actor, (LEDGER, head, commit), (TIP, None, commit))
    done.append(f"went on from event {newest.event.seq} ({newest.oid[:12]}) and leapt to event {event.seq}")


def _keep_replaced(ctx: Context, actor: Actor, head: Oid, done: list[str]) -> None:
    _swap(ctx, actor, (LOST + head, ctx.store.resolve([LOST + head])[0], head))
    done.append(f"kept the replaced ledger at {LOST}{head}")


def _append_repair(ctx: Context, actor: Actor, outcome: Replay, done: list[str]) -> None:
    """Go on over commits that are no events, or over a tree that its events did not make."""
    if outcome.last is None:
        return
    head = ctx.store.resolve([LEDGER])[0]
    assert head is not None
    if not outcome.skipped and not tree_differences(ctx, outcome):
        return
    rewriter: Store = _ObjectRewriter(ctx.store)  # type: ignore[assignment]
    tree = TreeEditor(rewriter, Trees(ctx.store)).edit(None, dict(blobs_of(rewriter, outcome.state)))
    assert tree is not None
    if not outcome.skipped and tree == outcome.last.tree:
        ctx.store.flush()
        done.append("wrote missing or damaged objects of the ledger's tree again")
        return
    ctx.store.flush()
    body = {"skipped": outcome.skipped, "reason": "fsck --repair"}
    event = Event("repair", outcome.state.seq + 1, actor.agent, ctx.host.wall(), ctx.host.random(), 0, body)
    commit = ctx.store.write("commit", event_commit(ctx, event, tree, head))
    highest = max((commit.event.seq for commit in events_among(ctx, outcome.skipped)), default=0)
    if highest >= event.seq or ctx.remote:
        # The skipped commits have given tokens: leap over them, so that none is given again. A server accepts a repair only with an epoch.
        seq = max(highest, event.seq) + 1
        leap = Event("epoch", seq, actor.agent, ctx.host.wall(), event.nonce, 1, {"reason": "fsck --repair"})
        commit = ctx.store.write("commit", event_commit(ctx, leap, tree, commit))
    ctx.store.flush()
    rows = projection_rows(ctx, replay(ctx, ctx.store, start=commit))
    _swap(ctx, actor, (LEDGER, head, commit), *rows, (TIP, ctx.store.resolve([TIP])[0], commit))
    done.append(f"appended repair event {event.seq} over {len(outcome.skipped)} commit(s)")


class _ObjectRewriter:
    """Writes an object again where git cannot read it, or reads something else."""

    def __init__(self, store: Store) -> None:
        self.oid_length = store.oid_length
        self._store = store
        self._hash = hasher(store.oid_length)

    def write(self, kind: str, data: bytes) -> Oid:
        oid: Oid = self._hash(framed(kind, data)).hexdigest()
        try:
            (found,) = self._store.read([oid])
        except StoreError:
            found = None
        if found is None or (found.kind, found.data) != (kind, data):
            self._store.discard(oid)
        return self._store.write(kind, data)


def _project(ctx: Context, actor: Actor, outcome: Replay, done: list[str]) -> None:
    """Claim refs, tip and tombstones as the events say."""
    if outcome.last is None:
        return
    head, tip = ctx.store.resolve([LEDGER, TIP])
    changed = [*projection_rows(ctx, outcome), *([(TIP, tip, head)] if tip != head else [])]
    if changed:
        _swap(ctx, actor, *changed)
        done.append(f"set {len(changed)} ref(s) again")
