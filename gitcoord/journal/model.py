"""Notes: short texts about a path, shown once to each agent that works there. A note lies in the ledger's tree where claims on its path
would, so it is found by path as they are."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape, record_of, values_of
from gitcoord.base.names import claim_dir
from gitcoord.claims.model import Item, key_of
from gitcoord.ledger.state import State
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

MOST_TEXT = 2000  # bytes of a note
MOST_NOTES = 20  # of one path
MOST_SEEN = 200  # a note that so many agents have seen ends
LONGEST = 90 * 86_400  # seconds for which a note is shown

_NOTE: dict[str, Shape] = {
    "seq": int, "agent": str, "at": int, "until": int, "path": str, "text": str, "seen": [(str, int)],
}  # fmt: skip


class Note(NamedTuple):
    """One note. `seen` has each agent that was shown it, with the time."""

    seq: int
    agent: str
    at: int
    until: int
    path: str
    text: str
    seen: tuple[tuple[str, int], ...]

    @classmethod
    def from_record(cls, record: Record, file: str) -> Note:
        found = cls._make(values_of(record, _NOTE, file))
        return found._replace(seen=tuple((agent, at) for agent, at in found.seen))

    def to_record(self) -> Record:
        return {**record_of(_NOTE, self), "seen": [list(row) for row in self.seen]}

    def to_json(self) -> Record:
        seen = [{"agent": agent, "at": at} for agent, at in self.seen]
        return {**{key: getattr(self, key) for key in ("seq", "agent", "at", "until", "path", "text")}, "seen": seen}

    def is_for(self, agent: str) -> bool:
        """Has this agent still to see it? Authors know their own notes."""
        return agent != self.agent and all(agent != who for who, _ in self.seen)


def directory_of(state: State, path: str) -> str:
    return "notes/" + claim_dir("path", key_of(state, Item("path", path))).partition("/")[2]


def file_of(state: State, path: str, seq: int) -> str:
    return f"{directory_of(state, path)}/@{seq}"


def note_at(state: State, path: str, seq: int) -> Note | None:
    file = file_of(state, path, seq)
    record = state.get(file)
    return None if record is None else Note.from_record(record, file)


def notes_of(state: State, path: str) -> list[Note]:
    """The notes on exactly this path, the oldest first."""
    return _sorted(state.leaves(directory_of(state, path)))


def all_notes(state: State) -> list[Note]:
    return _sorted(state.below("notes")) if state.names("notes") else []


def unseen(state: State, agent: str, paths: Iterable[str], now: int) -> list[Note]:
    """The notes on these paths, above or below them, that this agent has still to see, the oldest first."""
    if not state.names("notes"):
        return []
    found: dict[str, Record] = {}
    for path in paths:
        directory = directory_of(state, path)
        found.update(state.below(directory))
        while "/" in directory:
            directory = directory.rpartition("/")[0]
            found.update(state.leaves(directory))
    return [note for note in _sorted(found) if note.is_for(agent) and note.until > now]


def _sorted(records: dict[str, Record]) -> list[Note]:
    return sorted(Note.from_record(record, file) for file, record in records.items())
