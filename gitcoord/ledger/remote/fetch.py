"""Fetching from the remote authority: the mirror's refs, its age, and the errors of a remote that does not answer."""

from __future__ import annotations

from gitcoord.base.errors import (
    CouldNotJudge,
    GitcoordError,
    LockHeld,
    ServerBehind,
    StoreError,
    Unreachable,
)
from gitcoord.base.names import LEDGER, SESSIONS, TIP, Oid
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.files import read_file, remove_file, write_file
from gitcoord.git.locks.queue import QueuedLock
from gitcoord.git.store import SwapFailed, Update, Verify
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import QUEUE_SECONDS, Context
from gitcoord.ledger.remote.git_remote import (
    BEHIND,
    LANDED,
    LOCAL_ERROR,
    LOCKED,
    NO_LEDGER,
    RACED,
    RemoteResult,
    locked_refs,
)
from gitcoord.ledger.remote.mirror_store import MirrorStore

STUBBORN = 4
_SLOW_FAILURE_MS = 2000  # after a failure that took so long, reading commands do not ask again for _REST_MS
_REST_MS = 30_000


def store_of(ctx: Context) -> MirrorStore:
    assert isinstance(ctx.store, MirrorStore)
    return ctx.store


# --- fetching -----------------------------------------------------------------------------------------------------


def fetch(ctx: Context) -> None:
    """Bring the mirror up to date. Unreachable where the remote does not answer; the mirror then stays as it was."""
    began = ctx.host.mono()
    with store_of(ctx).remote.deadline.request(changes=False):
        result = _fetch_refs(ctx)
    _check_result(ctx, result, began)


def _fetch_refs(ctx: Context) -> RemoteResult:
    store = store_of(ctx)
    for left in reversed(range(STUBBORN)):
        known = store.local.resolve([LEDGER])[0]
        result = store.remote.fetch()
        if result.kind == BEHIND:
            result = _check_rewound(ctx, known)
        store.refresh()
        if result.kind == LANDED and not _advance_tip(ctx):
            result = _check_lost_tip(ctx)
        if result.kind == LOCKED:
            _clear_locks(ctx, result.words, last=not left)
        elif result.kind not in (RACED, LOCAL_ERROR):
            break
        ctx.host.pause(0.05)
    return result


def _check_result(ctx: Context, result: RemoteResult, began: int) -> None:
    store = store_of(ctx)
    if result.kind == NO_LEDGER:
        from gitcoord.ledger.remote.server_behind import check_gone

        check_gone(ctx)
        return
    if result.kind in (RACED, LOCKED):
        raise StoreError(
            f"this clone cannot keep what it fetched from '{store.remote.name}': {result.words}",
            hints=("other commands of this clone may be at work: try again",),
        )
    if result.kind == LOCAL_ERROR:
        raise StoreError(
            f"this clone cannot keep what '{store.remote.name}' sends: {result.words}",
            hints=("nothing was changed", "see what is wrong here: git fsck"),
        )
    if result.kind != LANDED:
        note_failure(ctx, began)
        raise unreachable(ctx, result.words)
    note_fetched(ctx, began)
    store.remote.along_at = began if store.remote.along else 0
    _note_heartbeats(ctx)


def _clear_locks(ctx: Context, words: str, *, last: bool) -> None:
    """Remove the lock files of dead processes that stopped a fetch."""
    try:
        ctx.notes.remove_stale_locks(locked_refs(words))
    except LockHeld:
        if last:
            raise


def _check_rewound(ctx: Context, known: Oid | None) -> RemoteResult:
    """The fetched ledger lacks commits of the mirror. If the remote has them now, another fetch was quicker.

    Only if the ledger was rewound at the remote may the mirror go back; the tip then stays where it was.
    """
    remote = store_of(ctx).remote
    there = remote.ledger()
    kept = is_ancestor(ctx.repo.env, known or "", there or "")
    if kept is False:
        return remote.fetch(back=True)
    store_of(ctx).refresh()
    moved = store_of(ctx).local.resolve([LEDGER])[0] != known
    return RemoteResult(LANDED if moved and kept else RACED)  # raced: the remote has commits that are not here yet


def _check_lost_tip(ctx: Context) -> RemoteResult:
    """The mirror lacks the tip. ServerBehind if the server lacks it too; otherwise another fetch or push was quicker."""
    store = store_of(ctx)
    there = store.remote.ledger()
    if there != store.local.resolve([LEDGER])[0] or _advance_tip(ctx):
        return RemoteResult(RACED)
    from gitcoord.ledger.remote.server_behind import check_behind

    check_behind(ctx)
    return RemoteResult(LANDED)


def _advance_tip(ctx: Context) -> bool:
    """Move the tip forward to the ledger. False: the ledger lacks the tip, which stays and shows that it was rewound."""
    local = store_of(ctx).local
    tip, ledger = local.resolve([TIP, LEDGER])  # the tip first: it follows the ledger
    if ledger is None or tip in (None, ledger):
        return True
    kept = is_ancestor(ctx.repo.env, tip or "", ledger)
    if kept and _seq_grows(ctx, tip or "", ledger):
        try:
            local.swap([Verify(LEDGER, ledger), Update(TIP, tip or "", ledger)])
        except SwapFailed:
            pass  # another fetch was quicker
    return kept is not False


def _seq_grows(ctx: Context, tip: Oid, ledger: Oid) -> bool:
    """If the numbers do not grow, the tip stays, and every writer is refused."""
    below, above = store_of(ctx).local.read([tip, ledger])
    try:
        return Commit(below, TIP).event.seq < Commit(above, LEDGER).event.seq
    except CouldNotJudge:
        return True  # a damaged ledger is reported elsewhere


def _note_heartbeats(ctx: Context) -> None:
    """Record when this host first saw each heartbeat."""
    now = ctx.host.mono()
    for ref, oid in store_of(ctx).local.list_refs(SESSIONS).items():
        path = ctx.scratch(f"seen/{ref.removeprefix(SESSIONS)}")
        head = f"{oid}\n{ctx.host.boot}\n".encode()
        if not read_file(path).startswith(head):
            write_file(path, head + str(now).encode())


# --- when the remote last answered, and when it did not ------------------------------------------------------------


def note_fetched(ctx: Context, began: int) -> None:
    write_file(ctx.scratch("looked"), f"{ctx.host.boot}\n{began}\n{ctx.host.wall()}".encode())
    remove_file(ctx.scratch("unanswered"))


def note_failure(ctx: Context, began: int) -> None:
    """Record a slow failure, so that reading commands do not wait for it as well. A quick one costs nothing."""
    now = ctx.host.mono()
    if now - began >= _SLOW_FAILURE_MS or store_of(ctx).remote.deadline.is_over:
        write_file(ctx.scratch("unanswered"), f"{ctx.host.boot}\n{now}".encode())


def failed_ago(ctx: Context) -> int | None:
    """Milliseconds since the last recorded failure; None if that is long ago, or the remote has answered since."""
    boot, _, at = read_file(f"{ctx.repo.scratch}/unanswered").decode("ascii", "replace").partition("\n")
    if boot != ctx.host.boot or not at.isdecimal():
        return None
    passed = ctx.host.mono() - int(at)
    return passed if 0 <= passed < _REST_MS else None


def fetched_at(ctx: Context) -> tuple[int | None, int]:
    """The start time of the last fetch: on this boot's monotonic clock (None: before it), and on the wall clock."""
    words = read_file(f"{ctx.repo.scratch}/looked").decode("ascii", "replace").split("\n")
    if len(words) != 3 or not words[2].isdecimal():
        return None, 0
    return int(words[1]) if words[0] == ctx.host.boot and words[1].isdecimal() else None, int(words[2])


def is_fresh(ctx: Context, began: int) -> bool:
    fetched, _ = fetched_at(ctx)
    return fetched is not None and fetched >= began


def fetch_once(ctx: Context, began: int) -> None:
    """Fetch, unless a process of this clone has done so since `began`: one fetch serves all that wait."""
    with store_of(ctx).remote.deadline.request(changes=False), PushLock(ctx):
        if not is_fresh(ctx, began):
            restart_patience(ctx)
            fetch(ctx)


class PushLock(QueuedLock):
    """The lock of the process that talks to the remote for this clone.

    A stopped holder delays others only briefly; one that works may take as long as its remote may.
    """

    def __init__(self, ctx: Context) -> None:
        self._deadline = store_of(ctx).remote.deadline
        super().__init__(ctx.scratch("carry.lock"), QUEUE_SECONDS, longer=self._deadline.remaining, tell=ctx.tell)

    def __enter__(self) -> QueuedLock:
        with self._deadline.waiting():
            return super().__enter__()


def restart_patience(ctx: Context) -> None:
    """Give the remote its whole time after a wait for other processes of this clone, unless they waited for it too."""
    deadline = store_of(ctx).remote.deadline
    if not deadline.is_over and failed_ago(ctx) is None:
        deadline.answered()


def refresh_if_older(ctx: Context, most: int = 0) -> dict[str, object]:
    """Fetch if the last fetch is more than `most` seconds ago. Gives the mirror's age, and `offline` if that failed."""
    row: dict[str, object] = {}
    error = try_fetch(ctx, most)
    if error is not None:
        row["offline"] = error.message
        if isinstance(error, ServerBehind):
            row["offline"] = "; ".join((error.message, *error.hints[-1:]))
    return {"as_of_seconds": mirror_age(ctx), **row}


def mirror_age(ctx: Context) -> int | None:
    """Seconds since the last fetch; None where there was none."""
    fetched, wall = fetched_at(ctx)
    if fetched is not None:
        return (ctx.host.mono() - fetched) // 1000
    return max(0, ctx.host.wall() - wall) if wall else None


def try_fetch(ctx: Context, most: int = 0) -> GitcoordError | None:
    """Fetch if the last fetch is more than `most` seconds ago. Gives the error if that failed."""
    wish = ctx.settings.get("gitcoord.maxage")
    most = int(wish) if wish.isdecimal() and len(wish) < 8 else most
    fetched, _ = fetched_at(ctx)
    if fetched is not None and ctx.host.mono() - fetched <= most * 1000:
        return None
    passed = failed_ago(ctx)
    if passed is not None:
        left = (_REST_MS - passed) // 1000 + 1
        return unreachable(ctx, f"it gave no answer {passed // 1000}s ago, and is asked again in {left}s")
    try:
        fetch_once(ctx, ctx.host.mono())
    except GitcoordError as error:
        return error
    return None


def unreachable(ctx: Context, words: str) -> Unreachable:
    _, wall = fetched_at(ctx)
    hints = ["what was last seen there: git claim list"] if wall else []
    if store_of(ctx).remote.deadline.is_over:
        hints.append("if it needs longer: git config gitcoord.remoteTimeout <seconds>")
    name = store_of(ctx).remote.name
    return Unreachable(f"'{name}' cannot be reached: {words or 'no answer'}; nothing was changed", hints=tuple(hints))
