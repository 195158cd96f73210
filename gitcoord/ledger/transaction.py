"""The transaction: queue, read, heal, decide, write objects, one swap, read back; again if the race was lost.

Order of refs in the swap: the ledger first, `refs/gitcoord/tip` last. A crash in between leaves either the old ledger, or
the new one with claim refs behind it, which the next writer mends before its own event.
"""

from __future__ import annotations

from gitcoord.base.errors import Contention, OutcomeUnknown, Refusal, Refused, StoreError
from gitcoord.base.names import LEDGER, TIP, Oid
from gitcoord.git.store import Create, Delete, SwapFailed, Update
from gitcoord.ledger.event import Decision
from gitcoord.ledger.heal import heal
from gitcoord.ledger.refusal_counts import count_refusal, pending_refusals
from gitcoord.ledger.snapshot import Commit, read_snapshot
from gitcoord.ledger.step import afterwards, bury, prepare, require_known_format, told
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitcoord.git.store import Operation
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.ledger.state import Part, State
    from gitcoord.ledger.world import World

    Rule = Callable[[State, Any, World], "Decision | Refusal"]

ATTEMPTS = 60
_STUBBORN = 6
_GC_EVERY = 128


def transact(
    ctx: Context, decide: Rule, command: Any, *, prefetch: tuple[Part, ...] = (), copied: bool = False
) -> dict[str, object]:
    """Make a command happen, and give what it has to tell.

    Refused: a rule said no. Contention: the race was lost too often. StoreError: nothing happened. OutcomeUnknown: the
    swap was made but cannot be seen. `copied` lets a copy write on the ledger it came with, which only `adopt` may.
    """
    try:
        if ctx.remote:
            from gitcoord.ledger.remote.transaction import transact_remotely as how
        else:
            how = _transact
        result = how(ctx, decide, command, prefetch, copied=copied)
    except BaseException:
        ctx.host.defer_interrupts(False)
        raise
    if not ctx.host.one_shot:
        ctx.host.defer_interrupts(False)
    return result


def _transact(
    ctx: Context, decide: Rule, command: Any, prefetch: tuple[Part, ...], *, copied: bool
) -> dict[str, object]:
    actor = command.actor.agent
    with ctx.queue() as queue:
        command = command._replace(nonce=command.nonce or ctx.host.random(), refused=pending_refusals(ctx, actor))
        patience = _STUBBORN
        for attempt in range(ATTEMPTS):
            snapshot = read_snapshot(ctx, agent=actor, prefetch=prefetch, copied=copied)
            require_known_format(snapshot)
            heal(ctx, snapshot)
            world = ctx.world(snapshot)
            answer = decide(snapshot.state, command, world)
            burial = bury(snapshot, world, command)
            decision = burial or answer
            if isinstance(decision, Refusal):
                count_refusal(ctx, actor, decision)
                raise Refused(decision)
            if not decision.events and not decision.beats:
                return told(snapshot, actor, decision)
            obstacle = _commit(ctx, snapshot, decision)
            if obstacle is None:
                ctx.host.defer_interrupts(burial is None)
                afterwards(ctx, snapshot, actor, decision)
                if burial is None:
                    return told(snapshot, actor, decision)
            elif obstacle.lost_race:
                if not queue.held:
                    ctx.host.pause(0.002 * min(attempt + 1, 16))
            elif patience:
                patience -= 1
                ctx.host.pause(0.02)
            else:
                raise _final(ctx, obstacle)
    raise Contention(f"lost the race {ATTEMPTS} times", hints=("try again",))


class Obstacle(NamedTuple):
    """Why a swap did not happen: a lost race, or something in the way of these operations."""

    lost_race: bool
    operations: list[Operation]
    message: str


def _commit(ctx: Context, snapshot: Snapshot, decision: Decision) -> Obstacle | None:
    """Write, swap, read back. None if it happened."""
    head, operations = prepare(ctx, snapshot, decision)
    ctx.host.defer_interrupts(True)
    try:
        ctx.store.swap(operations)
    except SwapFailed as failure:
        if decision.events and _in_ledger(ctx, head, decision):
            return None  # git failed after the ledger had moved; the rest is mended by the next writer
        ctx.host.defer_interrupts(False)
        return _why(ctx, operations, failure)
    if not _in_ledger(ctx, head, decision):
        ctx.store.refresh()
        if not _in_ledger(ctx, head, decision):
            _take_back(ctx, operations)
            raise OutcomeUnknown("git said the swap was done, but the ledger does not show it", hints=("run it again",))
    return None


def _take_back(ctx: Context, operations: list[Operation]) -> None:
    """Our git moved refs after its lock had been taken away: the ledger is another's, so the rest must follow it.

    Best effort: what cannot be taken back is named by fsck, and nothing is decided by these refs.
    """
    (ledger,) = ctx.store.resolve([LEDGER])
    back: list[Operation] = []
    for operation in operations:
        if isinstance(operation, Create):
            back.append(Delete(operation.ref, operation.new))
        elif isinstance(operation, Delete):
            back.append(Create(operation.ref, operation.expected))
        elif isinstance(operation, Update) and operation.ref not in (LEDGER, TIP):
            back.append(Update(operation.ref, operation.new, operation.expected))
        elif isinstance(operation, Update) and operation.ref == TIP and ledger:
            back.append(Update(TIP, operation.new, ledger))
    for operation in back:
        try:
            ctx.store.swap([operation])
        except SwapFailed:
            continue


def _in_ledger(ctx: Context, head: Oid, decision: Decision) -> bool:
    """Is our last commit in the ledger, whole? A heartbeat alone needs no ledger entry."""
    if not decision.events:
        return True
    found = ctx.store.read([LEDGER])[0]
    last = decision.events[-1].seq
    while found is not None and found.kind == "commit":
        if found.oid == head:
            return True
        commit = Commit(found, LEDGER)
        if len(commit.parents) != 1 or commit.event.seq <= last:
            return False
        found = ctx.store.read(commit.parents)[0]
    return False


def _why(ctx: Context, operations: list[Operation], failure: SwapFailed) -> Obstacle:
    """After a failed swap: did somebody move one of the refs? Only reading tells; git's words do not."""
    now = ctx.store.resolve([operation.ref for operation in operations])
    moved = any((getattr(op, "expected", "") or None) != oid for op, oid in zip(operations, now))
    obstacle = Obstacle(moved, operations, failure.message)
    if not moved:
        try:
            ctx.store.recover(operations)
        except StoreError:
            pass  # its owner may let go any moment; the last try says whose it is
    return obstacle


def _final(ctx: Context, obstacle: Obstacle) -> StoreError:
    """What to say when trying again did not help."""
    try:
        ctx.store.recover(obstacle.operations)
    except StoreError as error:
        return error
    return StoreError(f"git could not move the refs: {obstacle.message}", hints=("nothing was changed",))
