"""`git coord fsck`: the reader for volume, a progress line, the differences."""

from __future__ import annotations

import sys

from gitcoord.base.errors import GitcoordError, NotInitialised, StoreError
from gitcoord.base.names import LEDGER, TIP, printable
from gitcoord.ledger import fsck as app_fsck
from gitcoord.ledger.repair import service as app_repair
from gitcoord.ledger.setup import is_ledger
from gitcoord.ledger.snapshot import refuse_own_branch
from gitcoord.terminal.call import Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.store import Reader


def run_fsck(call: Call, *, repair: bool) -> int:
    """0 clean (or mended), 1 differences are left. Where the remote that decides could not be looked at, and what was last
    seen of it has no difference, that error."""
    unseen = _look(call)
    reader = _reader(call)
    try:
        _refuse_own_branch(call)
        if repair:
            result = app_repair.repair(call.ctx, call.repairer(), reader)
        else:
            result = app_fsck.fsck(call.ctx, reader, _progress(call))
    except NotInitialised as error:
        call.screen.answer({"initialised": False, "clean": True, "differences": []})
        call.screen.note(f"note: {error.message}")
        call.screen.hint(*(hint for hint in error.hints if hint.startswith("rename")))
        return 0
    if unseen is not None and not repair:
        if result["clean"]:
            call.screen.note(f"note: what was last seen of '{printable(call.ctx.remote)}' has no difference")
            raise unseen
        result["offline"] = unseen.message
        call.screen.note(f"note: {printable(unseen.message)}")
    call.screen.answer(result, ok=bool(result["clean"]))
    call.screen.say(*(f"repaired: {printable(line)}" for line in result.get("repaired", ())))  # type: ignore[attr-defined]
    call.screen.say(*(f"difference: {printable(line)}" for line in result["differences"]))  # type: ignore[attr-defined]
    if result["clean"]:
        call.screen.say(f"clean: {result['events']} events")
        return 0
    if not repair:
        call.screen.hint("mend it: git coord fsck --repair")
    return 1


def _look(call: Call) -> GitcoordError | None:
    """Looks at the remote that decides. Gives the error where that fails."""
    if not call.ctx.remote:
        return None
    from gitcoord.ledger.remote.fetch import renew

    return renew(call.ctx)


def _refuse_own_branch(call: Call) -> None:
    head, tip = call.ctx.store.resolve([LEDGER, TIP])
    if head is not None and not is_ledger(call.ctx.store, LEDGER):
        refuse_own_branch(call.ctx, tip is not None)


def _reader(call: Call) -> Reader:
    """libgit2 reads at volume; where it refuses the repository (sha256, reftable), git itself does."""
    from gitcoord.git.libgit2_reader import Pygit2Reader

    try:
        return Pygit2Reader(call.ctx.repo.common_dir)
    except StoreError:
        return call.ctx.store


def _progress(call: Call) -> app_fsck.Progress | None:
    if call.screen.quiet or call.screen.json or not sys.stderr.isatty():
        return None

    def show(count: int) -> None:
        sys.stderr.write(f"\r\x1b[Kreplaying: {count} events")
        sys.stderr.flush()

    return show
