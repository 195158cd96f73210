"""Looking at the remote that decides: fetching what it says, how old that is, and what to say when it does not answer."""

from __future__ import annotations

from gitcoord.base.errors import (
    CouldNotJudge,
    GitcoordError,
    LockHeld,
    ServerBehind,
    StoreError,
    Unreachable,
)
from gitcoord.base.names import LEDGER, SESSIONS, TIP
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.files import read_file, remove_file, write_file
from gitcoord.git.locks.queue import Queue
from gitcoord.git.store import SwapFailed, Update, Verify
from gitcoord.ledger.context import QUEUE_SECONDS
from gitcoord.ledger.remote.git_remote import BEHIND, LANDED, LOCKED, LOST, NONE, OWN, Report, locked_refs
from gitcoord.ledger.remote.mirror_store import MirrorStore
from gitcoord.ledger.snapshot import Commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.names import Oid
    from gitcoord.ledger.context import Context


STUBBORN = 4
_FAILED_MS = 2000  # a remote that took so long to fail, or was given up, is left alone for a while
_REST_MS = 30_000


def store_of(ctx: Context) -> MirrorStore:
    assert isinstance(ctx.store, MirrorStore)
    return ctx.store


# --- looking ------------------------------------------------------------------------------------------------------


def fetch(ctx: Context) -> None:
    """Fetch what the remote has. Unreachable where it does not answer; what was seen before stays."""
    began = ctx.host.mono()
    with store_of(ctx).remote.deadline.request(changes=False):
        report = _fetch_refs(ctx)
    _check_report(ctx, report, began)


def _fetch_refs(ctx: Context) -> Report:
    store = store_of(ctx)
    for left in reversed(range(STUBBORN)):
        known = store.local.resolve([LEDGER])[0]
        report = store.remote.fetch()
        if report.kind == BEHIND:
            report = _overtaken(ctx, known)
        store.refresh()
        if report.kind == LANDED and not _follow_tip(ctx):
            report = _lacking(ctx)
        if report.kind == LOCKED:
            _clear_locks(ctx, report.words, last=not left)
        elif report.kind not in (LOST, OWN):
            break
        ctx.host.pause(0.05)
    return report


def _check_report(ctx: Context, report: Report, began: int) -> None:
    store = store_of(ctx)
    if report.kind == NONE:
        from gitcoord.ledger.remote.server_behind import check_gone

        check_gone(ctx)
        return
    if report.kind in (LOST, LOCKED):
        raise StoreError(
            f"this clone cannot keep what it fetched from '{store.remote.name}': {report.words}",
            hints=("other commands of this clone may be at work: try again",),
        )
    if report.kind == OWN:
        raise StoreError(
            f"this clone cannot keep what '{store.remote.name}' sends: {report.words}",
            hints=("nothing was changed", "see what is wrong here: git fsck"),
        )
    if report.kind != LANDED:
        note_failure(ctx, began)
        raise unreachable(ctx, report.words)
    _note_fetch(ctx, began)


def _clear_locks(ctx: Context, words: str, *, last: bool) -> None:
    """Lock files of this clone stopped a fetch: remove what a dead process left."""
    try:
        ctx.notes.remove_stale_locks(locked_refs(words))
    except LockHeld:
        if last:
            raise


def _overtaken(ctx: Context, known: Oid | None) -> Report:
    """What was fetched lacks what is here. Where the remote still has that, another look was quicker, and as good as this one.

    Only a ledger that was rewound there may set this copy back; then its tip stays, as the witness.
    """
    remote = store_of(ctx).remote
    there = remote.ledger()
    kept = is_ancestor(ctx.repo.env, known or "", there or "")
    if kept is False:
        return remote.fetch(back=True)
    store_of(ctx).refresh()
    moved = store_of(ctx).local.resolve([LEDGER])[0] != known
    return Report(LANDED if moved and kept else LOST)  # lost: it has moved on, to where nobody here has been yet


def _lacking(ctx: Context) -> Report:
    """The mirror lacks the tip. Where the server is really there, ServerBehind; else another look or push was quicker."""
    store = store_of(ctx)
    there = store.remote.ledger()
    if there != store.local.resolve([LEDGER])[0] or _follow_tip(ctx):
        return Report(LOST)
    from gitcoord.ledger.remote.server_behind import check_behind

    check_behind(ctx)
    return Report(LANDED)


def _follow_tip(ctx: Context) -> bool:
    """The tip goes forward with the ledger. Where that was rewound it stays, and is the witness: False.

    It is read first: it follows the ledger.
    """
    local = store_of(ctx).local
    tip, ledger = local.resolve([TIP, LEDGER])
    if ledger is None or tip in (None, ledger):
        return True
    kept = is_ancestor(ctx.repo.env, tip or "", ledger)
    if kept and _grows(ctx, tip or "", ledger):
        try:
            local.swap([Verify(LEDGER, ledger), Update(TIP, tip or "", ledger)])
        except SwapFailed:
            pass  # another look was quicker
    return kept is not False


def _grows(ctx: Context, tip: Oid, ledger: Oid) -> bool:
    """Numbers only grow. Where they do not, the tip stays: whoever would write is refused."""
    below, above = store_of(ctx).local.read([tip, ledger])
    try:
        return Commit(below, TIP).event.seq < Commit(above, LEDGER).event.seq
    except CouldNotJudge:
        return True  # something else is wrong with it, and is said elsewhere


def _note_fetch(ctx: Context, began: int) -> None:
    """When the remote was last seen; and every heartbeat seen on the way counts as a look at its agent."""
    note_fetched(ctx, began)
    now = ctx.host.mono()
    for ref, oid in store_of(ctx).local.list_refs(SESSIONS).items():
        path = ctx.scratch(f"seen/{ref.removeprefix(SESSIONS)}")
        head = f"{oid}\n{ctx.host.boot}\n".encode()
        if not read_file(path).startswith(head):
            write_file(path, head + str(now).encode())


def note_fetched(ctx: Context, began: int) -> None:
    write_file(ctx.scratch("looked"), f"{ctx.host.boot}\n{began}\n{ctx.host.wall()}".encode())
    remove_file(ctx.scratch("unanswered"))


def note_failure(ctx: Context, began: int) -> None:
    """Whoever only looks need not wait for it as well. One that fails at once costs nobody anything, and is asked again."""
    now = ctx.host.mono()
    if now - began >= _FAILED_MS or store_of(ctx).remote.deadline.is_over:
        write_file(ctx.scratch("unanswered"), f"{ctx.host.boot}\n{now}".encode())


def failed_ago(ctx: Context) -> int | None:
    """How many milliseconds ago the remote was given up; None where that is long ago, or it has answered since."""
    boot, _, at = read_file(f"{ctx.repo.scratch}/unanswered").decode("ascii", "replace").partition("\n")
    if boot != ctx.host.boot or not at.isdecimal():
        return None
    passed = ctx.host.mono() - int(at)
    return passed if 0 <= passed < _REST_MS else None


def fetched_at(ctx: Context) -> tuple[int | None, int]:
    """When the remote was last looked at: on this boot's monotonic clock (None: before it), and on the wall clock."""
    words = read_file(f"{ctx.repo.scratch}/looked").decode("ascii", "replace").split("\n")
    if len(words) != 3 or not words[2].isdecimal():
        return None, 0
    return int(words[1]) if words[0] == ctx.host.boot and words[1].isdecimal() else None, int(words[2])


def is_fresh(ctx: Context, began: int) -> bool:
    seen, _ = fetched_at(ctx)
    return seen is not None and seen >= began


def fetch_once(ctx: Context, began: int) -> None:
    """Fetch, unless somebody here has done so since we began: one look serves all who wait."""
    with store_of(ctx).remote.deadline.request(changes=False), push_lock(ctx):
        if not is_fresh(ctx, began):
            waited(ctx)
            fetch(ctx)


def push_lock(ctx: Context) -> Queue:
    """The lock of whoever talks to the remote for this clone. One that is stopped holds up nobody for long; one that is at work
    has as much time as its remote."""
    return _CarriersPlace(ctx)


class _CarriersPlace(Queue):
    def __init__(self, ctx: Context) -> None:
        self._deadline = store_of(ctx).remote.deadline
        super().__init__(ctx.scratch("carry.lock"), QUEUE_SECONDS, longer=self._deadline.remaining, tell=ctx.tell)

    def __enter__(self) -> Queue:
        with self._deadline.waiting():
            return super().__enter__()


def waited(ctx: Context) -> None:
    """Others of this clone were waited for, not the remote: unless it kept them waiting, it has its whole time now."""
    deadline = store_of(ctx).remote.deadline
    if not deadline.is_over and failed_ago(ctx) is None:
        deadline.answered()


def refresh_if_older(ctx: Context, most: int = 0) -> dict[str, object]:
    """For those who look: fetch if the last look is older than that, else or in vain go on with it. Tells how old it is."""
    told: dict[str, object] = {}
    error = try_fetch(ctx, most)
    if error is not None:
        told["offline"] = error.message
        if isinstance(error, ServerBehind):
            told["offline"] = "; ".join((error.message, *error.hints[-1:]))
    seen, wall = fetched_at(ctx)
    age = (ctx.host.mono() - seen) // 1000 if seen is not None else max(0, ctx.host.wall() - wall) if wall else None
    return {"as_of_seconds": age, **told}


def try_fetch(ctx: Context, most: int = 0) -> GitcoordError | None:
    """Fetch if the last look is more than so many seconds ago. Gives the error where that fails."""
    wish = ctx.settings.get("gitcoord.maxage")
    most = int(wish) if wish.isdecimal() and len(wish) < 8 else most
    seen, _ = fetched_at(ctx)
    if seen is None or ctx.host.mono() - seen > most * 1000:
        try:
            _fetch_unless_failing(ctx)
        except GitcoordError as error:
            return error
    return None


def _fetch_unless_failing(ctx: Context) -> None:
    passed = failed_ago(ctx)
    if passed is not None:
        left = (_REST_MS - passed) // 1000 + 1
        raise unreachable(ctx, f"it gave no answer {passed // 1000}s ago, and looks ask again in {left}s")
    fetch_once(ctx, ctx.host.mono())


def unreachable(ctx: Context, words: str, what: str = "nothing was changed") -> Unreachable:
    _, wall = fetched_at(ctx)
    hints = ["what was last seen there: git claim list"] if wall else []
    if store_of(ctx).remote.deadline.is_over:
        hints.append("if it needs longer: git config gitcoord.remoteTimeout <seconds>")
    return Unreachable(
        f"'{store_of(ctx).remote.name}' cannot be reached: {words or 'no answer'}; {what}", hints=tuple(hints)
    )
