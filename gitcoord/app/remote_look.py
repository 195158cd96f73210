"""Looking at the remote that decides: fetching what it says, how old that is, and what to say when it does not answer."""

from gitcoord.app.ledger import Commit
from gitcoord.errors import (
    CouldNotJudge,
    GitcoordError,
    LockHeld,
    ServerBehind,
    StoreError,
    Unreachable,
)
from gitcoord.names import LEDGER, SESSIONS, TIP
from gitcoord.store.far import BEHIND, LANDED, LOCKED, LOST, NONE, Report, locked_refs
from gitcoord.store.files import read_file, write_file
from gitcoord.store.interface import SwapFailed, Update, Verify
from gitcoord.store.process import run
from gitcoord.store.queue import Queue
from gitcoord.store.remote import RemoteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.names import Oid


CARRY_SECONDS = 90.0
STUBBORN = 4


def store_of(ctx: "Context") -> RemoteStore:
    assert isinstance(ctx.store, RemoteStore)
    return ctx.store


# --- looking ------------------------------------------------------------------------------------------------------


def look(ctx: "Context") -> None:
    """Fetch what the remote has. Unreachable where it does not answer; what was seen before stays."""
    store = store_of(ctx)
    began = ctx.host.mono()
    for left in reversed(range(STUBBORN)):
        known = store.near.resolve([LEDGER])[0]
        report = store.far.fetch()
        if report.kind == BEHIND:
            report = _overtaken(ctx, known)
        store.refresh()
        if report.kind == LANDED and not _follow_tip(ctx):
            report = _lacking(ctx)
        if report.kind == LOCKED:
            _clear_locks(ctx, report.words, last=not left)
        elif report.kind != LOST:
            break
        ctx.host.pause(0.05)
    if report.kind == NONE:
        from gitcoord.app.restored import settle_gone

        settle_gone(ctx)
        return
    if report.kind in (LOST, LOCKED):
        raise StoreError(
            f"this clone cannot keep what it fetched from '{store.far.name}': {report.words}",
            hints=("other commands of this clone may be at work: try again",),
        )
    if report.kind != LANDED:
        raise unreachable(ctx, report.words)
    _note_look(ctx, began)


def _clear_locks(ctx: "Context", words: str, *, last: bool) -> None:
    """Lock files of this clone stopped a fetch: remove what a dead process left."""
    try:
        ctx.notes.recover(locked_refs(words))
    except LockHeld:
        if last:
            raise


def _overtaken(ctx: "Context", known: "Oid | None") -> Report:
    """What was fetched lacks what is here. Where the remote still has that, another look was quicker, and as good as this one.

    Only a ledger that was rewound there may set this copy back; then its tip stays, as the witness.
    """
    far = store_of(ctx).far
    there = far.ledger()
    code, _, _ = run(
        ["git", "--no-replace-objects", "merge-base", "--is-ancestor", known or "", there or ""], ctx.repo.env
    )
    if code == 1:
        return far.fetch(back=True)
    store_of(ctx).refresh()
    moved = store_of(ctx).near.resolve([LEDGER])[0] != known
    return Report(LANDED if moved and not code else LOST)  # lost: it has moved on, to where nobody here has been yet


def _lacking(ctx: "Context") -> Report:
    """The mirror lacks the tip. Where the server is really there, ServerBehind; else another look or push was quicker."""
    store = store_of(ctx)
    there = store.far.ledger()
    if there != store.near.resolve([LEDGER])[0] or _follow_tip(ctx):
        return Report(LOST)
    from gitcoord.app.restored import settle_behind

    settle_behind(ctx)
    return Report(LANDED)


def _follow_tip(ctx: "Context") -> bool:
    """The tip goes forward with the ledger. Where that was rewound it stays, and is the witness: False.

    It is read first: it follows the ledger.
    """
    near = store_of(ctx).near
    tip, ledger = near.resolve([TIP, LEDGER])
    if ledger is None or tip in (None, ledger):
        return True
    code, _, _ = run(["git", "--no-replace-objects", "merge-base", "--is-ancestor", tip or "", ledger], ctx.repo.env)
    if not code and _grows(ctx, tip or "", ledger):
        try:
            near.swap([Verify(LEDGER, ledger), Update(TIP, tip or "", ledger)])
        except SwapFailed:
            pass  # another look was quicker
    return code != 1


def _grows(ctx: "Context", tip: "Oid", ledger: "Oid") -> bool:
    """Numbers only grow. Where they do not, the tip stays: whoever would write is refused."""
    below, above = store_of(ctx).near.read([tip, ledger])
    try:
        return Commit(below, TIP).event.seq < Commit(above, LEDGER).event.seq
    except CouldNotJudge:
        return True  # something else is wrong with it, and is said elsewhere


def _note_look(ctx: "Context", began: int) -> None:
    """When the remote was last seen; and every heartbeat seen on the way counts as a look at its agent."""
    seen_since(ctx, began)
    now = ctx.host.mono()
    for ref, oid in store_of(ctx).near.list_refs(SESSIONS).items():
        path = ctx.scratch(f"seen/{ref.removeprefix(SESSIONS)}")
        head = f"{oid}\n{ctx.host.boot}\n".encode()
        if not read_file(path).startswith(head):
            write_file(path, head + str(now).encode())


def seen_since(ctx: "Context", began: int) -> None:
    write_file(ctx.scratch("looked"), f"{ctx.host.boot}\n{began}\n{ctx.host.wall()}".encode())


def seen_at(ctx: "Context") -> "tuple[int | None, int]":
    """When the remote was last looked at: on this boot's monotonic clock (None: before it), and on the wall clock."""
    words = read_file(f"{ctx.repo.scratch}/looked").decode("ascii", "replace").split("\n")
    if len(words) != 3 or not words[2].isdecimal():
        return None, 0
    return int(words[1]) if words[0] == ctx.host.boot and words[1].isdecimal() else None, int(words[2])


def is_fresh(ctx: "Context", began: int) -> bool:
    seen, _ = seen_at(ctx)
    return seen is not None and seen >= began


def look_once(ctx: "Context", began: int) -> None:
    """Fetch, unless somebody here has done so since we began: one look serves all who wait."""
    with Queue(ctx.scratch("carry.lock"), CARRY_SECONDS):
        if not is_fresh(ctx, began):
            look(ctx)


def recent(ctx: "Context", most: int = 0) -> "dict[str, object]":
    """For those who look: fetch if the last look is older than that, else or in vain go on with it. Tells how old it is."""
    wish = ctx.settings.get("gitcoord.maxage")
    most = int(wish) if wish.isdecimal() and len(wish) < 8 else most
    seen, wall = seen_at(ctx)
    told: dict[str, object] = {}
    if seen is None or ctx.host.mono() - seen > most * 1000:
        try:
            look_once(ctx, ctx.host.mono())
        except GitcoordError as error:
            told["offline"] = error.message
            if isinstance(error, ServerBehind):
                told["offline"] = "; ".join((error.message, *error.hints[-1:]))
        seen, wall = seen_at(ctx)
    age = (ctx.host.mono() - seen) // 1000 if seen is not None else max(0, ctx.host.wall() - wall) if wall else None
    return {"as_of_seconds": age, **told}


def unreachable(ctx: "Context", words: str, what: str = "nothing was changed") -> Unreachable:
    _, wall = seen_at(ctx)
    hints = ["what was last seen there: git claim list"] if wall else []
    return Unreachable(
        f"'{store_of(ctx).far.name}' cannot be reached: {words or 'no answer'}; {what}", hints=tuple(hints)
    )
