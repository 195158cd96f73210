"""Keeps the records of `holds.py`, and who works in which work tree, in the scratch directory."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, dumps, loads
from gitcoord.base.errors import StoreError
from gitcoord.git.commands.worktrees import start_status
from gitcoord.git.files import read_file, remove_file
from gitcoord.git.keyed_files import path_of, update
from gitcoord.guard.holds import checked, empty, pass_on, take
from gitcoord.guard.seen import FileState
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Callable, Iterable

_LARGEST = 1 << 20
_SHOWN = 8
UNKNOWN_FILES = "<file>..."


def read_holds(ctx: Context) -> Record:
    return _parsed(read_file(path_of(_directory(ctx), ctx.repo.worktree), _LARGEST))


def change_holds(ctx: Context, change: Callable[[Record], None]) -> None:
    """Change the record of this work tree while no other process does."""

    def changed(data: bytes) -> bytes:
        record = _parsed(data)
        change(record)
        return dumps(record).encode()

    try:
        update(_directory(ctx), ctx.repo.worktree, changed, largest=_LARGEST)
    except OSError:
        pass  # without a record nothing is held


def take_holds(ctx: Context, agent: str, written: dict[str, FileState]) -> None:
    """These files, by their paths below the top, were written by this agent."""

    def change(record: Record) -> None:
        for path, look in written.items():
            take(record, agent, path, look, ctx.host.wall())

    change_holds(ctx, change)


def own_files(ctx: Context, agent: str) -> str:
    """The files that this agent's tool wrote here and has not committed, as words of a command; '<file>...' where none are known."""
    from gitcoord.gates.judge import path_word
    from gitcoord.guard.holds import holds_of

    paths = [hold.path for hold in holds_of(read_holds(ctx)) if hold.agent == agent]
    return " ".join(map(path_word, paths[:_SHOWN])) or UNKNOWN_FILES


def end_holds(ctx: Context, agent: str, to: str = "") -> None:
    """The agent has ended. `to`: the parent of a subagent, which goes on with its work."""
    if read_file(path_of(_directory(ctx), ctx.repo.worktree), 1):
        change_holds(ctx, lambda record: pass_on(record, agent, to))
    note_presence(ctx, agent, here=False)


def _directory(ctx: Context) -> str:
    return f"{ctx.repo.scratch}/guard/holds"


def _parsed(data: bytes) -> Record:
    try:
        return checked(loads(data)) if data else empty()
    except Malformed:
        return empty()


def statuses(ctx: Context, paths: Iterable[str] = (), specs: Iterable[str] = ()) -> dict[str, str]:
    """The two letters of `git status` for each uncommitted file at or below these paths. Ignored files are none.

    `specs`: pathspecs beside them.
    """
    child = start_status(ctx.repo.env, [*(f":(top,literal){path}" for path in paths), *specs])
    out = child.rest()
    if child.wait():
        raise StoreError(f"git status failed: {child.complaint()}")
    child.close()
    entries = [entry for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry]
    return {entry[3:]: entry[:2] for entry in entries}


# --- who works in a work tree --------------------------------------------------------------------------------------------


def note_presence(ctx: Context, agent: str, *, here: bool) -> None:
    """One file for each agent in a work tree; its time says when the agent was last noted."""
    directory = _presence(ctx)
    try:
        if here:
            update(directory, agent, lambda data: f"{agent}\n{ctx.host.wall()}".encode())
        else:
            remove_file(path_of(directory, agent))
    except OSError:
        pass


def present(ctx: Context) -> dict[str, int]:
    """The agents that were noted in this work tree, and when."""
    from gitcoord.git.files import list_files

    directory = _presence(ctx)
    notes = [
        read_file(f"{directory}/{name}", 4096).decode("ascii", "replace").split("\n") for name in list_files(directory)
    ]
    return {note[0]: int(note[1]) for note in notes if len(note) == 2 and note[1].isdecimal()}


def _presence(ctx: Context) -> str:
    return path_of(f"{ctx.repo.scratch}/guard/here", ctx.repo.worktree)
