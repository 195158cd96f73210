"""What agents last saw of a file, and whether one that is about to write would undo what another did meanwhile.

One record for each file: under each agent's name what it did there last and how the file looked then. Numbers `n` give the order;
they come from the record itself, which one process at a time holds. Nothing here grants or keeps anything: where the record is
lost, the next writers are not told to read again, and the claims still bind.
"""

from gitcoord.core.codec import VERSION, Malformed, check
from gitcoord.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record

READ, INTENT, WROTE = "read", "intent", "wrote"
PENDING = 60  # seconds for which a write that was allowed is awaited
MOST = 32  # agents that are remembered for one file

_SEEN = {"n": int, "rows": dict}
_ROW = {"v": int, "n": int, "did": str, "mark": str, "hash": str, "at": int}


class Look(NamedTuple):
    """How a file looks: what the file system tells of it, and its content's hash where that is cheap. '' : it is not there."""

    mark: str = ""
    hash: str = ""


class Trouble(NamedTuple):
    """Who changed the file since it was read, or (`pending`) was just allowed to and has not done so yet."""

    agent: str
    pending: bool = False


def empty() -> "Record":
    return {"v": VERSION, "n": 0, "rows": {}}


def checked(record: object) -> "Record":
    """The record, or an empty one in place of anything that is none."""
    try:
        found = check(record, _SEEN, "seen")
        for row in found["rows"].values():
            check(row, _ROW, "seen")
    except Malformed:
        return empty()
    return found


def same(row: "Record | Look", look: Look) -> bool:
    """Does the file look as it did? Content decides where both know it: a file may be written anew with the same."""
    mark, hash = (row.mark, row.hash) if isinstance(row, Look) else (row["mark"], row["hash"])
    if hash and look.hash:
        return bool(hash == look.hash)
    return bool(mark == look.mark)


def note(record: "Record", agent: str, did: str, look: Look, now: int) -> None:
    record["n"] += 1
    record["rows"][agent] = {
        "v": VERSION, "n": record["n"], "did": did, "mark": look.mark, "hash": look.hash, "at": now,
    }  # fmt: skip
    rows = record["rows"]
    if len(rows) > MOST:
        del rows[min(rows, key=lambda name: rows[name]["n"])]


def begin_write(record: "Record", agent: str, look: Look, now: int) -> "Trouble | None":
    """Whose work this write would undo; where nobody's, it is noted that the write is under way.

    It is told once: whoever insists without reading again has been warned. As long as another's write is under way it is told
    each time, since the file is about to change.
    """
    mine = record["rows"].get(agent)
    others = {name: row for name, row in record["rows"].items() if name != agent and row["did"] != READ}
    for name, row in others.items():
        if row["did"] == INTENT and same(row, look) and 0 <= now - row["at"] < PENDING:
            if mine is None:
                note(record, agent, READ, look, now)  # it knows the file as it is before that write
            return Trouble(name, True)
    trouble = _undone(mine, others, look) if mine is not None and not same(mine, look) else None
    note(record, agent, READ if trouble is not None else INTENT, look, now)
    return trouble


def _undone(mine: "Record", others: "dict[str, Record]", look: Look) -> "Trouble | None":
    """Who wrote after this agent had looked, or had been allowed to write what this agent then read.

    Where nobody is found, it was the agent itself, its formatter or a person: that traps nobody.
    """
    before = Look(mine["mark"], mine["hash"])
    for name, row in sorted(others.items(), key=lambda item: -item[1]["n"]):
        if row["n"] > mine["n"] or (row["did"] == INTENT and same(row, before)):
            return Trouble(name)
    return None


def end_write(record: "Record", agent: str, look: Look, now: int, *, failed: bool) -> None:
    """The write is over. What another did in between is not this agent's knowledge, and stays to be told."""
    mine = record["rows"].get(agent)
    if mine is not None and any(
        row["n"] > mine["n"] and row["did"] != READ for name, row in record["rows"].items() if name != agent
    ):
        mine["did"] = WROTE
        return
    note(record, agent, READ if failed and mine is not None and same(mine, look) else WROTE, look, now)
