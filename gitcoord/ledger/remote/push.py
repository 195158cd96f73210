"""Pushing a batch to the remote authority: one push for all requests that wait in this clone."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, Unreachable
from gitcoord.base.names import LEDGER, Oid
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.backoff import note_push
from gitcoord.ledger.remote.batch import (
    PUSHING,
    QUEUED,
    Batch,
    drop_batch,
    load_batch,
    note_result,
    result_of,
    start_push,
)
from gitcoord.ledger.remote.fetch import (
    STUBBORN,
    PushLock,
    fetch,
    note_failure,
    note_fetched,
    restart_patience,
    store_of,
)
from gitcoord.ledger.remote.git_remote import (
    FAILED,
    LANDED,
    RACED,
    REJECTED,
    UNKNOWN,
    UNREACHABLE,
    RemoteResult,
    is_extra,
)
from gitcoord.startup.annotations import Iterator

SPLIT = "split"  # the remote rejected a batch of several requests
STUCK = "stuck"  # not pushed: another process holds a lock and does not go on
UNCERTAIN = "untold"  # the same, and that process may still push it


def push_batch(ctx: Context, batch_id: str) -> RemoteResult:
    """Wait until the batch has landed or failed; push it if no other process does."""
    with PushLock(ctx) as lock:
        result = result_of(ctx, batch_id)
        if result is not None:
            return result
        if not lock.acquired:
            return RemoteResult(STUCK if withdraw(ctx, batch_id) else UNCERTAIN)
        restart_patience(ctx)
        try:
            _finish_abandoned(ctx)
        except GitcoordError:  # its message says that nothing was changed
            if not withdraw(ctx, batch_id):
                return RemoteResult(UNKNOWN, store_of(ctx).remote.deadline.message)
            raise
        result = result_of(ctx, batch_id) or _push_queued(ctx, batch_id)
    return result or RemoteResult(RACED)


def withdraw(ctx: Context, batch_id: str) -> bool:
    """Drop a batch that is not being pushed; its requests are decided again. False: it may still land."""
    with ctx.queue() as queue:
        if not queue.acquired:
            return False
        batch = load_batch(ctx, QUEUED)
        if batch is not None and batch.id == batch_id:
            drop_batch(ctx, QUEUED)
            note_result(ctx, batch, RemoteResult(RACED))
        pushing = load_batch(ctx, PUSHING)
        return pushing is None or pushing.id != batch_id


def _push_queued(ctx: Context, batch_id: str) -> RemoteResult | None:
    """Push the queued batch. The caller holds the push lock."""
    with ctx.queue():
        batch = load_batch(ctx, QUEUED)
        if batch is None or batch.id != batch_id:
            return None
        try:
            start_push(ctx)
        except FileNotFoundError:  # this process was stopped in the queue, and another has withdrawn the batch
            return None
    began = ctx.host.mono()
    result = push_until_known(ctx, batch)
    if any(m.ref == LEDGER and m.new != m.old for m in batch.moves):  # heartbeats race with nobody
        note_push(ctx, result.kind, ctx.host.mono() - began, batch.refs[LEDGER] or "-")
    if _finish(ctx, batch, result) and LEDGER in batch.refs:
        note_fetched(ctx, began)  # it landed on the ledger that this clone knows
    return result


def push_until_known(ctx: Context, batch: Batch) -> RemoteResult:
    """Push until the result is known. A repeat is harmless: it is the same commit with the same expected value."""
    store = store_of(ctx)
    tries_left, began = STUBBORN, ctx.host.mono()
    while True:
        result = store.remote.push(batch.moves, push_options(ctx, batch.agents[0]))
        if result.kind in (UNREACHABLE, UNKNOWN):
            note_failure(ctx, began)
        if result.kind in (LANDED, UNREACHABLE) and tries_left == STUBBORN:
            return result
        if result.kind == LANDED:
            return RemoteResult(LANDED)
        try:
            _fetch_patiently(ctx)
        except GitcoordError:  # its message would say that nothing was changed, which is not known here
            return result if result.kind in (RACED, REJECTED, FAILED) else RemoteResult(UNKNOWN, result.words)
        if _landed(ctx, batch):
            return RemoteResult(LANDED)
        if _moved(ctx, batch) or (result.kind == RACED and any(is_extra(m.ref) for m in batch.moves)):
            return RemoteResult(RACED)  # where trunk moves too, whoever lands looks at it before trying again
        if result.kind in (REJECTED, FAILED):
            split = result.kind == REJECTED and len(batch.agents) > 1
            return RemoteResult(SPLIT, result.words) if split else result
        tries_left -= 1
        if not tries_left:
            return RemoteResult(FAILED if result.kind == RACED else UNKNOWN, result.words)
        ctx.host.pause(0.1)


def push_options(ctx: Context, agent: str) -> tuple[str, ...]:
    return (f"agent={agent}",) if ctx.settings.flag("gitcoord.pushoptions", default=False) else ()


def _fetch_patiently(ctx: Context) -> None:
    """Fetch with retries: the connection has just broken, and only a fetch shows what came of the push."""
    for pause in (0.2, 0.5, 1.0):
        try:
            fetch(ctx)
            return
        except Unreachable:
            if store_of(ctx).remote.deadline.is_over:
                raise
            ctx.host.pause(pause)
    fetch(ctx)


def _landed(ctx: Context, batch: Batch) -> bool:
    """Return whether the whole batch is at the remote: its events in the ledger; without events, its heartbeats."""
    local = store_of(ctx).local
    events = [m for m in batch.moves if m.ref == LEDGER and m.old != m.new]
    if not events:
        wanted = [m for m in batch.moves if store_of(ctx).remote.takes(m.ref) and m.ref != LEDGER]
        return local.resolve([m.ref for m in wanted]) == [m.new or None for m in wanted]
    above = commits_above(ctx, local.resolve([LEDGER])[0], events[0].old or None)
    return any(oid == events[0].new for oid in above)


def commits_above(ctx: Context, head: Oid | None, floor: Oid | None) -> Iterator[Oid]:
    """The ledger's commits from its head down to `floor`, read one by one: the wanted one is usually near the head."""
    local = store_of(ctx).local
    while head is not None and head != floor:
        yield head
        found = local.read([head])[0]
        parents = Commit(found, LEDGER).parents if found is not None else []
        head = parents[0] if parents else None


def _moved(ctx: Context, batch: Batch) -> bool:
    """Return whether one of its refs has another value than expected: then it can never land."""
    remote = store_of(ctx).remote
    moves = [m for m in batch.moves if remote.takes(m.ref) and not is_extra(m.ref)]
    return store_of(ctx).local.resolve([m.ref for m in moves]) != [m.old or None for m in moves]


def _finish(ctx: Context, batch: Batch, result: RemoteResult) -> bool:
    """Update the mirror and note the result. If the batch failed, the queued one on top of it fails too.

    True: the mirror has the values that the batch set at the remote.
    """
    if result.kind == LANDED:
        with ctx.queue():
            if store_of(ctx).follow(batch.moves):
                drop_batch(ctx, PUSHING)
                note_result(ctx, batch, result)
                return True
        try:
            fetch(ctx)
        except GitcoordError:
            pass  # the batch has landed all the same; the mirror is older than that
    with ctx.queue():
        queued = load_batch(ctx, QUEUED)
        drop_batch(ctx, PUSHING)
        note_result(ctx, batch, result)
        if result.kind != LANDED:
            drop_batch(ctx, QUEUED)
            note_result(ctx, queued, RemoteResult(RACED))
    return False


def _finish_abandoned(ctx: Context) -> None:
    """If the process that pushed a batch has died, find out whether the batch landed."""
    batch = load_batch(ctx, PUSHING)
    if batch is None:
        return
    fetch(ctx)
    _finish(ctx, batch, RemoteResult(LANDED if _landed(ctx, batch) else RACED))
