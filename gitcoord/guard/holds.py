"""Holds of a work tree: which agent wrote a file there that is not committed.

One record for each work tree. A hold ends when the file equals HEAD again, when it is committed, or when its writer's session has
ended. Nothing here is a claim: no event, no network, no lineage. Where the record is lost, the files are as unprotected as before.
"""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Malformed, Record, Shape, check
from gitcoord.base.names import covers, fold
from gitcoord.guard.seen import FileState
from gitcoord.ledger.sessions import OPEN, SESSION_TTL, agent_record, alive
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

MAX_HOLDS = 2000  # in one work tree; the oldest are dropped
MAX_CALLS = 32  # commands under way in one work tree that are remembered

# head: HEAD when the holds were last compared with it; calls: commands under way, with the looks of others' files before them; kept: by
# path the stamp of a file and the blob with its content then; told: by agent the lines that it is still to be told; looked: the files
# below claims that were not committed, as long as what `key` stands for is unchanged.
_RECORD: dict[str, Shape] = {
    "head": str, "holds": dict, "calls": dict, "kept": dict, "told": dict, "looked": {"key": str, "dirty": [str]},
}  # fmt: skip
_HOLD = {"v": int, "agent": str, "mark": str, "hash": str, "at": int}
_CALL: dict[str, Shape] = {
    "v": int, "agent": str, "at": int, "files": dict, "claims": [(str, str)], "specs": [str], "dirty": [str], "case": int, "restore": int,
    "key": str,
}  # fmt: skip


class Hold(NamedTuple):
    path: str  # below the top of the work tree
    agent: str
    look: FileState  # after the agent's last write
    at: int  # when that was


def empty() -> Record:
    return {
        "v": VERSION,
        "head": "",
        "holds": {},
        "calls": {},
        "kept": {},
        "told": {},
        "looked": {"key": "", "dirty": []},
    }


def checked(record: object) -> Record:
    """The record, or an empty one in place of anything that is none."""
    try:
        found = check(record, _RECORD, "holds")
        for row in found["holds"].values():
            check(row, _HOLD, "holds")
        for row in found["calls"].values():
            check(row, _CALL, "holds")
    except Malformed:
        return empty()
    return found


def take(record: Record, agent: str, path: str, look: FileState, now: int) -> None:
    """Note that the agent wrote the file."""
    rows = record["holds"]
    rows[path] = {"v": VERSION, "agent": agent, "mark": look.mark, "hash": look.hash, "at": now}
    if len(rows) > MAX_HOLDS:
        del rows[min(rows, key=lambda name: rows[name]["at"])]


def holds_of(record: Record) -> list[Hold]:
    rows = record["holds"].items()
    return [Hold(path, row["agent"], FileState(row["mark"], row["hash"]), row["at"]) for path, row in rows]


def drop(record: Record, holds: Iterable[Hold]) -> None:
    """End these holds, unless the file was written again since they were read."""
    for hold in holds:
        row = record["holds"].get(hold.path)
        if row is not None and (row["agent"], row["at"], row["mark"]) == (hold.agent, hold.at, hold.look.mark):
            del record["holds"][hold.path]


def pass_on(record: Record, agent: str, to: str) -> None:
    """The holds of one agent become another's; of nobody where `to` is ''."""
    for path, row in list(record["holds"].items()):
        if row["agent"] == agent and to:
            row["agent"] = to
        elif row["agent"] == agent:
            del record["holds"][path]


def below(holds: list[Hold], paths: Iterable[str], *, case: bool) -> list[Hold]:
    """Those at or below one of these paths."""
    keys = [fold(path, case=case) for path in paths]
    return [hold for hold in holds if any(covers(key, fold(hold.path, case=case)) for key in keys)]


def is_live(state: State, world: World, agent: str, at: int) -> bool:
    """Whether an agent that was last seen in a work tree at this time still works there.

    Some tools report no start, so an agent without a session counts as long as a session would without a heartbeat.
    """
    record = agent_record(state, agent)
    if record is None:
        return abs(world.wall - at) < SESSION_TTL
    return record.state == OPEN and alive(state, world, record)


def passed_to(state: State, hold: Hold, agent: str) -> bool:
    """Whether the writer lost its claim on the file to this agent, by a handoff or a takeover: its work went with the claim."""
    record = agent_record(state, hold.agent)
    lost = record.lost if record is not None else ()
    return any(row.space == "path" and row.by == agent and covers(row.path, hold.path) for row in lost)
