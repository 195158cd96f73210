"""`git coord log` and `git coord fsck`: the ledger's events, and whether all that is there follows from them."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, NotInitialised, StoreError, UsageError
from gitcoord.base.names import LEDGER, TIP, fold, printable, shown
from gitcoord.git.host import isatty
from gitcoord.git.store import Reader
from gitcoord.ledger.kinds import KINDS
from gitcoord.startup.annotations import Any
from gitcoord.terminal.call import Call, number
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import ago, counted, put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.fsck import Progress


def log(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.ledger.log import events

    kind = check_kind(str(values.get("kind", "")))
    if words and values.get("path"):
        raise UsageError("one path at a time")
    name = "".join(words) or str(values.get("path", ""))
    path = _shown_key(call, name) if name else ""
    since, limit = number(values, "since"), number(values, "number", 50)
    found = {"path": path, "agent": str(values.get("agent", "")), "kind": kind}
    result = call.show(lambda: {"events": list(events(call.ctx, **found, since=since, limit=limit))}, events=[])
    if result is not None:
        call.screen.say(*call.screen.table([_log_row(row) for row in result["events"]], ["dim", "yellow", ""]))
        if not result["events"] and not call.screen.json:
            call.screen.note("no such event")
    return 0


def check_kind(kind: str) -> str:
    if kind and kind not in KINDS:
        raise UsageError(f"'{printable(kind)}' is not a kind of event", hints=(", ".join(KINDS),))
    return kind


def _shown_key(call: Call, word: str) -> str:
    from gitcoord.claims import pathspec as paths

    item = paths.one(call.ctx.repo, word)
    return shown(fold(item.name, case=False), item.space)


def _log_row(row: dict[str, Any]) -> list[str]:
    if "error" in row:
        return ["?", "", f"commit {row['commit'][:12]}: {printable(row['error'])}"]
    from gitcoord.ledger.log import event_words

    return [str(row["seq"]), ago(row["at"]), event_words(row)]


def fsck(call: Call, values: Values, words: list[str]) -> int:
    """0 clean (or repaired), 1 differences are left. Where the remote that decides could not be looked at, and what was last
    seen of it has no difference, that error."""
    from gitcoord.ledger import fsck as app_fsck
    from gitcoord.ledger.repair import service as app_repair
    from gitcoord.ledger.setup import find_other_ledger

    repair = bool(values.get("repair"))
    unseen = _look(call)
    reader = _reader(call)
    try:
        _refuse_own_branch(call)
        if repair:
            result = app_repair.repair(call.ctx, call.repair_actor(), reader)
        else:
            result = app_fsck.fsck(call.ctx, reader, _progress(call))
    except NotInitialised as error:
        call.screen.answer({"initialised": False, "clean": True, "differences": []})
        call.screen.note(f"note: {error.message}")
        call.screen.hint(*error.hints)
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
        call.screen.say(f"clean: {counted(int(str(result['events'])), 'event')}")
        return 0
    other = find_other_ledger(call.ctx) if call.ctx.may_name_another_ledger() else None
    if other is not None:
        call.screen.hint(*other.hints)
    elif not repair:
        call.screen.hint("repair it: git coord fsck --repair")
    return 1


def _look(call: Call) -> GitcoordError | None:
    """Looks at the remote that decides. Gives the error where that fails."""
    if not call.ctx.remote:
        return None
    from gitcoord.ledger.remote.fetch import try_fetch

    return try_fetch(call.ctx)


def _refuse_own_branch(call: Call) -> None:
    from gitcoord.ledger.setup import is_ledger
    from gitcoord.ledger.snapshot import refuse_own_branch

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


def _progress(call: Call) -> Progress | None:
    if call.screen.quiet or call.screen.json or not isatty(2):
        return None
    return lambda count: put(2, f"\r\x1b[Kreplaying: {count} events")
