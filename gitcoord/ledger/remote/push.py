"""Carrying a batch to the remote that decides: one push for all requests that wait on this machine, and what came of it."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, Unreachable
from gitcoord.base.names import LEDGER
from gitcoord.ledger.remote.backoff import note_push
from gitcoord.ledger.remote.batch import (
    PUSHING,
    QUEUED,
    Batch,
    PushResult,
    load_batch,
    note_result,
    result_of,
    start_push,
    store_batch,
)
from gitcoord.ledger.remote.fetch import STUBBORN, fetch, note_failure, note_fetched, push_lock, store_of, waited
from gitcoord.ledger.remote.git_remote import FAILED, HOST, LANDED, LOST, UNKNOWN, UNREACHABLE
from gitcoord.ledger.snapshot import Commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitcoord.base.names import Oid
    from gitcoord.ledger.context import Context

# Refused together; not pushed, behind a process that does not make way; the same, by one that may push it yet.
SPLIT, STUCK, UNCERTAIN = "split", "stuck", "untold"


def push_batch(ctx: Context, batch_id: str) -> PushResult:
    """Wait until the batch has landed or is lost; push it if nobody else does."""
    with push_lock(ctx) as lock:
        outcome = result_of(ctx, batch_id)
        if outcome is not None:
            return outcome
        if not lock.acquired:
            return PushResult(STUCK if withdraw(ctx, batch_id) else UNCERTAIN)
        waited(ctx)
        try:
            _finish_abandoned(ctx)
        except GitcoordError:  # it says that nothing was changed
            if not withdraw(ctx, batch_id):
                return PushResult(UNKNOWN, store_of(ctx).remote.deadline.message)
            raise
        outcome = result_of(ctx, batch_id)
        if outcome is None:
            outcome = _push_queued(ctx, batch_id)
    return outcome or PushResult(LOST)


def withdraw(ctx: Context, batch_id: str) -> bool:
    """Give up a batch that nobody pushes yet: all whose requests are in it decide again. False: it may land all the same."""
    with ctx.queue() as queue:
        if not queue.acquired:
            return False
        batch = load_batch(ctx, QUEUED)
        if batch is not None and batch.id == batch_id:
            store_batch(ctx, QUEUED, None)
            note_result(ctx, batch, PushResult(LOST))
        flying = load_batch(ctx, PUSHING)
        return flying is None or flying.id != batch_id


def _push_queued(ctx: Context, batch_id: str) -> PushResult | None:
    """Push the open batch. The carrier's lock is ours."""
    with ctx.queue():
        batch = load_batch(ctx, QUEUED)
        if batch is None or batch.id != batch_id:
            return None
        try:
            start_push(ctx)
        except FileNotFoundError:  # whoever was stopped in the queue, and is in it again, has given it up
            return None
    return _push_and_finish(ctx, batch)


def _push_and_finish(ctx: Context, batch: Batch) -> PushResult:
    began = ctx.host.mono()
    outcome = push(ctx, batch)
    if any(m.ref == LEDGER and m.new != m.old for m in batch.moves):  # nobody races for a heartbeat
        note_push(ctx, outcome.kind, ctx.host.mono() - began, batch.refs[LEDGER] or "-")
    if _finish(ctx, batch, outcome) and LEDGER in batch.refs:
        note_fetched(ctx, began)  # it landed on the ledger that we know
    return outcome


def push(ctx: Context, batch: Batch) -> PushResult:
    """Until it is known what came of it. A repeat is harmless: it is the same commit on the same expectation."""
    store = store_of(ctx)
    tries_left, began = STUBBORN, ctx.host.mono()
    while True:
        report = store.remote.push(batch.moves, push_options(ctx, batch.agents[0]))
        if report.kind in (UNREACHABLE, UNKNOWN):
            note_failure(ctx, began)
        if report.kind in (LANDED, UNREACHABLE) and tries_left == STUBBORN:
            return PushResult(*report)
        if report.kind == LANDED:
            return PushResult(LANDED)
        try:
            _fetch_patiently(ctx)
        except GitcoordError:  # it would say that nothing was changed, which nobody knows
            return PushResult(report.kind if report.kind in (LOST, HOST, FAILED) else UNKNOWN, report.words)
        if _landed(ctx, batch):
            return PushResult(LANDED)
        if _moved(ctx, batch):
            return PushResult(LOST)
        if report.kind in (HOST, FAILED):
            return PushResult(SPLIT if report.kind == HOST and len(batch.agents) > 1 else report.kind, report.words)
        tries_left -= 1
        if not tries_left:
            return PushResult(FAILED if report.kind == LOST else UNKNOWN, report.words)
        ctx.host.pause(0.1)


def push_options(ctx: Context, agent: str) -> tuple[str, ...]:
    return (f"agent={agent}",) if ctx.settings.flag("gitcoord.pushoptions", default=False) else ()


def _fetch_patiently(ctx: Context) -> None:
    """The connection has just broken: it may be back in a moment, and only a look tells what came of the push."""
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
    """Is all of it there? The ledger tells, where the batch has events; else the heartbeats themselves."""
    local = store_of(ctx).local
    events = [m for m in batch.moves if m.ref == LEDGER and m.old != m.new]
    if not events:
        wanted = [m for m in batch.moves if store_of(ctx).remote.takes(m.ref) and m.ref != LEDGER]
        return local.resolve([m.ref for m in wanted]) == [m.new or None for m in wanted]
    above = commits_above(ctx, local.resolve([LEDGER])[0], events[0].old or None)
    return any(oid == events[0].new for oid in above)


def commits_above(ctx: Context, head: Oid | None, floor: Oid | None) -> Iterator[Oid]:
    """The ledger from its head down to a commit that was in it. One by one: most who ask find theirs among the first."""
    local = store_of(ctx).local
    while head is not None and head != floor:
        yield head
        found = local.read([head])[0]
        parents = Commit(found, LEDGER).parents if found is not None else []
        head = parents[0] if parents else None


def _moved(ctx: Context, batch: Batch) -> bool:
    """Is one of its refs no longer where it was expected? Then it can never land."""
    moves = [m for m in batch.moves if store_of(ctx).remote.takes(m.ref)]
    return store_of(ctx).local.resolve([m.ref for m in moves]) != [m.old or None for m in moves]


def _finish(ctx: Context, batch: Batch, outcome: PushResult) -> bool:
    """Let this clone follow, and tell all whose requests were in it. What waits on top of a lost one is lost too.

    True: this clone's refs are where the batch left those of the remote.
    """
    if outcome.kind == LANDED:
        with ctx.queue():
            followed = store_of(ctx).follow(batch.moves)
            if followed:
                store_batch(ctx, PUSHING, None)
                note_result(ctx, batch, outcome)
                return True
        try:
            fetch(ctx)
        except GitcoordError:
            pass  # it landed all the same; what this clone knows is older than that
    with ctx.queue():
        waiting = load_batch(ctx, QUEUED)
        store_batch(ctx, PUSHING, None)
        note_result(ctx, batch, outcome)
        if outcome.kind != LANDED:
            store_batch(ctx, QUEUED, None)
            note_result(ctx, waiting, PushResult(LOST))
    return False


def _finish_abandoned(ctx: Context) -> None:
    """A carrier died: find out what came of its push, so that nobody waits for it, nor builds on it, in vain."""
    batch = load_batch(ctx, PUSHING)
    if batch is None:
        return
    fetch(ctx)
    _finish(ctx, batch, PushResult(LANDED if _landed(ctx, batch) else LOST))
