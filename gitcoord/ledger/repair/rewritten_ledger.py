"""A ledger that a tool has rewritten (`git filter-branch --all` and the like): new commits, mostly the same events.

Such a tool moves the tip and the claim refs too, so only the recorded root tells. The events count, not the commits: where the
rewritten ledger has them all, it is taken as it is; what it lacks comes from the original, as long as git still has that.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import CouldNotJudge, StoreError
from gitcoord.base.names import LEDGER, TIP, Oid
from gitcoord.git.commands.objects import first_parents, is_ancestor
from gitcoord.git.commands.refs import reflog
from gitcoord.git.store import Reader
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision, Event
from gitcoord.ledger.events.epoch import LEAP
from gitcoord.ledger.format import format_record
from gitcoord.ledger.fsck import replay
from gitcoord.ledger.remote.server_behind import Comparison, compare, event_lines, subject
from gitcoord.ledger.repair.lost_events import epoch, events_among, newest_event
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import note_root
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.ledger.transaction import prepare
from gitcoord.startup.annotations import Any

_KEPT_BY_GIT = ("refs/original/refs/gitcoord/tip", f"refs/original/{LEDGER}")


def is_rewritten(ctx: Context, head: Oid, tip: Oid | None) -> bool:
    """Do ledger and tip begin elsewhere than was noted at the set-up, or lack events that they had before they were rewritten?

    A tip that still is the original tells by itself what is wrong.
    """
    root = ctx.settings.get("gitcoord.root")
    if not root or (tip is not None and tip != head and is_ancestor(ctx.repo.env, root, tip)):
        return False
    if not is_ancestor(ctx.repo.env, root, head):
        return True
    kept = [
        oid for oid in ctx.store.resolve(list(_KEPT_BY_GIT)) if oid is not None and is_ancestor(ctx.repo.env, root, oid)
    ]
    return any(not is_ancestor(ctx.repo.env, oid, head) and compare(ctx, oid, head).lacking for oid in kept)


def restore_original(ctx: Context, actor: Actor, reader: Reader, head: Oid, done: list[str]) -> Oid | None:
    """The head that the ledger should have instead of a rewritten one. It writes the commits and moves no ref.

    None: the rewritten ledger is whole, and its root is noted as the new one.
    """
    original = _original(ctx, head)
    comparison = compare(ctx, original.oid, head) if original is not None else None
    if (comparison is not None and comparison.related and not comparison.lacking) or (
        original is None and _is_ours(ctx, reader)
    ):
        note_root(ctx, first_parents(ctx.repo.env, head).lines[-1])
        done.append("took the rewritten ledger: its events are the same")
        return None
    if original is None or comparison is None:
        raise CouldNotJudge(
            "this is another ledger than the one that was set up here, and no trace of that one is left",
            hints=("restore it from a backup or a clone",),
        )
    new = _go_on(ctx, actor, original, comparison, done)
    done.append(
        f"put the ledger back to event {original.event.seq} ({original.oid[:12]}), from before it was rewritten"
    )
    return new


def _original(ctx: Context, head: Oid) -> Commit | None:
    """The newest event of the ledger as it was: from what git keeps of moved refs, else from its objects."""
    root = ctx.settings.get("gitcoord.root")
    kept = [oid for oid in ctx.store.resolve(list(_KEPT_BY_GIT)) if oid is not None]
    if is_ancestor(ctx.repo.env, root, head):
        return next(events_among(ctx, [oid for oid in kept if not is_ancestor(ctx.repo.env, oid, head)]), None)
    names = list(dict.fromkeys([*kept, *reflog(ctx.repo.env, LEDGER).lines]))
    found = sorted(events_among(ctx, names), key=lambda commit: commit.event.seq, reverse=True)
    return next((commit for commit in found if is_ancestor(ctx.repo.env, root, commit.oid)), None) or newest_event(ctx)


def _is_ours(ctx: Context, reader: Reader) -> bool:
    try:
        outcome = replay(ctx, reader)
        return outcome.last is not None and format_record(outcome.state).ledger == ctx.settings.get("gitcoord.ledger")
    except (CouldNotJudge, StoreError):
        return False


def _go_on(ctx: Context, actor: Actor, original: Commit, comparison: Comparison, done: list[str]) -> Oid:
    """A leap above all, on top of the original; and then, with new numbers, what was written after it was rewritten."""
    seq = max(commit.event.seq for commit in (original, *comparison.added)) + LEAP
    event = epoch(ctx, actor, seq, "rewritten")
    below = _written(ctx, original, event)
    numbers: dict[int, int] = {}
    lost = []
    for commit in comparison.added if comparison.related else ():
        event = commit.event
        try:
            again = event._replace(seq=below.event.seq + 1, body=_renumbered(event.body, numbers))
            below = _written(ctx, below, again)
        except CouldNotJudge:
            lost.append(commit)
            continue
        numbers[event.seq] = again.seq
        done.append(f"event {event.seq} is event {again.seq} now: {subject(commit)}")
    done += event_lines("lost, since it does not fit", lost)
    return below.oid


def _renumbered(body: Record, numbers: dict[int, int]) -> Record:
    """The same with the new tokens of the claims that it speaks of."""
    rows = {key: [_row(row, numbers) for row in value] for key, value in body.items() if isinstance(value, list)}
    found: Record = _row({**body, **rows}, numbers)
    return found


def _row(row: Any, numbers: dict[int, int]) -> Any:
    if isinstance(row, dict) and row.get("token") in numbers:
        return {**row, "token": numbers[row["token"]]}
    return row


def _written(ctx: Context, below: Commit, event: Event) -> Commit:
    head, _ = prepare(ctx, Snapshot(ctx.store, None, below), Decision([event], [], {}))
    ctx.store.flush()
    return Commit(ctx.store.read([head])[0], TIP)
