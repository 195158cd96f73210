"""Keeps the records of `seen.py` in the scratch directory; deleting them loses no claim."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, dumps, loads
from gitcoord.gates.judge import is_family
from gitcoord.git.files import exists, read_file
from gitcoord.git.keyed_files import path_of, stamp_and_hash, update
from gitcoord.guard.seen import Conflict, FileState, begin_write, checked, end_write, is_under_way, same
from gitcoord.guard.seen import note_read as noted_read
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Callable


def note_read(ctx: Context, agent: str, path: str) -> None:
    """Called before the file is read, so that a change between this look and the read is reported."""
    _change_record(ctx, path, lambda record, look: noted_read(record, agent, look, ctx.host.wall()))


def begin(ctx: Context, agent: str, path: str) -> Conflict | None:
    """Record that a write is about to begin; return the conflict if it would undo another agent's work."""
    found: list[Conflict] = []

    def change(record: Record, look: FileState) -> None:
        mine = record["rows"].get(agent)
        conflict = begin_write(record, agent, look, ctx.host.wall())
        if conflict is None and mine is not None:
            by = _committed_by(ctx, agent, path, mine, look)
            conflict = Conflict(by) if by else None
        found.extend([conflict] if conflict is not None else [])

    _change_record(ctx, path, change)
    return found[0] if found else None


def end(ctx: Context, agent: str, path: str, *, failed: bool) -> FileState | None:
    """Record that a write is over. How the file looks now if the write changed it, else None."""
    found: list[FileState] = []

    def change(record: Record, look: FileState) -> None:
        mine = record["rows"].get(agent)
        told = mine is None or not mine["begun"]  # how the file looked before this write is not known
        if not failed if told else not same(mine, look):
            found.append(look)
        end_write(record, agent, look, ctx.host.wall(), failed=failed)

    _change_record(ctx, path, change)
    return found[0] if found else None


def is_being_written(ctx: Context, path: str, agent: str) -> bool:
    """Whether a write of the file by another agent was allowed and is not known to be over."""
    data = read_file(path_of(f"{ctx.repo.scratch}/guard/seen", path), 1 << 17)
    try:
        rows = checked(loads(data))["rows"] if data else {}
    except Malformed:
        return False
    now = ctx.host.wall()
    return any(is_under_way(row, now) for name, row in rows.items() if not is_family(name, agent))


def holds_exist(ctx: Context) -> bool:
    """Whether `hold_files` has a record of this work tree: here, so that nothing is loaded where it has none."""
    return exists(path_of(f"{ctx.repo.scratch}/guard/holds", ctx.repo.worktree))


def _change_record(ctx: Context, path: str, change: Callable[[Record, FileState], None]) -> None:
    """Change a file's record. The file is looked at while the record is held, so that nobody's write comes in between."""

    def changed(data: bytes) -> bytes:
        try:
            record = checked(loads(data)) if data else checked(None)
        except Malformed:
            record = checked(None)
        change(record, FileState(*stamp_and_hash(path)))
        return dumps(record).encode()

    try:
        update(f"{ctx.repo.scratch}/guard/seen", path, changed)
    except OSError:
        pass  # without a record there are no warnings


def _committed_by(ctx: Context, agent: str, path: str, mine: Record, look: FileState) -> str:
    """The agent whose commit made the present content after this agent looked; '' if it was no other agent's."""
    if same(mine, look) or not exists(path):
        return ""
    from gitcoord.git.commands.objects import last_agent

    answer = last_agent(ctx.repo.env, path, mine["at"])
    named = answer.out.decode("utf-8", "replace").split()
    return named[0] if not answer.code and named and not is_family(named[0], agent) else ""
