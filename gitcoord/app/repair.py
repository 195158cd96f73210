"""Repair: what `fsck` names is mended, and nothing is thrown away.

A ledger that is replaced stays below refs/gitcoord/lost/. Commits that are no events stay in the history, named by a
repair event. Where events may be lost for good, an epoch event leaps, so that no token is ever given twice.
"""

from gitcoord.app.fsck import agents_of, beat_of, blobs_of, examine, is_ancestor, tree_differences
from gitcoord.app.ledger import Commit
from gitcoord.app.transact import commit_bytes
from gitcoord.core.codec import Malformed
from gitcoord.core.events import Event
from gitcoord.core.kinds.epoch import LEAP
from gitcoord.core.sessions import KILLED, OPEN, SLOT_MS, Beat, encode_beat
from gitcoord.errors import CouldNotJudge, StoreError
from gitcoord.names import CLAIMS, LEDGER, LOST, TIP, Oid, session_ref
from gitcoord.store.interface import SwapFailed, Verify, move
from gitcoord.store.tree import TreeEditor, Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.app.fsck import Replay
    from gitcoord.core.codec import Record
    from gitcoord.core.sessions import Actor
    from gitcoord.store.interface import Reader


def repair(ctx: "Context", actor: "Actor", reader: "Reader | None" = None) -> "dict[str, object]":
    """Mend what `fsck` names, under the writers' queue; tells what was done and what is left."""
    done: list[str] = []
    with ctx.queue():
        _clear_locks(ctx, done)
        _restore_ledger(ctx, actor, done)
        _, outcome = examine(ctx, reader or ctx.store)
        _append_repair(ctx, actor, outcome, done)
        _, outcome = examine(ctx, reader or ctx.store)
        _project(ctx, outcome, done)
    found, _ = examine(ctx, reader or ctx.store)
    return {"clean": not found["differences"], "repaired": done, **found}


def _clear_locks(ctx: "Context", done: list[str]) -> None:
    if ctx.store.recover([Verify(LEDGER, ""), Verify(TIP, "")]):
        done.append("removed lock files of a dead git process")


def _swap(ctx: "Context", *rows: "tuple[str, Oid | None, Oid | None]") -> None:
    operations = [operation for row in rows if (operation := move(*row)) is not None]
    if operations:
        try:
            ctx.store.swap(operations)
        except SwapFailed as failure:
            raise StoreError(
                f"the repair could not move the refs: {failure.message}", hints=("run it again",)
            ) from None


def _restore_ledger(ctx: "Context", actor: "Actor", done: list[str]) -> None:
    """A ledger that is gone, rewound or replaced goes back to its recorded tip; without one, to the newest grant left."""
    head, tip = ctx.store.resolve([LEDGER, TIP])
    if tip is not None and head is not None and (head == tip or is_ancestor(ctx, tip, head)):
        return
    if tip is not None:
        if head is not None and not is_ancestor(ctx, head, tip):
            _swap(ctx, (LOST + head, ctx.store.resolve([LOST + head])[0], head))
            done.append(f"kept the replaced ledger at {LOST}{head}")
        _swap(ctx, (LEDGER, head, tip))
        done.append(f"put the ledger back to its recorded tip {tip[:12]}")
        return
    if head is not None:
        return  # only the tip is missing: it is set again below
    newest = _newest_grant(ctx)
    if newest is None:
        raise CouldNotJudge(
            "no trace of the ledger is left in this repository", hints=("restore it from a backup or a clone",)
        )
    # Events after this one may be lost: leap, so that none of their tokens is ever given again.
    event = Event(
        "epoch",
        newest.event.seq + LEAP,
        actor.agent,
        ctx.host.wall(),
        ctx.host.random(),
        0,
        {"reason": "the ledger was lost"},
    )
    commit = ctx.store.write("commit", commit_bytes(event, newest.tree, newest.oid))
    ctx.store.flush()
    _swap(ctx, (LEDGER, None, commit), (TIP, None, commit))
    done.append(f"restored the ledger from the newest claim left ({newest.oid[:12]}) and leapt to event {event.seq}")


def _newest_grant(ctx: "Context") -> "Commit | None":
    best: Commit | None = None
    for found in ctx.store.read(sorted(set(ctx.store.list_refs(CLAIMS).values()))):
        try:
            commit = Commit(found, "a claim")
            if best is None or commit.event.seq > best.event.seq:
                best = commit
        except CouldNotJudge:
            continue
    return best


def _append_repair(ctx: "Context", actor: "Actor", outcome: "Replay", done: list[str]) -> None:
    """Go on over commits that are no events, or over a tree that its events did not make."""
    if outcome.last is None:
        return
    head = ctx.store.resolve([LEDGER])[0]
    assert head is not None
    if not outcome.skipped and not tree_differences(ctx, outcome):
        return
    tree = TreeEditor(ctx.store, Trees(ctx.store)).edit(None, dict(blobs_of(ctx.store, outcome.state)))
    assert tree is not None
    body = {"skipped": outcome.skipped, "reason": "fsck --repair"}
    event = Event("repair", outcome.state.seq + 1, actor.agent, ctx.host.wall(), ctx.host.random(), 0, body)
    commit = ctx.store.write("commit", commit_bytes(event, tree, head))
    ctx.store.flush()
    _swap(ctx, (LEDGER, head, commit), (TIP, ctx.store.resolve([TIP])[0], commit))
    done.append(f"appended repair event {event.seq} over {len(outcome.skipped)} commit(s)")


def _project(ctx: "Context", outcome: "Replay", done: list[str]) -> None:
    """Claim refs, tip and tombstones as the events say."""
    if outcome.last is None:
        return
    head, tip = ctx.store.resolve([LEDGER, TIP])
    there = ctx.store.list_refs(CLAIMS)
    rows = [(ref, there.get(ref), outcome.grants.get(ref)) for ref in sorted({*there, *outcome.grants})]
    rows.append((TIP, tip, head))
    for agent, record in agents_of(outcome.state).items():
        rows += _session_row(ctx, agent, record)
    changed = [row for row in rows if row[1] != row[2]]
    ctx.store.flush()
    if changed:
        _swap(ctx, *changed)
        done.append(f"set {len(changed)} ref(s) again")


def _session_row(ctx: "Context", agent: str, record: "Record") -> "list[tuple[str, Oid | None, Oid | None]]":
    old = ctx.store.resolve([session_ref(agent)])[0]
    try:
        beat = beat_of(ctx, agent)
    except Malformed:
        beat = None
    if record["state"] == KILLED and (beat is None or not beat.killed):
        tomb = Beat("", agent, ctx.host.boot, record["session"], ctx.host.mono(), ctx.host.wall(), 1, killed=1)
        return [(session_ref(agent), old, ctx.store.write("blob", encode_beat(tomb)))]
    if record["state"] == OPEN and beat is None:
        fresh = Beat("", agent, ctx.host.boot, record["session"], ctx.host.mono(), ctx.host.wall(), SLOT_MS)
        return [(session_ref(agent), old, ctx.store.write("blob", encode_beat(fresh)))]
    return []
