"""Records what each agent last saw of a file, and tells whether a write would undo a change by another agent.

One record for each file: under each agent's name what it did there last and how the file looked then. Numbers `n` give the order;
they come from the record itself, which one process at a time holds. Nothing here grants or keeps anything: where the record is
lost, the next writers get no warning, and the claims still bind.
"""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Malformed, Record, check
from gitcoord.startup.namedtuple import NamedTuple

PENDING_SECONDS = 60  # seconds for which a write that was allowed is awaited
QUIET_SECONDS = 3  # seconds after which a changed file is taken for written to its end, where the tool does not tell
MAX_AGENTS = 32  # agents that are remembered for one file

_SEEN = {"n": int, "rows": dict}
# n: when it last looked; wrote: when it last wrote, or was allowed to (0: never); begun: the time at which a write was allowed
# that is not known to be over (0: none).
_ROW = {"v": int, "n": int, "mark": str, "hash": str, "wrote": int, "begun": int, "at": int}


class FileState(NamedTuple):
    """The state of a file: its size and times, and the hash of its content where that is cheap. '': the file does not exist."""

    mark: str = ""
    hash: str = ""


class Conflict(NamedTuple):
    """The agent that changed the file since it was read, or (`pending`) was allowed to and has not done so yet."""

    agent: str
    pending: bool = False


def empty() -> Record:
    return {"v": VERSION, "n": 0, "rows": {}}


def checked(record: object) -> Record:
    """The record, or an empty one in place of anything that is none."""
    try:
        found = check(record, _SEEN, "seen")
        for row in found["rows"].values():
            check(row, _ROW, "seen")
    except Malformed:
        return empty()
    return found


def same(row: Record | FileState, look: FileState) -> bool:
    """Whether the file is unchanged: by its content where both have its hash, else by its size and times."""
    mark, hash = (row.mark, row.hash) if isinstance(row, FileState) else (row["mark"], row["hash"])
    if hash and look.hash:
        return bool(hash == look.hash)
    return bool(mark == look.mark)


def note_read(record: Record, agent: str, look: FileState, now: int) -> None:
    """Note that the agent looks at the file. A read of its own write shows that the write is over."""
    row = record["rows"].get(agent)
    landed = row is not None and row["begun"] and not same(row, look)
    _note(record, agent, look, now, wrote=bool(landed), begun=row["begun"] if row is not None and not landed else 0)


def _note(record: Record, agent: str, look: FileState, now: int, *, wrote: bool = False, begun: int = 0) -> None:
    rows = record["rows"]
    record["n"] += 1
    before = rows[agent]["wrote"] if agent in rows else 0
    rows[agent] = {
        "v": VERSION, "n": record["n"], "mark": look.mark, "hash": look.hash, "wrote": record["n"] if wrote else before,
        "begun": begun, "at": now,
    }  # fmt: skip
    if len(rows) > MAX_AGENTS:
        del rows[min(rows, key=lambda name: rows[name]["n"])]


def begin_write(record: Record, agent: str, look: FileState, now: int) -> Conflict | None:
    """Return the conflict with another agent's work, or record that this write has begun.

    A finished change is reported once, as a warning. A pending write is reported each time, since the file is about to change.
    """
    mine = record["rows"].get(agent)
    others = {name: row for name, row in record["rows"].items() if name != agent}
    for name, row in others.items():
        if is_under_way(row, now) and (same(row, look) or not _is_finished(row, look, now)):
            if mine is None:
                note_read(record, agent, look, now)  # it knows the file as it is before that write
            return Conflict(name, True)
    conflict = _overwritten(mine, others, now) if mine is not None and not same(mine, look) else None
    if conflict is not None:
        note_read(record, agent, look, now)
    else:
        _note(record, agent, look, now, wrote=True, begun=now)
    return conflict


def is_under_way(row: Record, now: int) -> bool:
    """The write was allowed, and its tool has not reported its end."""
    return bool(row["begun"]) and 0 <= now - row["begun"] < PENDING_SECONDS


def _is_finished(row: Record, look: FileState, now: int) -> bool:
    """A file that changed a moment ago may be half written, so a read of it does not count."""
    changed = int(look.mark.partition(":")[0]) // 1_000_000_000 if look.mark else row["begun"]
    return now - changed > QUIET_SECONDS


def _overwritten(mine: Record, others: dict[str, Record], now: int) -> Conflict | None:
    """Another agent that wrote after this one looked, or was about to.

    Without one, the change was made by the agent itself, its formatter or a person, which is no conflict.
    """
    for name, row in sorted(others.items(), key=lambda item: -item[1]["wrote"]):
        if row["wrote"] > mine["n"] or is_under_way(row, now):
            return Conflict(name)
    return None


def end_write(record: Record, agent: str, look: FileState, now: int, *, failed: bool) -> None:
    """The write is over. A change by another agent in between is still to be reported."""
    mine = record["rows"].get(agent)
    if mine is not None and any(row["wrote"] > mine["n"] for name, row in record["rows"].items() if name != agent):
        record["n"] += 1
        mine.update(begun=0, wrote=record["n"])
        return
    _note(record, agent, look, now, wrote=not (failed and mine is not None and same(mine, look)))
