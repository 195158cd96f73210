"""The transaction: queue, read, heal, decide, write objects, one swap, read back; again if the race was lost.

Order of refs in the swap: the ledger first, `refs/gitcoord/tip` last. A crash in between leaves either the old ledger, or
the new one with claim refs behind it, which the next writer mends before its own event.
"""

from gitcoord.app.heal import heal
from gitcoord.app.ledger import Commit, load, read_snapshot, settle
from gitcoord.app.refusals import count_refusal, pending_refusals, settle_refusals
from gitcoord.core.codec import encode_file
from gitcoord.core.events import Decision, effects, encode_event
from gitcoord.core.kinds import kind_module
from gitcoord.core.sessions import agent_record, encode_beat, is_torn_kill
from gitcoord.errors import Contention, OutcomeUnknown, Refusal, Refused, StoreError
from gitcoord.names import LEDGER, TIP, Oid, session_ref
from gitcoord.store.interface import SwapFailed, Update, move
from gitcoord.store.process import Child
from gitcoord.store.tree import TreeEditor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitcoord.app.context import Context
    from gitcoord.app.ledger import Snapshot, What
    from gitcoord.core.events import Event
    from gitcoord.core.state import State, View
    from gitcoord.store.interface import Operation

ATTEMPTS = 60
_STUBBORN = 6
_GC_EVERY = 128


def transact(
    ctx: "Context", decide: "Callable[[State, Any, View], Decision | Refusal]", command: "Any", *,
    ahead: "tuple[What, ...]" = (), copied: bool = False,
) -> "dict[str, object]":
    """Make a command happen, and give what it has to tell.

    Refused: a rule said no. Contention: the race was lost too often. StoreError: nothing happened. OutcomeUnknown: the
    swap was made but cannot be seen. `copied` lets a copy write on the ledger it came with, which only `adopt` may.
    """
    actor = command.actor.agent
    with ctx.queue() as queue:
        command = command._replace(nonce=command.nonce or ctx.host.random(), refused=pending_refusals(ctx, actor))
        stubborn = 0
        for attempt in range(ATTEMPTS):
            snapshot = read_snapshot(ctx, agent=actor, ahead=ahead, copied=copied)
            heal(ctx, snapshot)
            view = ctx.view()
            answer = settle(ctx, snapshot, view, lambda state, view: decide(state, command, view))
            answer = _bury(ctx, snapshot, view, command) or answer
            if isinstance(answer, Refusal):
                count_refusal(ctx, actor, answer)
                raise Refused(answer)
            if not answer.events and not answer.beats:
                return _told(ctx, snapshot, view, actor, answer)
            head, operations = _prepare(ctx, snapshot, view, answer)
            ctx.host.shield(True)
            try:
                ctx.store.swap(operations)
            except SwapFailed as failure:
                if not _in_ledger(ctx, head, answer):
                    ctx.host.shield(False)
                    stubborn += _why(ctx, operations, failure, last=stubborn >= _STUBBORN)
                    if attempt and not queue.held or stubborn:
                        ctx.host.pause(0.002 * min(attempt + 1, 16))
                    continue
            if not _in_ledger(ctx, head, answer):
                raise OutcomeUnknown("git said the swap was done, but the ledger does not show it", hints=("run it again",))
            _afterwards(ctx, snapshot, view, actor, answer)
            if _is_burial(answer, command):
                continue
            return _told(ctx, snapshot, view, actor, answer)
    raise Contention(f"lost the race {ATTEMPTS} times", hints=("try again",))


def _prepare(ctx: "Context", snapshot: "Snapshot", view: "View", decision: Decision) -> "tuple[Oid, list[Operation]]":
    """Write all objects; give the new head and the operations that lead there."""
    store, editor = ctx.store, TreeEditor(ctx.store, snapshot.trees)
    head, tree, state = snapshot.head, snapshot.commit.tree, snapshot.state
    wanted: dict[str, Oid | None] = {}
    for event in decision.events:
        changes = effects(state, event)
        blobs = {key: None if record is None else store.write("blob", encode_file(key, record)) for key, record in changes.items()}
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
        rows.append((session_ref(beat.agent), snapshot.session_oids[beat.agent], store.write("blob", encode_beat(beat))))
    if operations:
        rows.append((TIP, snapshot.tip, head))
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


def _why(ctx: "Context", operations: "list[Operation]", failure: SwapFailed, *, last: bool) -> int:
    """After a failed swap: 0 for a lost race, 1 for something in the way that may pass; else the error."""
    now = ctx.store.resolve([operation.ref for operation in operations])
    if any((getattr(op, "expected", "") or None) != oid for op, oid in zip(operations, now)):
        return 0
    recover = getattr(ctx.store, "recover_locks", None)
    if last:
        if recover is not None:
            recover(operations)
        raise StoreError(f"git could not move the refs: {failure.message}", hints=("nothing was changed",))
    if recover is not None and "File exists" in failure.message:
        try:
            recover(operations)
        except StoreError:
            pass  # its owner may let go any moment; the last try says whose it is
    return 1


def _bury(ctx: "Context", snapshot: "Snapshot", view: "View", command: "Any") -> "Decision | None":
    """A tombstone that the ledger does not know is a kill that was torn: record it before anything else."""
    for agent, beat in view.beats.items():
        if beat is None or not beat.killed:
            continue
        record = settle(ctx, snapshot, view, lambda state, view, agent=agent: agent_record(state, agent))  # type: ignore[misc]
        if record is not None and is_torn_kill(record, beat):
            kill = kind_module("kill")
            order = kill.Kill(command.actor, agent, "a tombstone without a record", command.nonce)
            decision: Decision = settle(ctx, snapshot, view, lambda state, view, order=order: kill.decide(state, order, view))  # type: ignore[misc]
            return decision
    return None


def _is_burial(decision: Decision, command: "Any") -> bool:
    return bool(decision.events) and decision.events[0].kind == "kill" and not hasattr(command, "target")


def _afterwards(ctx: "Context", snapshot: "Snapshot", view: "View", actor: str, decision: Decision) -> None:
    """Housekeeping that may be lost: old heartbeats, counted refusals, git's own maintenance."""
    for beat in decision.beats:
        old = snapshot.session_oids.get(beat.agent)
        if old is not None:
            ctx.store.discard(old)
    if decision.events:
        settle_refusals(ctx, actor, decision.events[0])
        if decision.events[-1].seq % _GC_EVERY == 0 and ctx.settings.flag("gitcoord.gc", default=True) and ctx.repo.objects:
            # Nothing in update-ref ever packs; a claim leaves about ten loose objects.
            Child(["git", "-c", "gc.autoDetach=true", "gc", "--auto", "--quiet"], ctx.repo.env).close_input()


def _told(ctx: "Context", snapshot: "Snapshot", view: "View", actor: str, decision: Decision) -> "dict[str, object]":
    """The result, with what the actor lost since its last event."""
    record = settle(ctx, snapshot, view, lambda state, view: agent_record(state, actor))
    result = dict(decision.result)
    if record is not None and record["lost"]:
        result["lost"] = record["lost"]
    return result

