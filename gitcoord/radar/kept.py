"""Findings of the last look, kept in the scratch directory of the clone for the overview, with what they rest on.

A kept finding is shown only while trunk, both commits and both files are as they were: one about work that has landed or moved is never
shown. Looking again is bounded: by the time that one look may take, and by the time between two of them.
"""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Malformed, Record, Shape, check, dumps, loads
from gitcoord.base.errors import GitcoordError
from gitcoord.git.files import list_files, read_file, write_file
from gitcoord.git.locks import flock
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.sessions import OPEN, agent_records
from gitcoord.ledger.state import State
from gitcoord.radar.around import around
from gitcoord.radar.look import Look, look
from gitcoord.radar.model import Conflict
from gitcoord.radar.news import note_news
from gitcoord.radar.standing import standing
from gitcoord.startup.namedtuple import NamedTuple

SECONDS = 1.0  # that a look of a view may take
_EVERY, _SOONEST = 30, 5  # seconds between two looks; where something is known to have moved
_TIMES = 50  # a look that takes long is rare: it may cost one part in so many of the time
_MOST = 40
_TOLD = 200
_KEPT: dict[str, Shape] = {
    "at": int, "cost": int, "around": str, "trunk": str, "works": int, "more": int, "told": [str], "conflicts": [dict],
}  # fmt: skip


class Kept(NamedTuple):
    """The findings of the last look, `at` which time, and what it cost in milliseconds."""

    at: int = 0
    cost: int = 0
    around: str = ""
    trunk: str = ""
    works: int = 0
    more: int = 0  # conflicts that are not kept
    told: tuple[str, ...] = ()  # findings that their agents were told of
    conflicts: tuple[Conflict, ...] = ()


def look_and_keep(ctx: Context, state: State, seconds: float) -> Look:
    """Look now, and keep what is found where that may be written."""
    mark = around(ctx, str(format_record(state).sync))
    found = look(ctx, state, seconds)
    try:
        keep(ctx, state, found, mark)
    except (GitcoordError, OSError):
        pass
    return found


def read_kept(ctx: Context) -> Kept:
    try:
        record: Record = check(loads(read_file(f"{ctx.repo.scratch}/radar/kept", 1 << 20)), _KEPT, "what was kept")
        values = {key: record[key] for key in _KEPT}
        conflicts = tuple(Conflict.from_record(row) for row in record["conflicts"])
        return Kept(**{**values, "told": tuple(record["told"]), "conflicts": conflicts})
    except (Malformed, ValueError):
        return Kept()


def keep(ctx: Context, state: State, found: Look, mark: str) -> Kept:
    """Keep what was found. `mark`: what was around before the look."""
    rows, more = found.conflicts[:_MOST], found.more + max(0, len(found.conflicts) - _MOST)
    cost = round(found.spent * 1000)
    before = read_kept(ctx).told
    told = note_news(ctx, _agents(state, rows), found.trunk, rows, before)
    if not found.complete:  # what was not found may still be there
        told = tuple(dict.fromkeys((*told, *before)))[:_TOLD]
    kept = Kept(ctx.host.wall(), cost, mark, found.trunk, len(found.works), more, told, tuple(rows))
    write_kept(ctx, kept)
    return kept


def _agents(state: State, conflicts: list[Conflict]) -> list[str]:
    """The agents of these that may give a command: those with an open session."""
    named = {side.agent for row in conflicts for side in row.sides}
    return [record.agent for record in agent_records(state) if record.agent in named and record.state == OPEN]


def write_kept(ctx: Context, kept: Kept) -> None:
    row = {**kept._asdict(), "v": VERSION, "conflicts": [conflict.to_record() for conflict in kept.conflicts]}
    write_file(ctx.scratch("radar/kept"), dumps(row).encode())


# --- for the views -----------------------------------------------------------------------------------------------------


def standing_conflicts(ctx: Context, state: State, *, looks: bool = True) -> tuple[list[Conflict], int]:
    """The conflicts that are known and stand, and how many more there are. `looks`: look again if that is due."""
    trunk = str(format_record(state).sync)
    mark = around(ctx, trunk)
    if not mark:
        return [], 0
    kept = read_kept(ctx)
    rows = standing(ctx, trunk, kept.trunk, kept.conflicts)
    if looks and is_due(ctx, kept, mark, moved=len(rows) < len(kept.conflicts)):
        kept = look_again(ctx, state, mark) or kept
        rows = standing(ctx, trunk, kept.trunk, kept.conflicts)
    return rows, kept.more if rows else 0


def may_look(ctx: Context, state: State) -> bool:
    """Would a view that looks do so now?"""
    trunk = str(format_record(state).sync)
    mark, kept = around(ctx, trunk), read_kept(ctx)
    moved = len(standing(ctx, trunk, kept.trunk, kept.conflicts)) < len(kept.conflicts)
    return bool(mark) and is_due(ctx, kept, mark, moved=moved)


def is_due(ctx: Context, kept: Kept, mark: str, *, moved: bool) -> bool:
    """Is it time to look again? With one work tree, not before a branch has moved."""
    moved = moved or mark != kept.around
    if not moved and kept.works < 2 and not list_files(f"{ctx.repo.common_dir}/worktrees"):
        return False
    since = ctx.host.wall() - kept.at
    return since < 0 or since >= max(_SOONEST if moved else _EVERY, _TIMES * kept.cost // 1000)


def look_again(ctx: Context, state: State, mark: str) -> Kept | None:
    """Look, and keep what is found; None where another process is at it, or it cannot be told. One that finds less than all for want of time
    is kept too."""
    try:
        lock = flock.acquire(ctx.scratch("radar/lock"))
    except (GitcoordError, OSError):
        return None  # not ours to write
    if lock < 0:
        return None
    try:
        return keep(ctx, state, look(ctx, state, SECONDS), mark)
    except (GitcoordError, OSError, ValueError):
        return _nothing(ctx, mark)
    finally:
        flock.release(lock)


def _nothing(ctx: Context, mark: str) -> Kept | None:
    """Keep that nothing could be told, so that not each view tries at once."""
    try:
        write_kept(ctx, Kept(ctx.host.wall(), 0, mark))
    except (GitcoordError, OSError):
        pass
    return None
