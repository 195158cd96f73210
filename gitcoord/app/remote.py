"""The transaction where a remote is the authority: decide on what was last seen there, push, follow.

Requests of one machine ride together. Two locks, always taken in this order: the carrier's (one push at a time) and the
writers' queue (short: the files of `batch`, and deciding). A request is decided in the queue on top of all that waits, joins
the open batch, and then waits for the carrier's lock; whoever gets it pushes the whole batch, while others already fill the
next one. What is lost is decided again, each request by its own process. Both locks serve throughput: the push decides.

A grant is tried on the last seen state, a refusal is not: nobody is told "no" before the remote was looked at.
"""

from gitcoord.app.batch import (
    FLYING,
    OPEN,
    Batch,
    Outcome,
    join,
    load_batch,
    note_outcome,
    outcome_of,
    overlay,
    store_batch,
)
from gitcoord.app.heal import heal
from gitcoord.app.ledger import Commit, read_snapshot, settle
from gitcoord.app.refusals import count_refusal, pending_refusals
from gitcoord.app.retired import retire
from gitcoord.app.step import afterwards, bury, prepare, require_known_format, told
from gitcoord.core.events import Decision
from gitcoord.errors import (
    Contention,
    GitcoordError,
    OutcomeUnknown,
    Refusal,
    Refused,
    StoreError,
    Unreachable,
    UsageError,
)
from gitcoord.names import LEDGER, SESSIONS, TIP, session_ref
from gitcoord.record import NamedTuple
from gitcoord.store.far import FAILED, HOST, LANDED, LOST, NONE, UNKNOWN, UNREACHABLE
from gitcoord.store.files import read_file, write_file
from gitcoord.store.interface import SwapFailed, Update, Verify
from gitcoord.store.process import run
from gitcoord.store.queue import Queue
from gitcoord.store.remote import RemoteStore, as_move

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitcoord.app.context import Context
    from gitcoord.app.ledger import Snapshot, What
    from gitcoord.app.sessions import Due
    from gitcoord.app.transact import Rule
    from gitcoord.core.state import View
    from gitcoord.names import Oid
    from gitcoord.store.interface import Operation

ATTEMPTS = 60
CARRY_SECONDS = 90.0
PATIENCE_MS = 10_000
_STUBBORN = 4
_SPLIT, _STUCK = "split", "stuck"


def store_of(ctx: "Context") -> RemoteStore:
    assert isinstance(ctx.store, RemoteStore)
    return ctx.store


# --- looking ------------------------------------------------------------------------------------------------------


def look(ctx: "Context") -> None:
    """Fetch what the remote has. Unreachable where it does not answer; what was seen before stays."""
    store = store_of(ctx)
    began = ctx.host.mono()
    for _ in range(_STUBBORN):
        report = store.far.fetch()
        store.refresh()
        if report.kind != LOST:
            break
        ctx.host.pause(0.05)
    if report.kind == NONE:
        if store.near.resolve([LEDGER])[0] is None:
            return
        raise StoreError(
            f"the ledger is gone from '{store.far.name}'",
            hints=("see what happened there before anything else", "from this clone: git coord fsck"),
        )
    if report.kind != LANDED:
        raise unreachable(ctx, report.words)
    _follow_tip(ctx)
    _note_look(ctx, began)


def _follow_tip(ctx: "Context") -> None:
    """The tip goes forward with the ledger. Where that was rewound it stays, and is the witness."""
    near = store_of(ctx).near
    ledger, tip = near.resolve([LEDGER, TIP])
    if ledger is None or tip in (None, ledger):
        return
    code, _, _ = run(["git", "--no-replace-objects", "merge-base", "--is-ancestor", tip or "", ledger], ctx.repo.env)
    if not code:
        try:
            near.swap([Verify(LEDGER, ledger), Update(TIP, tip or "", ledger)])
        except SwapFailed:
            pass  # another look was quicker


def _note_look(ctx: "Context", began: int) -> None:
    """When the remote was last seen; and every heartbeat seen on the way counts as a look at its agent."""
    _seen_since(ctx, began)
    now = ctx.host.mono()
    for ref, oid in store_of(ctx).near.list_refs(SESSIONS).items():
        path = ctx.scratch(f"seen/{ref.removeprefix(SESSIONS)}")
        head = f"{oid}\n{ctx.host.boot}\n".encode()
        if not read_file(path).startswith(head):
            write_file(path, head + str(now).encode())


def _seen_since(ctx: "Context", began: int) -> None:
    write_file(ctx.scratch("looked"), f"{ctx.host.boot}\n{began}\n{ctx.host.wall()}".encode())


def seen_at(ctx: "Context") -> "tuple[int | None, int]":
    """When the remote was last looked at: on this boot's monotonic clock (None: before it), and on the wall clock."""
    words = read_file(f"{ctx.repo.scratch}/looked").decode("ascii", "replace").split("\n")
    if len(words) != 3 or not words[2].isdecimal():
        return None, 0
    return int(words[1]) if words[0] == ctx.host.boot and words[1].isdecimal() else None, int(words[2])


def recent(ctx: "Context", most: int = 0) -> "dict[str, object]":
    """For those who look: fetch if the last look is older than that, else or in vain go on with it. Tells how old it is."""
    wish = ctx.settings.get("gitcoord.maxage")
    most = int(wish) if wish.isdecimal() and len(wish) < 8 else most
    seen, wall = seen_at(ctx)
    told: dict[str, object] = {}
    if seen is None or ctx.host.mono() - seen > most * 1000:
        try:
            _look_once(ctx, ctx.host.mono())
        except GitcoordError as error:
            told["offline"] = error.message
        seen, wall = seen_at(ctx)
    age = (ctx.host.mono() - seen) // 1000 if seen is not None else max(0, ctx.host.wall() - wall) if wall else None
    return {"as_of_seconds": age, **told}


def unreachable(ctx: "Context", words: str, what: str = "nothing was changed") -> Unreachable:
    _, wall = seen_at(ctx)
    hints = ["what was last seen there: git claim list"] if wall else []
    return Unreachable(
        f"'{store_of(ctx).far.name}' cannot be reached: {words or 'no answer'}; {what}", hints=tuple(hints)
    )


# --- carrying -----------------------------------------------------------------------------------------------------


def carry(ctx: "Context", batch_id: str) -> Outcome:
    """Wait until the batch has landed or is lost; push it if nobody else does."""
    with Queue(ctx.scratch("carry.lock"), CARRY_SECONDS) as lock:
        outcome = outcome_of(ctx, batch_id)
        if outcome is not None:
            return outcome
        if not lock.held:
            return Outcome(_STUCK)
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
    outcome = _push(ctx, batch)
    if outcome.kind == LANDED and LEDGER in batch.refs:
        _seen_since(ctx, began)  # it landed on the ledger that we know
    _settle(ctx, batch, outcome)


def _push(ctx: "Context", batch: "Batch") -> Outcome:
    """Until it is known what came of it. A repeat is harmless: it is the same commit on the same expectation."""
    far = store_of(ctx).far
    patience = _STUBBORN
    while True:
        report = far.push(batch.moves, _options(ctx, batch.agents[0]))
        if report.kind in (LANDED, UNREACHABLE) and patience == _STUBBORN:
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
            return Outcome(_SPLIT if report.kind == HOST and len(batch.agents) > 1 else report.kind, report.words)
        patience -= 1
        if not patience:
            return Outcome(FAILED if report.kind == LOST else UNKNOWN, report.words)
        ctx.host.pause(0.1)


def _options(ctx: "Context", agent: str) -> "tuple[str, ...]":
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
    return _contains(ctx, near.resolve([LEDGER])[0], events[0].new, events[0].expected)


def _contains(ctx: "Context", head: "Oid | None", wanted: "Oid | None", stop: "Oid | None") -> bool:
    """Is this commit in the ledger, above where it was to begin?"""
    near = store_of(ctx).near
    while head is not None and head != stop:
        if head == wanted:
            return True
        found = near.read([head])[0]
        parents = Commit(found, LEDGER).parents if found is not None else []
        head = parents[0] if parents else None
    return False


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


# --- the transaction ----------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A request decided on one state: what to push, or why there is nothing to push."""

    snapshot: "Snapshot"
    view: "View"
    answer: "Decision | Refusal"
    burial: bool  # not the request itself yet, but the record of a kill that was torn
    head: "Oid"
    operations: "list[Operation]"


def transact_remotely(
    ctx: "Context", decide: "Rule", command: "Any", ahead: "tuple[What, ...]", *, copied: bool
) -> "dict[str, object]":
    try:
        return _transact(ctx, decide, command, ahead, copied=copied)
    finally:
        store_of(ctx).far.hang_up()


def _transact(
    ctx: "Context", decide: "Rule", command: "Any", ahead: "tuple[What, ...]", *, copied: bool
) -> "dict[str, object]":
    actor = command.actor.agent
    began = ctx.host.mono()
    if ctx.reads_only:
        raise UsageError(
            "this clone only looks at the ledger", hints=(f"join it: git coord init --remote {ctx.remote}",)
        )
    command = command._replace(nonce=command.nonce or ctx.host.random(), refused=pending_refusals(ctx, actor))
    tried: list[Step] = []
    together = True
    for attempt in range(ATTEMPTS):
        step, batch_id = _joined(ctx, decide, command, ahead, copied=copied) if together else (None, "")
        if step is None and not batch_id:
            step = _step(ctx, decide, command, ahead, copied=copied)
        if step is not None and not step.operations:
            if not _is_fresh(ctx, began):
                _look_once(ctx, began)
                continue
            return _answer(ctx, actor, step)
        ctx.host.shield(True)
        outcome = carry(ctx, batch_id) if batch_id else _alone(ctx, actor, step)
        if step is None:
            ctx.host.shield(False)
            continue  # only waited for others
        tried.append(step)
        done = next((s for s in tried if outcome.kind in (LANDED, LOST) and _is_there(ctx, s)), None)
        if done is not None:
            assert isinstance(done.answer, Decision)
            afterwards(ctx, done.snapshot, actor, done.answer)
            if not done.burial:
                return told(ctx, done.snapshot, done.view, actor, done.answer)
            tried.clear()
        ctx.host.shield(False)
        together = together and outcome.kind not in (_SPLIT, _STUCK)
        if outcome.kind in (HOST, FAILED, UNREACHABLE, UNKNOWN):
            raise _error(ctx, outcome)
        if done is None and outcome.kind == LOST:
            ctx.host.pause(0.01 * min(attempt + 1, 20))
    raise Contention(f"lost the race {ATTEMPTS} times", hints=("try again",))


def _joined(
    ctx: "Context", decide: "Rule", command: "Any", ahead: "tuple[What, ...]", *, copied: bool
) -> "tuple[Step | None, str]":
    """Decide on top of all that waits, and join the open batch. ('' for its id: go alone. No step: wait for that batch.)"""
    store = store_of(ctx)
    with ctx.queue() as queue:
        if not queue.held:
            return None, ""
        store.overlay = overlay(ctx)
        if not store.overlay:
            store.far.connect(_options(ctx, command.actor.agent))  # nobody else here is about to push
        try:
            step = _step(ctx, decide, command, ahead, copied=copied)
        finally:
            waiting, store.overlay = bool(store.overlay), {}
        if step.operations:
            return step, join(ctx, command.actor.agent, step.operations).id
        if waiting:
            # Those before us are in the way, or did it already; but that counts only once it has landed.
            committed = _step(ctx, decide, command, ahead, copied=copied)
            if committed.operations:
                last = load_batch(ctx, OPEN) or load_batch(ctx, FLYING)
                return None, last.id if last is not None else ""
            step = committed
        return step, ""


def _step(ctx: "Context", decide: "Rule", command: "Any", ahead: "tuple[What, ...]", *, copied: bool) -> Step:
    actor = command.actor.agent
    snapshot = read_snapshot(ctx, agent=actor, ahead=ahead, copied=copied)
    require_known_format(snapshot)
    if not store_of(ctx).overlay:
        heal(ctx, snapshot)
    view = ctx.view()
    answer = settle(ctx, snapshot, view, lambda state, view: decide(state, command, view))
    burial = bury(ctx, snapshot, view, command)
    answer = burial or answer
    if isinstance(answer, Refusal) or not (answer.events or answer.beats):
        return Step(snapshot, view, answer, False, snapshot.head, [])
    head, operations = prepare(ctx, snapshot, view, answer)
    return Step(snapshot, view, answer, burial is not None, head, operations)


def _alone(ctx: "Context", actor: str, step: "Step | None") -> Outcome:
    """A push of this request only, past those that wait: they were refused together, or a stopped process holds a lock."""
    assert step is not None
    batch = Batch("", (actor,), 0, tuple(as_move(operation) for operation in step.operations))
    outcome = _push(ctx, batch)
    if outcome.kind == LANDED and not store_of(ctx).follow(batch.moves):
        look(ctx)
    return outcome


def _is_there(ctx: "Context", step: Step) -> bool:
    """Read back before saying so: is this step's last commit in the ledger, or its heartbeat in its place?"""
    assert isinstance(step.answer, Decision)
    near = store_of(ctx).near
    if step.answer.events:
        return _contains(ctx, near.resolve([LEDGER])[0], step.head, step.snapshot.head)
    beats = [as_move(op) for op in step.operations if op.ref.startswith(SESSIONS)]
    return near.resolve([m.ref for m in beats]) == [m.new for m in beats]


def _is_fresh(ctx: "Context", began: int) -> bool:
    seen, _ = seen_at(ctx)
    return seen is not None and seen >= began


def _look_once(ctx: "Context", began: int) -> None:
    """Fetch, unless somebody here has done so since we began: one look serves all who wait."""
    with Queue(ctx.scratch("carry.lock"), CARRY_SECONDS):
        if not _is_fresh(ctx, began):
            look(ctx)


def _answer(ctx: "Context", actor: str, step: Step) -> "dict[str, object]":
    if isinstance(step.answer, Refusal):
        count_refusal(ctx, actor, step.answer)
        raise Refused(step.answer)
    return told(ctx, step.snapshot, step.view, actor, step.answer)


def _error(ctx: "Context", outcome: Outcome) -> GitcoordError:
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


def beat_remotely(ctx: "Context", due_beat: "Callable[[], Due]", agent: str, *, patient: bool) -> "int | None":
    """The session that a beat was made for, 0 where none is open; None where nothing was to do.

    Beats of all agents on this machine come due together: the first that is tired of waiting carries them all.
    """
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
    if carry(ctx, batch.id).kind in (UNREACHABLE, UNKNOWN):
        raise unreachable(ctx, "no heartbeat")
    if due.old is not None:
        retire(ctx, agent, due.old)
    return due.session
