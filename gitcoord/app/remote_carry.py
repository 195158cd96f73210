"""Carrying a batch to the remote that decides: one push for all requests that wait on this machine, and what came of it."""

from gitcoord.app.batch import (
    FLYING,
    OPEN,
    Batch,
    Outcome,
    load_batch,
    note_outcome,
    outcome_of,
    store_batch,
)
from gitcoord.app.ledger import Commit
from gitcoord.app.remote_look import CARRY_SECONDS, STUBBORN, look, seen_since, store_of
from gitcoord.app.turns import note_turn
from gitcoord.errors import (
    GitcoordError,
    Unreachable,
)
from gitcoord.names import LEDGER
from gitcoord.store.far import FAILED, HOST, LANDED, LOST, UNKNOWN, UNREACHABLE
from gitcoord.store.queue import Queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitcoord.app.context import Context
    from gitcoord.names import Oid

SPLIT, STUCK = "split", "stuck"


def carry(ctx: "Context", batch_id: str) -> Outcome:
    """Wait until the batch has landed or is lost; push it if nobody else does."""
    with Queue(ctx.scratch("carry.lock"), CARRY_SECONDS) as lock:
        outcome = outcome_of(ctx, batch_id)
        if outcome is not None:
            return outcome
        if not lock.held:
            return Outcome(STUCK)
        _finish_for_the_dead(ctx)
        outcome = outcome_of(ctx, batch_id)
        if outcome is None:
            _fly(ctx, batch_id)
            outcome = outcome_of(ctx, batch_id)
    return outcome or Outcome(LOST)


def _fly(ctx: "Context", batch_id: str) -> None:
    """Push the open batch. The carrier's lock is ours."""
    with ctx.queue():
        batch = load_batch(ctx, OPEN)
        if batch is None or batch.id != batch_id:
            return
        store_batch(ctx, FLYING, batch)
        store_batch(ctx, OPEN, None)
    began = ctx.host.mono()
    store_of(ctx).near.open(writing=True)  # the refs here will follow: that git gets ready meanwhile
    outcome = push(ctx, batch)
    if any(m.ref == LEDGER and m.new != m.expected for m in batch.moves):  # nobody races for a heartbeat
        note_turn(ctx, outcome.kind, ctx.host.mono() - began, batch.refs[LEDGER] or "-")
    if outcome.kind == LANDED and LEDGER in batch.refs:
        seen_since(ctx, began)  # it landed on the ledger that we know
    _settle(ctx, batch, outcome)


def push(ctx: "Context", batch: "Batch") -> Outcome:
    """Until it is known what came of it. A repeat is harmless: it is the same commit on the same expectation."""
    far = store_of(ctx).far
    patience = STUBBORN
    while True:
        report = far.push(batch.moves, push_options(ctx, batch.agents[0]))
        if report.kind in (LANDED, UNREACHABLE) and patience == STUBBORN:
            return Outcome(*report)
        if report.kind == LANDED:
            return Outcome(LANDED)
        try:
            _look_patiently(ctx)
        except GitcoordError:  # it would say that nothing was changed, which nobody knows
            return Outcome(report.kind if report.kind in (LOST, HOST, FAILED) else UNKNOWN, report.words)
        if _landed(ctx, batch):
            return Outcome(LANDED)
        if _moved(ctx, batch):
            return Outcome(LOST)
        if report.kind in (HOST, FAILED):
            return Outcome(SPLIT if report.kind == HOST and len(batch.agents) > 1 else report.kind, report.words)
        patience -= 1
        if not patience:
            return Outcome(FAILED if report.kind == LOST else UNKNOWN, report.words)
        ctx.host.pause(0.1)


def push_options(ctx: "Context", agent: str) -> "tuple[str, ...]":
    return (f"agent={agent}",) if ctx.settings.flag("gitcoord.pushoptions", default=False) else ()


def _look_patiently(ctx: "Context") -> None:
    """The connection has just broken: it may be back in a moment, and only a look tells what came of the push."""
    for pause in (0.2, 0.5, 1.0):
        try:
            look(ctx)
            return
        except Unreachable:
            ctx.host.pause(pause)
    look(ctx)


def _landed(ctx: "Context", batch: "Batch") -> bool:
    """Is all of it there? The ledger tells, where the batch has events; else the heartbeats themselves."""
    near = store_of(ctx).near
    events = [m for m in batch.moves if m.ref == LEDGER and m.expected != m.new]
    if not events:
        wanted = [m for m in batch.moves if store_of(ctx).far.takes(m.ref) and m.ref != LEDGER]
        return near.resolve([m.ref for m in wanted]) == [m.new for m in wanted]
    above = commits_above(ctx, near.resolve([LEDGER])[0], events[0].expected)
    return any(oid == events[0].new for oid in above)


def commits_above(ctx: "Context", head: "Oid | None", floor: "Oid | None") -> "Iterator[Oid]":
    """The ledger from its head down to a commit that was in it. One by one: most who ask find theirs among the first."""
    near = store_of(ctx).near
    while head is not None and head != floor:
        yield head
        found = near.read([head])[0]
        parents = Commit(found, LEDGER).parents if found is not None else []
        head = parents[0] if parents else None


def _moved(ctx: "Context", batch: "Batch") -> bool:
    """Is one of its refs no longer where it was expected? Then it can never land."""
    moves = [m for m in batch.moves if store_of(ctx).far.takes(m.ref)]
    return store_of(ctx).near.resolve([m.ref for m in moves]) != [m.expected for m in moves]


def _settle(ctx: "Context", batch: "Batch", outcome: Outcome) -> None:
    """Let this clone follow, and tell all whose requests were in it. What waits on top of a lost one is lost too."""
    if outcome.kind == LANDED:
        with ctx.queue():
            followed = store_of(ctx).follow(batch.moves)
            if followed:
                store_batch(ctx, FLYING, None)
                note_outcome(ctx, batch, outcome)
        if followed:
            return
        try:
            look(ctx)
        except GitcoordError:
            pass  # it landed all the same; what this clone knows is older than that
    with ctx.queue():
        waiting = load_batch(ctx, OPEN)
        store_batch(ctx, FLYING, None)
        note_outcome(ctx, batch, outcome)
        if outcome.kind != LANDED:
            store_batch(ctx, OPEN, None)
            note_outcome(ctx, waiting, Outcome(LOST))


def _finish_for_the_dead(ctx: "Context") -> None:
    """A carrier died: find out what came of its push, so that nobody waits for it, nor builds on it, in vain."""
    batch = load_batch(ctx, FLYING)
    if batch is None:
        return
    look(ctx)
    _settle(ctx, batch, Outcome(LANDED if _landed(ctx, batch) else LOST))
