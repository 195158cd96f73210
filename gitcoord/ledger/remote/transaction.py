"""A remote as the authority of a transaction: decide on what was last seen there, push, follow.

Requests of one machine ride together. Two locks, always taken in this order: the carrier's (one push at a time) and the
writers' queue (short: the files of `batch`, and deciding). A request is decided in the queue on top of all that waits, joins
the open batch, and then waits for the carrier's lock; whoever gets it pushes the whole batch, while others already fill the
next one. What is lost is decided again, each request by its own process. Both locks serve throughput: the push decides.

A grant is tried on the last seen state, a refusal is not: nobody is told "no" before the remote was looked at.
"""

from __future__ import annotations

from gitcoord.base.errors import (
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
from gitcoord.ledger.heartbeat_gc import retire
from gitcoord.ledger.remote.backoff import note_push, wait_for_turn
from gitcoord.ledger.remote.batch import (
    PUSHING,
    QUEUED,
    Batch,
    PushResult,
    join,
    load_batch,
    overlay,
)
from gitcoord.ledger.remote.fetch import fetch, fetch_once, is_fresh, store_of, unreachable
from gitcoord.ledger.remote.git_remote import FAILED, HOST, LANDED, LOST, UNKNOWN, UNREACHABLE
from gitcoord.ledger.remote.mirror_store import as_update
from gitcoord.ledger.remote.push import SPLIT, STUCK, UNCERTAIN, commits_above, push, push_batch
from gitcoord.ledger.transaction import decide_once
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.base.names import Oid
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.heartbeat import Due
    from gitcoord.ledger.transaction import Attempt, Request

PATIENCE_MS = 10_000


class _Tried(NamedTuple):
    """An attempt that was pushed, and the remote's head when it was decided: its commit can only be above that."""

    attempt: Attempt
    floor: Oid | None


class RemoteAuthority:
    """A remote decides: one push of what was decided here, alone or together with others of this machine."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._store = store_of(ctx)
        self._asking = self._store.remote.deadline.request(changes=True)
        self._began = ctx.host.mono()
        self._agent = ""
        self._tried: list[_Tried] = []
        self._floor: Oid | None = None
        self._batch_id = ""  # the batch that has the attempt; '' where it goes alone
        self._together = True
        self._uncertain = False  # another process may have pushed an attempt of ours: whether it landed is not known

    def __enter__(self) -> None:
        if self._ctx.reads_only:
            raise UsageError(
                "this clone only looks at the ledger", hints=(f"join it: git coord init --remote {self._ctx.remote}",)
            )
        self._asking.__enter__()

    def __exit__(self, *_: object) -> None:
        self._asking.__exit__()

    # --- deciding

    def decide(self, request: Request) -> Attempt | None:
        self._agent = request.command.actor.agent
        wait_for_turn(self._ctx)
        attempt, self._batch_id = self._join(request) if self._together else (None, "")
        if attempt is not None:
            return attempt
        if self._batch_id:
            self._wait_for_others()
            return None
        self._together = False  # also for the next attempts: whoever did not make way will not now
        attempt = self._decide(request)
        self._ctx.store.flush()
        return attempt

    def _join(self, request: Request) -> tuple[Attempt | None, str]:
        """Decide on top of all that waits, and join the open batch.

        The attempt, and the batch's id. ('' for the id: go alone. No attempt: wait for that batch.)
        """
        ctx, store = self._ctx, self._store
        with ctx.queue() as queue:
            if not queue.acquired:
                return None, ""
            store.overlay = overlay(ctx)
            try:
                attempt = self._decide(request)
            finally:
                waiting, store.overlay = bool(store.overlay), {}
            if attempt.operations:
                ctx.store.flush()  # others on this machine may carry it
                return attempt, join(ctx, request.command.actor.agent, attempt.operations).id
            if waiting:
                # Those before us are in the way, or did it already; but that counts only once it has landed.
                committed = self._decide(request)
                if committed.operations:
                    last = load_batch(ctx, QUEUED) or load_batch(ctx, PUSHING)
                    return None, last.id if last is not None else ""
                attempt = committed
            return attempt, ""

    def _decide(self, request: Request) -> Attempt:
        self._floor = self._store.local.target(LEDGER)
        return decide_once(self._ctx, request, fix=not self._store.overlay)

    def _wait_for_others(self) -> None:
        self._ctx.host.defer_interrupts(True)
        outcome = push_batch(self._ctx, self._batch_id)
        self._ctx.host.defer_interrupts(False)
        self._note(outcome)

    def confirms(self) -> bool:
        """Nobody is told "no" before the remote was looked at."""
        if is_fresh(self._ctx, self._began):
            return True
        try:
            fetch_once(self._ctx, self._began)
        except Unreachable as error:
            # What came of an earlier push is not known: then nothing else may be said.
            raise push_error(self._ctx, PushResult(UNKNOWN, error.message)) if self._uncertain else error from None
        return False

    # --- pushing

    def commit(self, attempt: Attempt) -> Attempt | None:
        outcome = push_batch(self._ctx, self._batch_id) if self._batch_id else self._push_alone(attempt)
        self._tried.append(_Tried(attempt, self._floor))
        self._uncertain = self._uncertain or outcome.kind == UNCERTAIN
        done = self._find_tried() if outcome.kind in (LANDED, LOST) else None
        if done is None and outcome.kind == LANDED:
            done = self._fetch_tried()
        if done is not None:
            self._tried.clear()
            return done
        self._ctx.host.defer_interrupts(False)
        if outcome.kind in (HOST, FAILED, UNREACHABLE, UNKNOWN):
            unknown = self._uncertain and outcome.kind == UNREACHABLE
            raise push_error(self._ctx, outcome._replace(kind=UNKNOWN) if unknown else outcome)
        self._note(outcome)
        return None

    def _note(self, outcome: PushResult) -> None:
        """What did not fly together goes alone from now on, while there is time."""
        self._together = self._together and outcome.kind not in (SPLIT, STUCK, UNCERTAIN)
        if outcome.kind in (STUCK, UNCERTAIN):
            _require_time(self._ctx, outcome)

    def _push_alone(self, attempt: Attempt) -> PushResult:
        """Past those that wait: they were refused together, or a stopped process holds a lock."""
        ctx = self._ctx
        batch = Batch("", (self._agent,), 0, tuple(as_update(operation) for operation in attempt.operations))
        began = ctx.host.mono()
        outcome = push(ctx, batch)
        note_push(ctx, outcome.kind, ctx.host.mono() - began, attempt.head)
        if outcome.kind == LANDED:
            self._store.follow(batch.moves)  # or whoever reads it back looks
        return outcome

    # --- reading back

    def _fetch_tried(self) -> Attempt | None:
        """The remote has done it, but this clone does not show it yet: look. It is said in any case that it was done."""
        try:
            fetch(self._ctx)
        except GitcoordError as error:
            raise OutcomeUnknown(
                f"'{self._store.remote.name}' has done it, but this clone cannot keep it: {error.message}",
                hints=(*error.hints, "running it again is harmless"),
            ) from None
        return self._find_tried()

    def _find_tried(self) -> Attempt | None:
        """The attempt whose last commit is in the ledger, or whose heartbeat is in its place.

        Those that are not there can only come above what was looked through now: their floor rises, or a request that loses
        often in a long ledger would read it again and again.
        """
        local = self._store.local
        head = local.resolve([LEDGER])[0]
        wanted = {tried.attempt.head: tried.attempt for tried in self._tried if tried.attempt.decision.events}
        for oid in commits_above(self._ctx, head, self._tried[0].floor) if wanted else ():
            if oid in wanted:
                return wanted[oid]
        for index, (attempt, _) in enumerate(self._tried):
            beats = [as_update(op) for op in attempt.operations if op.ref.startswith(SESSIONS)]
            if not attempt.decision.events and local.resolve([m.ref for m in beats]) == [m.new or None for m in beats]:
                return attempt
            self._tried[index] = _Tried(attempt, head)
        return None


def _require_time(ctx: Context, outcome: PushResult) -> None:
    """A command that has waited for others of this clone for all of its time does not begin to talk to the remote."""
    remote = store_of(ctx).remote
    if not remote.deadline.is_over:
        remote.deadline.answered()
    elif outcome.kind == UNCERTAIN:
        raise push_error(ctx, PushResult(UNKNOWN, "another command of this clone pushes it, and is not done yet"))
    else:
        raise TimedOut(
            f"waited {remote.deadline.seconds:.0f} seconds behind another command of this clone, which talks to '{remote.name}'",
            hints=("nothing was changed", "try again"),
        )


def push_error(ctx: Context, outcome: PushResult) -> GitcoordError:
    name = store_of(ctx).remote.name
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


def push_heartbeat(ctx: Context, due_heartbeat: Callable[[], Due], agent: str, *, patient: bool) -> int | None:
    """The session that a beat was made for, 0 where none is open; None where nothing was to do.

    Beats of all agents on this machine come due together: the first that is tired of waiting carries them all.
    """
    with store_of(ctx).remote.deadline.request(changes=False):  # it is due again before long
        return _beat(ctx, due_heartbeat, agent, patient=patient)


def _beat(ctx: Context, due_heartbeat: Callable[[], Due], agent: str, *, patient: bool) -> int | None:
    store = store_of(ctx)
    with ctx.queue() as queue:
        held = queue.acquired
        store.overlay = overlay(ctx) if held else {}
        try:
            due = due_heartbeat()
        finally:
            store.overlay = {}
        batch = load_batch(ctx, QUEUED)
        if due.operation is not None and held:
            batch = join(ctx, agent, [due.operation])
    if due.operation is not None and not held:
        try:
            store.swap([due.operation])
        except SwapFailed:
            fetch(ctx)
        return due.session
    waits = batch is not None and session_ref(agent) in batch.refs
    if batch is None or not waits or (patient and ctx.host.mono() - batch.since < PATIENCE_MS):
        return None if due.session else 0
    outcome = push_batch(ctx, batch.id)
    if outcome.kind in (STUCK, UNCERTAIN):
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
