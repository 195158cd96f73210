"""The transaction: queue, read, heal, decide, write objects, one swap, read back; again if the race was lost.

Order of refs in the swap: the ledger first, `refs/gitcoord/tip` last. A crash in between leaves either the old ledger, or
the new one with claim refs behind it, which the next writer mends before its own event.
"""

from gitcoord.app.heal import heal
from gitcoord.app.ledger import Commit, load, read_snapshot, settle
from gitcoord.app.refusals import count_refusal, pending_refusals, settle_refusals
from gitcoord.core.claims import FORMAT_MINOR, format_record
from gitcoord.core.codec import encode_file
from gitcoord.core.events import Decision, effects, encode_event
from gitcoord.core.kinds import kind_module
from gitcoord.core.sessions import agent_record, encode_beat, is_torn_kill, lost_rows
from gitcoord.errors import Contention, CouldNotJudge, OutcomeUnknown, Refusal, Refused, StoreError
from gitcoord.names import LEDGER, TIP, Oid, session_ref
from gitcoord.record import NamedTuple
from gitcoord.store.interface import Create, Delete, SwapFailed, Update, Verify, move
from gitcoord.store.tree import TreeEditor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitcoord.app.context import Context
    from gitcoord.app.ledger import Snapshot, What
    from gitcoord.core.codec import Record
    from gitcoord.core.events import Event
    from gitcoord.core.state import State, View
    from gitcoord.store.interface import Operation

    Rule = Callable[[State, Any, View], "Decision | Refusal"]

ATTEMPTS = 60
_STUBBORN = 6
_GC_EVERY = 128


def transact(
    ctx: "Context", decide: "Rule", command: "Any", *, ahead: "tuple[What, ...]" = (), copied: bool = False
) -> "dict[str, object]":
    """Make a command happen, and give what it has to tell.

    Refused: a rule said no. Contention: the race was lost too often. StoreError: nothing happened. OutcomeUnknown: the
    swap was made but cannot be seen. `copied` lets a copy write on the ledger it came with, which only `adopt` may.
    """
    try:
        result = _transact(ctx, decide, command, ahead, copied=copied)
    except BaseException:
        ctx.host.shield(False)
        raise
    if not ctx.host.tells:
        ctx.host.shield(False)
    return result


def _transact(
    ctx: "Context", decide: "Rule", command: "Any", ahead: "tuple[What, ...]", *, copied: bool
) -> "dict[str, object]":
    actor = command.actor.agent
    with ctx.queue() as queue:
        command = command._replace(nonce=command.nonce or ctx.host.random(), refused=pending_refusals(ctx, actor))
        patience = _STUBBORN
        for attempt in range(ATTEMPTS):
            snapshot = read_snapshot(ctx, agent=actor, ahead=ahead, copied=copied)
            _require_known_format(snapshot)
            heal(ctx, snapshot)
            view = ctx.view()
            answer = settle(ctx, snapshot, view, lambda state, view: decide(state, command, view))
            burial = _bury(ctx, snapshot, view, command)
            decision = burial or answer
            if isinstance(decision, Refusal):
                count_refusal(ctx, actor, decision)
                raise Refused(decision)
            if not decision.events and not decision.beats:
                return _told(ctx, snapshot, view, actor, decision)
            obstacle = _commit(ctx, snapshot, view, decision)
            if obstacle is None:
                ctx.host.shield(burial is None)
                _afterwards(ctx, snapshot, actor, decision)
                if burial is None:
                    return _told(ctx, snapshot, view, actor, decision)
            elif obstacle.lost_race:
                if not queue.held:
                    ctx.host.pause(0.002 * min(attempt + 1, 16))
            elif patience:
                patience -= 1
                ctx.host.pause(0.02)
            else:
                raise _final(ctx, obstacle)
    raise Contention(f"lost the race {ATTEMPTS} times", hints=("try again",))


def _require_known_format(snapshot: "Snapshot") -> None:
    """A newer minor format may be read, not written."""
    if format_record(snapshot.state)["minor"] > FORMAT_MINOR:
        raise CouldNotJudge("this ledger has a newer format", hints=("upgrade gitcoord on this side to write here",))


class Obstacle(NamedTuple):
    """Why a swap did not happen: a lost race, or something in the way of these operations."""

    lost_race: bool
    operations: "list[Operation]"
    message: str


def _commit(ctx: "Context", snapshot: "Snapshot", view: "View", decision: Decision) -> "Obstacle | None":
    """Write, swap, read back. None if it happened."""
    head, operations = _prepare(ctx, snapshot, view, decision)
    ctx.host.shield(True)
    try:
        ctx.store.swap(operations)
    except SwapFailed as failure:
        if decision.events and _in_ledger(ctx, head, decision):
            return None  # git failed after the ledger had moved; the rest is mended by the next writer
        ctx.host.shield(False)
        return _why(ctx, operations, failure)
    if not _in_ledger(ctx, head, decision):
        ctx.store.refresh()
        if not _in_ledger(ctx, head, decision):
            _take_back(ctx, operations)
            raise OutcomeUnknown("git said the swap was done, but the ledger does not show it", hints=("run it again",))
    return None


def _take_back(ctx: "Context", operations: "list[Operation]") -> None:
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


def _prepare(ctx: "Context", snapshot: "Snapshot", view: "View", decision: Decision) -> "tuple[Oid, list[Operation]]":
    """Write all objects; give the new head and the operations that lead there."""
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
        head = store.write("commit", commit_bytes(event, tree, head))
        for ref, present in kind_module(event.kind).refs(state, event).items():
            wanted[ref] = head if present else None
        state = state.patched(changes)
        state.seq = event.seq
    operations: list[Operation] = [] if head == snapshot.head else [Update(LEDGER, snapshot.head, head)]
    rows = [(ref, old, wanted[ref]) for ref, old in zip(wanted, store.resolve(list(wanted)))]
    for beat in decision.beats:
        if beat.agent not in snapshot.session_oids:
            load(ctx, snapshot, view, ("beat", beat.agent))
        rows.append(
            (session_ref(beat.agent), snapshot.session_oids[beat.agent], store.write("blob", encode_beat(beat)))
        )
    if operations:
        rows.append((TIP, snapshot.tip, head))
    else:
        operations.append(Verify(LEDGER, snapshot.head))  # a heartbeat counts only on the ledger that was read
    store.flush()
    operations += [operation for row in rows if (operation := move(*row)) is not None]
    return head, operations


def commit_bytes(event: "Event", tree: Oid, parent: "Oid | None") -> bytes:
    who = f"{event.agent} <{event.agent}@gitcoord.invalid> {event.at} +0000"
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else []), f"author {who}", f"committer {who}"]
    return "\n".join(lines).encode() + b"\n\n" + encode_event(event)


def _in_ledger(ctx: "Context", head: Oid, decision: Decision) -> bool:
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


def _why(ctx: "Context", operations: "list[Operation]", failure: SwapFailed) -> Obstacle:
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


def _final(ctx: "Context", obstacle: Obstacle) -> StoreError:
    """What to say when trying again did not help."""
    try:
        ctx.store.recover(obstacle.operations)
    except StoreError as error:
        return error
    return StoreError(f"git could not move the refs: {obstacle.message}", hints=("nothing was changed",))


def _bury(ctx: "Context", snapshot: "Snapshot", view: "View", command: "Any") -> "Decision | None":
    """A tombstone that the ledger does not know is a kill that was torn: record it before anything else."""
    for agent, beat in list(view.beats.items()):
        if beat is not None and beat.killed:
            record = _record(ctx, snapshot, view, agent)
            if record is not None and is_torn_kill(record, beat):
                kind = kind_module("kill")
                order = kind.Kill(command.actor, agent, "a tombstone without a record", command.nonce)
                return _record_kill(ctx, snapshot, view, kind, order)
    return None


def _record_kill(ctx: "Context", snapshot: "Snapshot", view: "View", kind: "Any", order: "Any") -> "Decision | None":
    decision = settle(ctx, snapshot, view, lambda state, view: kind.decide(state, order, view))
    return decision if isinstance(decision, Decision) else None


def _record(ctx: "Context", snapshot: "Snapshot", view: "View", agent: str) -> "Record | None":
    return settle(ctx, snapshot, view, lambda state, view: agent_record(state, agent))


def _afterwards(ctx: "Context", snapshot: "Snapshot", actor: str, decision: Decision) -> None:
    """Housekeeping that may be lost, and never makes a grant look failed."""
    try:
        _keep_house(ctx, snapshot, actor, decision)
    except (StoreError, OSError):
        pass


def _keep_house(ctx: "Context", snapshot: "Snapshot", actor: str, decision: Decision) -> None:
    """Old heartbeats, counted refusals, git's own maintenance."""
    if decision.beats:
        from gitcoord.app.retired import retire  # once a slot
    for beat in decision.beats:
        retire(ctx, beat.agent, snapshot.session_oids.get(beat.agent))
    if decision.events:
        settle_refusals(ctx, actor, decision.events[0])
        if decision.events[-1].seq % _GC_EVERY == 0 and ctx.settings.flag("gitcoord.gc", default=True):
            ctx.store.maintain()


def _told(ctx: "Context", snapshot: "Snapshot", view: "View", actor: str, decision: Decision) -> "dict[str, object]":
    """The result, with what the actor lost since its last event."""
    record = _record(ctx, snapshot, view, actor)
    result = dict(decision.result)
    if record is not None and record["lost"]:
        result["lost"] = lost_rows(record)
    return result
