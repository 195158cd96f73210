"""The transaction where a remote is the authority: decide on what was last seen there, push, follow.

Requests of one machine ride together. Two locks, always taken in this order: the carrier's (one push at a time) and the
writers' queue (short: the files of `batch`, and deciding). A request is decided in the queue on top of all that waits, joins
the open batch, and then waits for the carrier's lock; whoever gets it pushes the whole batch, while others already fill the
next one. What is lost is decided again, each request by its own process. Both locks serve throughput: the push decides.

A grant is tried on the last seen state, a refusal is not: nobody is told "no" before the remote was looked at.
"""

from __future__ import annotations

from gitcoord.base.errors import (
    Contention,
    GitcoordError,
    OutcomeUnknown,
    Refusal,
    Refused,
    StoreError,
    TimedOut,
    Unreachable,
    UsageError,
)
from gitcoord.base.names import LEDGER, SESSIONS, session_ref
from gitcoord.git.store import SwapFailed
from gitcoord.ledger.event import Decision
from gitcoord.ledger.heal import heal
from gitcoord.ledger.heartbeat_gc import retire
from gitcoord.ledger.refusal_counts import count_refusal, pending_refusals
from gitcoord.ledger.remote.backoff import let_others_go, note_turn
from gitcoord.ledger.remote.batch import (
    FLYING,
    OPEN,
    Batch,
    Outcome,
    join,
    load_batch,
    overlay,
)
from gitcoord.ledger.remote.carrier import SPLIT, STUCK, UNTOLD, carry, commits_above, push
from gitcoord.ledger.remote.fetch import is_fresh, look, look_once, store_of, unreachable
from gitcoord.ledger.remote.git_remote import FAILED, HOST, LANDED, LOST, UNKNOWN, UNREACHABLE
from gitcoord.ledger.remote.mirror_store import as_move
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.step import afterwards, bury, prepare, require_known_format, told
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitcoord.base.names import Oid
    from gitcoord.git.store import Operation
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.heartbeat import Due
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.ledger.state import Part
    from gitcoord.ledger.transaction import Rule

ATTEMPTS = 60
PATIENCE_MS = 10_000
_STUBBORN = 4


class Step(NamedTuple):
    """A request decided on one state: what to push, or why there is nothing to push."""

    snapshot: Snapshot
    answer: Decision | Refusal
    burial: bool  # not the request itself yet, but the record of a kill that was torn
    head: Oid
    operations: list[Operation]
    floor: Oid | None  # the remote's ledger as it was known then: at or below it this step cannot be


def transact_remotely(
    ctx: Context, decide: Rule, command: Any, prefetch: tuple[Part, ...], *, copied: bool
) -> dict[str, object]:
    with store_of(ctx).far.patience.asking(changes=True):
        return _transact(ctx, decide, command, prefetch, copied=copied)


def _transact(
    ctx: Context, decide: Rule, command: Any, prefetch: tuple[Part, ...], *, copied: bool
) -> dict[str, object]:
    actor = command.actor.agent
    began = ctx.host.mono()
    if ctx.reads_only:
        raise UsageError(
            "this clone only looks at the ledger", hints=(f"join it: git coord init --remote {ctx.remote}",)
        )
    command = command._replace(nonce=command.nonce or ctx.host.random(), refused=pending_refusals(ctx, actor))
    tried: list[Step] = []
    together, untold = True, False
    for _ in range(ATTEMPTS):
        let_others_go(ctx)
        step, batch_id = _joined(ctx, decide, command, prefetch, copied=copied) if together else (None, "")
        if step is None and not batch_id:
            together = False  # also for the next attempts: whoever did not make way will not now
            step = _step(ctx, decide, command, prefetch, copied=copied)
            ctx.store.flush()
        if step is not None and not step.operations:
            if not is_fresh(ctx, began):
                _look_again(ctx, began, untold=untold)
                continue
            return _answer(ctx, actor, step)
        ctx.host.defer_interrupts(True)
        outcome = carry(ctx, batch_id) if batch_id else _alone(ctx, actor, step)
        if step is not None:  # else it only waited for others
            tried.append(step)
            untold = untold or outcome.kind == UNTOLD
        done = _which_is_there(ctx, tried) if step is not None and outcome.kind in (LANDED, LOST) else None
        if done is None and step is not None and outcome.kind == LANDED:
            done = _kept(ctx, tried)
        if done is not None:
            assert isinstance(done.answer, Decision)
            afterwards(ctx, done.snapshot, actor, done.answer)
            if not done.burial:
                return told(done.snapshot, actor, done.answer)
            tried.clear()
        ctx.host.defer_interrupts(False)
        together = together and outcome.kind not in (SPLIT, STUCK, UNTOLD)
        if step is not None and outcome.kind in (HOST, FAILED, UNREACHABLE, UNKNOWN):
            unknown = untold and outcome.kind == UNREACHABLE
            raise outcome_error(ctx, outcome._replace(kind=UNKNOWN) if unknown else outcome)
        if outcome.kind in (STUCK, UNTOLD):
            _require_time(ctx, outcome)
    raise Contention(f"lost the race {ATTEMPTS} times", hints=("try again",))


def _require_time(ctx: Context, outcome: Outcome) -> None:
    """Whoever has waited for others of this clone for all of its time does not begin to talk to the remote."""
    far = store_of(ctx).far
    if not far.patience.is_over:
        far.patience.heard()
    elif outcome.kind == UNTOLD:
        raise outcome_error(ctx, Outcome(UNKNOWN, "another command of this clone pushes it, and is not done yet"))
    else:
        raise TimedOut(
            f"waited {far.patience.seconds:.0f} seconds behind another command of this clone, which talks to '{far.name}'",
            hints=("nothing was changed", "try again"),
        )


def _joined(
    ctx: Context, decide: Rule, command: Any, prefetch: tuple[Part, ...], *, copied: bool
) -> tuple[Step | None, str]:
    """Decide on top of all that waits, and join the open batch.

    What was decided, and the batch's id. ('' for the id: go alone. No step: wait for that batch.)
    """
    store = store_of(ctx)
    with ctx.queue() as queue:
        if not queue.held:
            return None, ""
        store.overlay = overlay(ctx)
        try:
            step = _step(ctx, decide, command, prefetch, copied=copied)
        finally:
            waiting, store.overlay = bool(store.overlay), {}
        if step.operations:
            ctx.store.flush()  # others on this machine may carry it
            return step, join(ctx, command.actor.agent, step.operations).id
        if waiting:
            # Those before us are in the way, or did it already; but that counts only once it has landed.
            committed = _step(ctx, decide, command, prefetch, copied=copied)
            if committed.operations:
                last = load_batch(ctx, OPEN) or load_batch(ctx, FLYING)
                return None, last.id if last is not None else ""
            step = committed
        return step, ""


def _step(ctx: Context, decide: Rule, command: Any, prefetch: tuple[Part, ...], *, copied: bool) -> Step:
    actor = command.actor.agent
    floor = store_of(ctx).near.target(LEDGER)
    snapshot = read_snapshot(ctx, agent=actor, prefetch=prefetch, copied=copied)
    require_known_format(snapshot)
    if not store_of(ctx).overlay:
        heal(ctx, snapshot)
    world = ctx.world(snapshot)
    answer = decide(snapshot.state, command, world)
    burial = bury(snapshot, world, command)
    answer = burial or answer
    if isinstance(answer, Refusal) or not (answer.events or answer.beats):
        return Step(snapshot, answer, False, snapshot.head, [], floor)
    head, operations = prepare(ctx, snapshot, answer)
    return Step(snapshot, answer, burial is not None, head, operations, floor)


def _alone(ctx: Context, actor: str, step: Step | None) -> Outcome:
    """A push of this request only, past those that wait: they were refused together, or a stopped process holds a lock."""
    assert step is not None
    batch = Batch("", (actor,), 0, tuple(as_move(operation) for operation in step.operations))
    began = ctx.host.mono()
    outcome = push(ctx, batch)
    note_turn(ctx, outcome.kind, ctx.host.mono() - began, step.head)
    if outcome.kind == LANDED:
        store_of(ctx).follow(batch.moves)  # or whoever reads it back looks
    return outcome


def _look_again(ctx: Context, began: int, *, untold: bool) -> None:
    """Look before a refusal is told. `untold`: what came of an earlier push is not known, so that nothing else may be said."""
    try:
        look_once(ctx, began)
    except Unreachable as error:
        raise outcome_error(ctx, Outcome(UNKNOWN, error.message)) if untold else error from None


def _kept(ctx: Context, tried: list[Step]) -> Step | None:
    """The remote has done it, but this clone does not show it yet: look. It is said in any case that it was done."""
    try:
        look(ctx)
    except GitcoordError as error:
        raise OutcomeUnknown(
            f"'{store_of(ctx).far.name}' has done it, but this clone cannot keep it: {error.message}",
            hints=(*error.hints, "running it again is harmless"),
        ) from None
    return _which_is_there(ctx, tried)


def _which_is_there(ctx: Context, tried: list[Step]) -> Step | None:
    """Read back before saying so: which step's last commit is in the ledger, or its heartbeat in its place?

    Those that are not there can only come above what was looked through now: `tried` is told so, or whoever loses often in a
    long ledger would read it again and again.
    """
    near = store_of(ctx).near
    head = near.resolve([LEDGER])[0]
    wanted = {step.head: step for step in tried if _has_events(step)}
    for oid in commits_above(ctx, head, tried[0].floor) if wanted else ():
        if oid in wanted:
            return wanted[oid]
    for index, step in enumerate(tried):
        beats = [as_move(op) for op in step.operations if op.ref.startswith(SESSIONS)]
        if not _has_events(step) and near.resolve([m.ref for m in beats]) == [m.new for m in beats]:
            return step
        tried[index] = step._replace(floor=head)
    return None


def _has_events(step: Step) -> bool:
    return isinstance(step.answer, Decision) and bool(step.answer.events)


def _answer(ctx: Context, actor: str, step: Step) -> dict[str, object]:
    if isinstance(step.answer, Refusal):
        count_refusal(ctx, actor, step.answer)
        raise Refused(step.answer)
    return told(step.snapshot, actor, step.answer)


def outcome_error(ctx: Context, outcome: Outcome) -> GitcoordError:
    name = store_of(ctx).far.name
    if outcome.kind == HOST:
        lines = [line for line in outcome.words.split("\n") if line]
        hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
        words = "; ".join(line for line in lines if not line.startswith("hint: "))
        return Refused(Refusal("host", f"'{name}' refused it: {words}", hints=(*hints, "nothing was changed")))
    if outcome.kind == FAILED:
        return StoreError(f"'{name}' could not do it: {outcome.words}", hints=("nothing was changed",))
    if outcome.kind == UNREACHABLE:
        return unreachable(ctx, outcome.words)
    return OutcomeUnknown(
        f"whether '{name}' has done it cannot be told: {outcome.words}",
        hints=("once it answers again: git claim list --mine", "running it again is harmless"),
    )


def beat_remotely(ctx: Context, due_beat: Callable[[], Due], agent: str, *, patient: bool) -> int | None:
    """The session that a beat was made for, 0 where none is open; None where nothing was to do.

    Beats of all agents on this machine come due together: the first that is tired of waiting carries them all.
    """
    with store_of(ctx).far.patience.asking(changes=False):  # it is due again before long
        return _beat(ctx, due_beat, agent, patient=patient)


def _beat(ctx: Context, due_beat: Callable[[], Due], agent: str, *, patient: bool) -> int | None:
    store = store_of(ctx)
    with ctx.queue() as queue:
        held = queue.held
        store.overlay = overlay(ctx) if held else {}
        try:
            due = due_beat()
        finally:
            store.overlay = {}
        batch = load_batch(ctx, OPEN)
        if due.operation is not None and held:
            batch = join(ctx, agent, [due.operation])
    if due.operation is not None and not held:
        try:
            store.swap([due.operation])
        except SwapFailed:
            look(ctx)
        return due.session
    waits = batch is not None and session_ref(agent) in batch.refs
    if batch is None or not waits or (patient and ctx.host.mono() - batch.since < PATIENCE_MS):
        return None if due.session else 0
    outcome = carry(ctx, batch.id)
    if outcome.kind in (STUCK, UNTOLD):
        _require_time(ctx, outcome)
        own = batch._replace(moves=tuple(m for m in batch.moves if m.ref == session_ref(agent)))
        outcome = push(ctx, own)
        if outcome.kind == LANDED:
            store.follow(own.moves)
    if outcome.kind in (UNREACHABLE, UNKNOWN):
        raise unreachable(ctx, "no heartbeat")
    if due.old is not None:
        retire(ctx, agent, due.old)
    return due.session
