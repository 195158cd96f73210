"""The transaction: queue, read, fix torn refs, decide, write objects, one swap, read back, answer.

What always holds:

- The ledger decides. One swap moves it together with every ref that follows from it, and only from where it was read: the ledger
  first, claim and session refs after it, `refs/gitcoord/tip` last.
- A crash in between leaves the old ledger, or the new one with refs behind it. Before the next writer decides, it moves the refs
  that the last transaction should have moved (`fix_torn_refs`). The ledger alone says what happened, so nothing is lost.
- Read-back: a result is told only after our own commit was found in the ledger, whatever git said about the swap.
- A lost race is no error. The command is decided again, by the same rule on the new ledger.
- The queue is for fairness and throughput. Nothing depends on it.

Where the swap is made is the authority's affair: here, or at a remote (`remote/transaction.py`).
"""

from __future__ import annotations

from gitcoord.base.codec import UPGRADE, Record, encode_file
from gitcoord.base.errors import Contention, CouldNotJudge, LockHeld, OutcomeUnknown, Refusal, Refused, StoreError
from gitcoord.base.names import LEDGER, TIP, Oid, session_ref, shown
from gitcoord.git.files import remove_file
from gitcoord.git.store import Operation, RefUpdate, SwapFailed, Update, Verify, as_update, move
from gitcoord.git.tree import TreeEditor
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision, Event, commit_bytes, effects, refs_of
from gitcoord.ledger.format import FORMAT_MINOR, format_record
from gitcoord.ledger.refusal_counts import count_refusal, forget_refusals, pending_refusals
from gitcoord.ledger.sessions import Heartbeat, agent_record, encode_heartbeat, is_torn_kill
from gitcoord.ledger.snapshot import Snapshot, history, read_heartbeat, read_snapshot
from gitcoord.ledger.state import Part, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Any, Callable, Protocol, Sequence
from gitcoord.startup.namedtuple import NamedTuple

Rule = Callable[[State, Any, World], Decision]


class Authority(Protocol):
    """The authority that decides; a context around all attempts of one transaction."""

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...

    def decide(self, proposal: Proposal) -> Attempt | None:
        """The proposal decided on the newest state that is known here; None: it only waited for others."""

    def confirms(self) -> bool:
        """Return whether an answer that changes nothing may be given. False: fetched a newer state, decide again."""

    def commit(self, attempt: Attempt) -> Attempt | None:
        """The attempt of this proposal that is in the ledger now, by reading back; None: no attempt is, decide again.

        StoreError: nothing happened, and trying again does not help. OutcomeUnknown: it cannot be told.
        """


ATTEMPTS = 60
_STUBBORN = 6
_GC_EVERY = 128


class Proposal(NamedTuple):
    """A command, the rule that decides it, and the parts of the state that the rule will ask for."""

    rule: Rule
    command: Any
    prefetch: tuple[Part, ...]
    copied: bool
    moving: RefUpdate | None = None  # trunk, which moves in the same swap as the events
    beside: tuple[Operation, ...] = ()  # other refs that do
    nonce: str = ""  # the same in all attempts
    refused: tuple[Record, ...] = ()  # what the agent was refused since its last event
    yields: bool = True  # to other machines that push to the remote


class Attempt(NamedTuple):
    """A proposal decided on one state. Without operations there is nothing to write: it was refused, or is done already."""

    snapshot: Snapshot
    decision: Decision
    refusal: Refusal | None = None
    head: Oid = ""  # of the ledger afterwards
    operations: tuple[Operation, ...] = ()
    is_torn_kill: bool = False  # not the proposal itself yet, but the record of a kill that was torn


def transact(
    ctx: Context,
    rule: Rule,
    command: Any,
    *,
    prefetch: tuple[Part, ...] = (),
    copied: bool = False,
    moving: RefUpdate | None = None,
    beside: tuple[Operation, ...] = (),
    yields: bool = True,
) -> Record:
    """Make a command happen, and give its result.

    Refused: a rule said no. Contention: the race was lost too often. StoreError: nothing happened. OutcomeUnknown: the
    swap was made but cannot be seen. `copied` lets a copy write on the ledger it came with, which only `adopt` may. `moving`:
    trunk at a remote authority, which moves together with the events or not at all, as do the refs `beside` it; such a landing does not yield, since
    others wait for it. `yields`: False where the agent looks whether its turn has come: a pause in favour of other machines would let it miss its grant.
    """
    try:
        result = _transact(
            ctx,
            _authority(ctx),
            Proposal(rule, command, prefetch, copied, moving, beside, yields=yields and moving is None),
        )
    except BaseException:
        ctx.host.defer_interrupts(False)
        raise
    if not ctx.host.one_shot:
        ctx.host.defer_interrupts(False)
    return result


def _authority(ctx: Context) -> Authority:
    if not ctx.remote:
        return _LocalAuthority(ctx)
    assert ctx.make_authority is not None
    return ctx.make_authority(ctx)


def _transact(ctx: Context, authority: Authority, proposal: Proposal) -> Record:
    command = proposal.command
    actor = command.actor.agent
    with authority:
        nonce = getattr(command, "nonce", "") or ctx.host.random()  # a caller's own, or a new one
        proposal = proposal._replace(nonce=nonce, refused=pending_refusals(ctx, actor))
        for _ in range(ATTEMPTS):
            attempt = authority.decide(proposal)
            if attempt is None:
                continue
            if not attempt.operations:
                if authority.confirms():
                    return _answer(ctx, actor, attempt)
                continue
            ctx.host.defer_interrupts(True)
            done = authority.commit(attempt)
            if done is not None:
                _clean_up(ctx, actor, done)
                if not (done.is_torn_kill or done.decision.again):
                    return result_for(actor, done)
            ctx.host.defer_interrupts(False)
    raise Contention(f"lost the race {ATTEMPTS} times", hints=("try again",))


# --- reading and deciding ------------------------------------------------------------------------------------------


def decide_once(ctx: Context, proposal: Proposal, *, fix: bool = True) -> Attempt:
    """Read the ledger, fix torn refs, decide, write the objects."""
    command = proposal.command
    snapshot = read_snapshot(ctx, agent=command.actor.agent, prefetch=proposal.prefetch, copied=proposal.copied)
    require_known_format(snapshot)
    if fix:
        fix_torn_refs(ctx, snapshot)
    world = ctx.world(snapshot, proposal.moving)
    world.nonce = proposal.nonce
    # The rule is asked first: it reads the heartbeats that matter to it, and only those are searched for a torn kill.
    answer: Decision | Refusal
    try:
        answer = with_refused(proposal.rule(snapshot.state, command, world), proposal.refused)
    except Refused as error:
        answer = error.refusal
    torn_kill = finish_torn_kill(snapshot, world, command)
    decision = torn_kill or answer
    if isinstance(decision, Refusal):
        return Attempt(snapshot, Decision([], [], {}), decision)
    if not (decision.events or decision.beats):
        return Attempt(snapshot, decision)
    head, operations = prepare(ctx, snapshot, decision)
    if proposal.moving is not None and head != snapshot.head and torn_kill is None and not decision.again:
        operations += [Update(*proposal.moving), *proposal.beside]
    return Attempt(snapshot, decision, None, head, tuple(operations), torn_kill is not None)


def with_refused(decision: Decision, refused: tuple[Record, ...]) -> Decision:
    """The decision, whose first event tells what the agent was refused before."""
    if not (refused and decision.events):
        return decision
    first, *rest = decision.events
    return decision._replace(events=[first._replace(refused=refused), *rest])


def require_known_format(snapshot: Snapshot) -> None:
    """A newer minor format may be read, not written."""
    if format_record(snapshot.state).minor > FORMAT_MINOR:
        raise CouldNotJudge("this ledger has a newer format", hints=(f"{UPGRADE} to write here",))


def fix_torn_refs(ctx: Context, snapshot: Snapshot) -> bool:
    """Move the refs that the last transaction should have moved, where a crash tore it. True if something was moved.

    Expected old values come from the refs themselves; the ledger's head is verified in the same swap. A swap that fails
    is no error: somebody else has fixed them meanwhile, or the caller's own swap will say what is wrong.
    """
    commits = _last_transaction(ctx, snapshot)
    wanted: dict[str, Oid | None] = {}
    for commit in reversed(commits):
        event = commit.event
        for ref, present in refs_of(snapshot.state, event).items():
            wanted[ref] = commit.oid if present else None
    rows = [(ref, old, wanted[ref]) for ref, old in zip(wanted, ctx.store.resolve(list(wanted)))]
    rows += [(TIP, snapshot.tip, snapshot.head), *_tombstones(ctx, commits)]
    operations = [operation for row in rows if (operation := move(*row)) is not None]
    if not operations:
        return False
    try:
        swap_over_locks(ctx, [Verify(LEDGER, snapshot.head), *operations])
    except (SwapFailed, LockHeld):
        return False
    snapshot.tip = snapshot.head
    return True


def _last_transaction(ctx: Context, snapshot: Snapshot) -> list[Commit]:
    """The commits that came in together with the head, and those after the recorded tip: newest first."""
    commits = [snapshot.commit]
    if snapshot.tip not in (None, snapshot.head):
        commits = history(ctx, snapshot.head, snapshot.tip)
    missing = commits[-1].event.part
    if missing and commits[-1].parents:
        commits += history(ctx, commits[-1].parents[0], limit=missing)
    return commits


def _tombstones(ctx: Context, commits: list[Commit]) -> list[tuple[str, Oid | None, Oid]]:
    """The session refs of killed agents that show no tombstone yet."""
    rows = []
    for commit in commits:
        if commit.event.kind != "kill":
            continue
        from gitcoord.sessions.events.kill import tombstone

        agent, session = tombstone(commit.event)
        oid, beat = read_heartbeat(ctx.store, agent)  # not the snapshot's: that one is read after this swap
        if beat is None or (beat.session <= session and not beat.killed):
            host = ctx.host
            tomb = Heartbeat("", agent, host.boot, session, host.mono(), host.wall(), 1, killed=commit.event.seq)
            rows.append((session_ref(agent), oid, ctx.write_heartbeat(encode_heartbeat(tomb))))
    return rows


def swap_over_locks(ctx: Context, operations: list[Operation]) -> None:
    """Swap; if that fails on locks of a dead git, remove them and swap once more. SwapFailed, LockHeld."""
    try:
        ctx.store.swap(operations)
    except SwapFailed as failure:
        if "File exists" not in failure.message or not ctx.store.remove_stale_locks(operations):
            raise
        ctx.store.swap(operations)


def finish_torn_kill(snapshot: Snapshot, world: World, command: Any) -> Decision | None:
    """A tombstone that the ledger does not know is a kill that was torn: record it before anything else."""
    for agent, beat in list(snapshot.heartbeats.items()):
        if beat is not None and beat.killed:
            record = agent_record(snapshot.state, agent)
            if record is not None and is_torn_kill(record, beat):
                from gitcoord.sessions.events.kill import Kill, decide

                order = Kill(command.actor, agent, "a tombstone without a record")
                try:
                    return decide(snapshot.state, order, world)
                except Refused:
                    return None
    return None


# --- writing -------------------------------------------------------------------------------------------------------


def prepare(ctx: Context, snapshot: Snapshot, decision: Decision) -> tuple[Oid, list[Operation]]:
    """Write all objects, pending until the swap or a flush; give the new head and the operations that lead there."""
    store, editor = ctx.store, TreeEditor(ctx.store, snapshot.trees)
    head, tree, state = snapshot.head, snapshot.commit.tree, snapshot.state
    wanted: dict[str, Oid | None] = {}
    for event in decision.events:
        changes = effects(state, event)
        blobs = {
            key: None if record is None else store.write("blob", encode_file(key, record))
            for key, record in changes.items()
        }
        tree = editor.edit(tree, blobs) or store.write("tree", b"")
        head = store.write("commit", event_commit(ctx, event, tree, head))
        for ref, present in refs_of(state, event).items():
            wanted[ref] = head if present else None
        state = state.patched(changes)
        state.seq = event.seq
    operations: list[Operation] = [] if head == snapshot.head else [Update(LEDGER, snapshot.head, head)]
    rows = [(ref, old, wanted[ref]) for ref, old in zip(wanted, store.resolve(list(wanted)))]
    for beat in decision.beats:
        rows.append(
            (session_ref(beat.agent), snapshot.session_oid(beat.agent), ctx.write_heartbeat(encode_heartbeat(beat)))
        )
    if operations:
        rows.append((TIP, snapshot.tip, head))
    else:
        operations.append(Verify(LEDGER, snapshot.head))  # a heartbeat counts only on the ledger that was read
    operations += [operation for row in rows if (operation := move(*row)) is not None]
    return head, operations


def event_commit(ctx: Context, event: Event, tree: Oid, parent: Oid | None) -> bytes:
    """The commit of an event, signed by its agent where the settings say so."""
    data = commit_bytes(event, tree, parent)
    if not ctx.settings.get("gitcoord.signing"):
        return data
    from gitcoord.ledger.signing import signed

    return signed(ctx, data, event.agent)


class _LocalAuthority:
    """This repository is the authority: one swap of its own refs."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._queue = ctx.queue()
        self._lost = 0
        self._tries_left = _STUBBORN

    def __enter__(self) -> None:
        self._queue.__enter__()

    def __exit__(self, *_: object) -> None:
        self._queue.__exit__()

    def decide(self, proposal: Proposal) -> Attempt:
        return decide_once(self._ctx, proposal)

    def confirms(self) -> bool:
        return True

    def commit(self, attempt: Attempt) -> Attempt | None:
        store = self._ctx.store
        try:
            store.swap(attempt.operations)
        except SwapFailed as failure:
            if attempt.decision.events and self._is_in_ledger(attempt):
                return attempt  # git failed after the ledger had moved; the rest is fixed by the next writer
            self._prepare_to_retry(attempt.operations, failure)
            return None
        if not self._is_in_ledger(attempt):
            store.refresh()
            if not self._is_in_ledger(attempt):
                self._take_back(attempt.operations)
                raise OutcomeUnknown(
                    "git said the swap was done, but the ledger does not show it", hints=("run it again",)
                )
        return attempt

    def _is_in_ledger(self, attempt: Attempt) -> bool:
        """Return whether our last commit is in the ledger, whole. A heartbeat alone needs no ledger entry."""
        if not attempt.decision.events:
            return True
        found = self._ctx.store.read([LEDGER])[0]
        last = attempt.decision.events[-1].seq
        while found is not None and found.kind == "commit":
            if found.oid == attempt.head:
                return True
            commit = Commit(found, LEDGER)
            if len(commit.parents) != 1 or commit.event.seq <= last:
                return False
            found = self._ctx.store.read(commit.parents)[0]
        return False

    def _prepare_to_retry(self, operations: Sequence[Operation], failure: SwapFailed) -> None:
        """After a failed swap: wait a little, and remove the locks of a dead git if they were the cause.

        StoreError: something else prevents it, and stays.
        """
        self._ctx.host.defer_interrupts(False)
        if self._has_lost_race(operations):
            self._lost += 1
            if not self._queue.acquired:
                self._ctx.host.pause(0.002 * min(self._lost, 16))
            return
        try:
            self._ctx.store.remove_stale_locks(operations)
        except StoreError:
            if not self._tries_left:
                raise
            # else its owner may let go any moment
        if not self._tries_left:
            raise StoreError(f"git could not move the refs: {failure.message}", hints=("nothing was changed",))
        self._tries_left -= 1
        self._ctx.host.pause(0.02)

    def _has_lost_race(self, operations: Sequence[Operation]) -> bool:
        """Return whether another process moved one of the refs. Only reading shows it; git's words do not."""
        now = self._ctx.store.resolve([operation.ref for operation in operations])
        return any((getattr(op, "expected", "") or None) != oid for op, oid in zip(operations, now))

    def _take_back(self, operations: Sequence[Operation]) -> None:
        """Move the other refs back, after our git moved them without its lock: the ledger is another writer's, and they follow it.

        Best effort: fsck names refs that could not be moved back, and nothing is decided by them.
        """
        (ledger,) = self._ctx.store.resolve([LEDGER])
        for ref, old, new in map(as_update, operations):
            before = (ledger or new) if ref == TIP and old else old
            back = move(ref, new or None, before or None)
            try:
                if back is not None and ref != LEDGER:
                    self._ctx.store.swap([back])
            except SwapFailed:
                continue


# --- telling -------------------------------------------------------------------------------------------------------


def _answer(ctx: Context, actor: str, attempt: Attempt) -> Record:
    if attempt.refusal is not None:
        count_refusal(ctx, actor, attempt.refusal)
        if attempt.refusal.code == "deadlock":
            from gitcoord.ledger.alerts import alert_of_deadlock

            alert_of_deadlock(ctx, actor, attempt.refusal.message)
        raise Refused(attempt.refusal)
    return result_for(actor, attempt)


def result_for(actor: str, attempt: Attempt) -> Record:
    """The result, with what the actor lost since its last event, and with the requests of others that its events granted."""
    record = agent_record(attempt.snapshot.state, actor)
    result = dict(attempt.decision.result)
    granted = [row for event in attempt.decision.events for row in event.granted if row["agent"] != actor]
    if granted:
        result["granted_to"] = [
            {
                "agent": row["agent"],
                "ticket": row["ticket"],
                "paths": [shown(name, space) for space, name in row["items"]],
            }
            for row in granted
        ]
    if record is not None and record.lost:
        result["lost"] = [row.to_json() for row in record.lost]
    return result


def _clean_up(ctx: Context, actor: str, done: Attempt) -> None:
    """Old heartbeats, alerts, counted refusals, git's own maintenance. It may be lost, and never makes a grant look failed."""
    events, beats = done.decision.events, done.decision.beats
    try:
        if any(event.granted for event in events):
            world = ctx.world(done.snapshot)
            for event in events:
                if event.granted:
                    world.granted_seen(event.seq)  # the time for which a grant is reserved begins here
        if beats:
            from gitcoord.ledger.heartbeat_gc import retire  # once a slot

            for beat in beats:
                retire(ctx, beat.agent, done.snapshot.session_oid(beat.agent))
                if beat.confirms:
                    remove_file(ctx.scratch(f"grants/{beat.confirms}"))  # its time is not needed any more
        if events and ctx.settings.get("gitcoord.alert"):
            from gitcoord.ledger.alerts import alert_of_events  # only where somebody wants to know

            alert_of_events(ctx, events)
        if events:
            forget_refusals(ctx, actor, events[0])
            if events[-1].seq % _GC_EVERY == 0 and ctx.settings.flag("gitcoord.gc", default=True):
                ctx.store.maintain()
    except (StoreError, OSError):
        pass
