"""A remote as the authority of a transaction: decide on the mirror, push, update the mirror.

Requests of one clone are pushed together. Two locks, always taken in this order: the push lock (one push at a time) and the
writers' queue (short: for the batch files and for deciding). A request is decided in the queue on top of both batches, joins
the queued one and waits for the push lock. The process that gets it pushes the whole batch while others fill the next one. If
a batch fails, each of its requests is decided again by its own process. Both locks serve throughput only: the push decides.

A grant is tried on the mirror as it is. A refusal is confirmed by a fetch before it is told.
"""

from __future__ import annotations

from gitcoord.base.errors import (
    GitcoordError,
    OutcomeUnknown,
    StoreError,
    TimedOut,
    Unreachable,
    UsageError,
    refused,
)
from gitcoord.base.names import LEDGER, SESSIONS, Oid, session_ref
from gitcoord.git.store import SwapFailed, as_update
from gitcoord.ledger.context import Context
from gitcoord.ledger.heartbeat_gc import retire
from gitcoord.ledger.remote.backoff import note_push, wait_for_turn
from gitcoord.ledger.remote.batch import PUSHING, QUEUED, Batch, join, load_batch, overlay
from gitcoord.ledger.remote.fetch import fetch, fetch_once, is_fresh, store_of, unreachable
from gitcoord.ledger.remote.git_remote import FAILED, LANDED, RACED, REJECTED, UNKNOWN, UNREACHABLE, RemoteResult
from gitcoord.ledger.remote.push import SPLIT, STUCK, UNCERTAIN, commits_above, push_batch, push_until_known
from gitcoord.ledger.transaction import Attempt, Proposal, decide_once
from gitcoord.startup.annotations import Callable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.heartbeat import Due

PATIENCE_MS = 10_000


class _Tried(NamedTuple):
    """An attempt that was pushed, and the remote's head when it was decided: the commit can only be above it."""

    attempt: Attempt
    floor: Oid | None


class RemoteAuthority:
    """A remote is the authority: decided here, pushed alone or in a batch."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._store = store_of(ctx)
        self._asking = self._store.remote.deadline.request(changes=True)
        self._began = ctx.host.mono()
        self._agent = ""
        self._tried: list[_Tried] = []
        self._floor: Oid | None = None
        self._batch_id = ""  # the batch that has the attempt; '' if it is pushed alone
        self._batched = True
        self._uncertain = False  # another process may still push an attempt of ours

    def __enter__(self) -> None:
        if self._ctx.reads_only:
            raise UsageError(
                "this clone only reads the ledger", hints=(f"join it: git coord init --remote {self._ctx.remote}",)
            )
        self._asking.__enter__()

    def __exit__(self, *_: object) -> None:
        self._asking.__exit__()

    # --- deciding

    def decide(self, proposal: Proposal) -> Attempt | None:
        self._agent = proposal.command.actor.agent
        if proposal.yields:
            wait_for_turn(self._ctx)
        # A landing must not fail with others, nor they because of it: it is pushed alone.
        together = self._batched and proposal.moving is None
        attempt, self._batch_id = self._join(proposal) if together else (None, "")
        if attempt is not None:
            return attempt
        if self._batch_id:
            self._wait_for_batch()
            return None
        self._batched = False  # also for the next attempts: the process that holds a lock will still hold it
        attempt = self._decide(proposal)
        self._ctx.store.flush()
        return attempt

    def _join(self, proposal: Proposal) -> tuple[Attempt | None, str]:
        """Decide on top of both batches, and join the queued one. Gives the attempt and the batch's id.

        An empty id: push it alone. No attempt: wait for that batch.
        """
        ctx, store = self._ctx, self._store
        with ctx.queue() as queue:
            if not queue.acquired:
                return None, ""
            store.overlay = overlay(ctx)
            try:
                attempt = self._decide(proposal)
            finally:
                waiting, store.overlay = bool(store.overlay), {}
            if attempt.operations:
                ctx.store.flush()  # another process may push it
                return attempt, join(ctx, proposal.command.actor.agent, attempt.operations).id
            if waiting:
                # A request in a batch conflicts with this one, or has done it; that counts only once it has landed.
                committed = self._decide(proposal)
                if committed.operations:
                    last = load_batch(ctx, QUEUED) or load_batch(ctx, PUSHING)
                    return None, last.id if last is not None else ""
                attempt = committed
            return attempt, ""

    def _decide(self, proposal: Proposal) -> Attempt:
        self._floor = self._store.local.target(LEDGER)
        return decide_once(self._ctx, proposal, fix=not self._store.overlay)

    def _wait_for_batch(self) -> None:
        self._ctx.host.defer_interrupts(True)
        result = push_batch(self._ctx, self._batch_id)
        self._ctx.host.defer_interrupts(False)
        self._note(result)

    def confirms(self) -> bool:
        """Return whether the state was fetched since the command began; else fetch. A refusal needs a fresh state."""
        if is_fresh(self._ctx, self._began):
            return True
        try:
            fetch_once(self._ctx, self._began)
        except Unreachable as error:
            # If the result of an earlier push is unknown, that is the answer.
            raise push_error(self._ctx, RemoteResult(UNKNOWN, error.message)) if self._uncertain else error from None
        return False

    # --- pushing

    def commit(self, attempt: Attempt) -> Attempt | None:
        result = push_batch(self._ctx, self._batch_id) if self._batch_id else self._push_alone(attempt)
        self._tried.append(_Tried(attempt, self._floor))
        self._uncertain = self._uncertain or result.kind == UNCERTAIN
        done = self._find_tried() if result.kind in (LANDED, RACED) else None
        if done is None and result.kind == LANDED:
            done = self._fetch_tried()
        if done is not None:
            self._tried.clear()
            return done
        self._ctx.host.defer_interrupts(False)
        if result.kind in (REJECTED, FAILED, UNREACHABLE, UNKNOWN):
            unknown = self._uncertain and result.kind == UNREACHABLE
            raise push_error(self._ctx, result._replace(kind=UNKNOWN) if unknown else result)
        self._note(result)
        return None

    def _note(self, result: RemoteResult) -> None:
        """After a failed batch the request is pushed alone, if there is time left."""
        self._batched = self._batched and result.kind not in (SPLIT, STUCK, UNCERTAIN)
        if result.kind in (STUCK, UNCERTAIN):
            _require_time(self._ctx, result)

    def _push_alone(self, attempt: Attempt) -> RemoteResult:
        """Push past the batches: the batch was rejected, or a stopped process holds a lock."""
        ctx = self._ctx
        batch = Batch("", (self._agent,), 0, tuple(as_update(operation) for operation in attempt.operations))
        began = ctx.host.mono()
        result = push_until_known(ctx, batch)
        note_push(ctx, result.kind, ctx.host.mono() - began, attempt.head)
        if result.kind == LANDED:
            self._store.follow(batch.moves)  # if that fails, reading back fetches
        return result

    # --- reading back

    def _fetch_tried(self) -> Attempt | None:
        """The push landed, but the mirror does not show it yet: fetch. Any error says that it was done."""
        try:
            fetch(self._ctx)
        except GitcoordError as error:
            raise OutcomeUnknown(
                f"'{self._store.remote.name}' has done it, but this clone cannot keep it: {error.message}",
                hints=(*error.hints, "running it again is harmless"),
            ) from None
        return self._find_tried()

    def _find_tried(self) -> Attempt | None:
        """The attempt whose last commit is in the ledger, or whose heartbeats are in their refs.

        An attempt that is not there can only land above the present head, so its floor is raised to it: a request that loses
        many races does not read the same commits each time.
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


def _require_time(ctx: Context, result: RemoteResult) -> None:
    """Fail if the command has spent all its time waiting for other processes of this clone."""
    remote = store_of(ctx).remote
    if not remote.deadline.is_over:
        remote.deadline.answered()
    elif result.kind == UNCERTAIN:
        raise push_error(ctx, RemoteResult(UNKNOWN, "another command of this clone pushes it, and is not done yet"))
    else:
        raise TimedOut(
            f"waited {remote.deadline.seconds:.0f} seconds behind another command of this clone, which talks to '{remote.name}'",
            hints=("nothing was changed", "try again"),
        )


def push_error(ctx: Context, result: RemoteResult) -> GitcoordError:
    name = store_of(ctx).remote.name
    if result.kind == REJECTED:
        lines = [line for line in result.words.split("\n") if line]
        hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
        words = "; ".join(line for line in lines if not line.startswith("hint: "))
        return refused("host", f"'{name}' refused it: {words}", *hints, "nothing was changed")
    if result.kind == FAILED:
        return StoreError(f"'{name}' could not do it: {result.words}", hints=("nothing was changed",))
    if result.kind == UNREACHABLE:
        return unreachable(ctx, result.words)
    return OutcomeUnknown(
        f"whether '{name}' has done it cannot be told: {result.words}",
        hints=("once it answers again: git claim list --mine", "running it again is harmless"),
    )


def push_heartbeat(ctx: Context, due_heartbeat: Callable[[], Due], agent: str, *, patient: bool) -> int | None:
    """Queue a heartbeat, and push it where it has waited long enough or the caller is not `patient`.

    Gives the session of the heartbeat that was pushed, 0 if none is open, None if nothing was pushed. The heartbeats of all
    agents of this clone are due at the same time, so they wait for each other and one push carries them.
    """
    with store_of(ctx).remote.deadline.request(changes=False):  # a short time: it is due again soon
        return _push_heartbeat(ctx, due_heartbeat, agent, patient=patient)


def _push_heartbeat(ctx: Context, due_heartbeat: Callable[[], Due], agent: str, *, patient: bool) -> int | None:
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
    result = push_batch(ctx, batch.id)
    if result.kind in (STUCK, UNCERTAIN):
        _require_time(ctx, result)
        own = batch._replace(moves=tuple(m for m in batch.moves if m.ref == session_ref(agent)))
        result = push_until_known(ctx, own)
        if result.kind == LANDED:
            store.follow(own.moves)
    if result.kind in (UNREACHABLE, UNKNOWN):
        raise unreachable(ctx, "no heartbeat")
    if due.old is not None:
        retire(ctx, agent, due.old)
    return due.session
