"""Healing: the refs that the last transaction should have left, where a crash tore it."""

from __future__ import annotations

from gitcoord.base.errors import LockHeld
from gitcoord.base.names import LEDGER, TIP, Oid, session_ref
from gitcoord.git.store import SwapFailed, Verify, move
from gitcoord.ledger.kinds import kind_of
from gitcoord.ledger.sessions import Beat, encode_beat
from gitcoord.ledger.snapshot import Commit, history, read_heartbeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.store import Operation
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.snapshot import Snapshot


def heal(ctx: Context, snapshot: Snapshot) -> bool:
    """Mend the refs of the last transaction. True if something was mended.

    Expected old values come from the refs themselves; the ledger's head is verified in the same swap. A swap that fails
    is no error: whoever moved something meanwhile has healed, or the caller's own swap will say what is wrong.
    """
    commits = _last_transaction(ctx, snapshot)
    wanted: dict[str, Oid | None] = {}
    for commit in reversed(commits):
        event = commit.event
        for ref, present in kind_of(event.kind).refs(snapshot.state, event).items():
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


def swap_over_locks(ctx: Context, operations: list[Operation]) -> None:
    """Swap; where a dead git's locks are in the way, remove them and swap once more. SwapFailed, LockHeld."""
    try:
        ctx.store.swap(operations)
    except SwapFailed as failure:
        if "File exists" not in failure.message or not ctx.store.recover(operations):
            raise
        ctx.store.swap(operations)


def _last_transaction(ctx: Context, snapshot: Snapshot) -> list[Commit]:
    """The commits that came in together with the head, and whatever the recorded tip does not know: newest first."""
    commits = [snapshot.commit]
    if snapshot.tip not in (None, snapshot.head):
        commits = history(ctx, snapshot.head, snapshot.tip)
    missing = commits[-1].event.part
    if missing and commits[-1].parents:
        commits += history(ctx, commits[-1].parents[0], limit=missing)
    return commits


def _tombstones(ctx: Context, commits: list[Commit]) -> list[tuple[str, Oid | None, Oid]]:
    rows = []
    for commit in commits:
        if commit.event.kind != "kill":
            continue
        from gitcoord.sessions.events.kill import tombstone

        agent, session = tombstone(commit.event)
        # Not the snapshot's heartbeat: that one is read after this swap.
        oid, beat = read_heartbeat(ctx.store, agent)
        if beat is None or (beat.session <= session and not beat.killed):
            host = ctx.host
            tomb = Beat("", agent, host.boot, session, host.mono(), host.wall(), 1, killed=commit.event.seq)
            rows.append((session_ref(agent), oid, ctx.write_beat(encode_beat(tomb))))
    return rows
