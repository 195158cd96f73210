"""A commit of the ledger, taken apart."""

from __future__ import annotations

from gitcoord.base.codec import UPGRADE, Malformed, NewerVersion, loads
from gitcoord.base.errors import CouldNotJudge, StoreError
from gitcoord.base.names import Oid
from gitcoord.git.store import Object, Reader
from gitcoord.ledger.event import Event, decode_event
from gitcoord.ledger.format import FORMAT_MAJOR, FORMAT_MINOR
from gitcoord.startup.annotations import Iterator, Sequence

_BATCH = 500
REPAIR = ("look at it: git coord fsck; repair it: git coord fsck --repair",)


class Commit:
    """A ledger commit, taken apart. `event` raises Malformed where the commit is none."""

    __slots__ = ("_event", "oid", "tree", "parents", "message")

    def __init__(self, found: Object | None, name: str) -> None:
        if found is None or found.kind != "commit":
            raise CouldNotJudge(f"{name} is not a commit that can be read", hints=REPAIR)
        head, _, self.message = found.data.partition(b"\n\n")
        self.oid: Oid = found.oid
        self.tree: Oid = ""
        self.parents: list[Oid] = []
        self._event: Event | None = None
        for line in head.decode("utf-8", "surrogateescape").split("\n"):
            key, _, value = line.partition(" ")
            if key == "tree":
                self.tree = value
            elif key == "parent":
                self.parents.append(value)

    @property
    def is_event(self) -> bool:
        try:
            return bool(self.event)
        except CouldNotJudge:
            return False

    @property
    def event(self) -> Event:
        if self._event is None:
            self._event = decode_event(self.message)
        return self._event


def read_commits(reader: Reader, oids: Sequence[Oid]) -> Iterator[Commit]:
    """These commits of the ledger, in this order, read in batches. CouldNotJudge where one cannot be read."""
    for index in range(0, len(oids), _BATCH):
        batch = oids[index : index + _BATCH]
        for oid, found in zip(batch, reader.read(batch)):
            yield Commit(found, oid)


def refuse_newer(reader: Reader, head: Oid) -> None:
    """NewerVersion where this event, or the format beside it, is of a newer version: that is no damage to be repaired."""
    try:
        commit, found = reader.read([head, f"{head}:format"])
    except StoreError:
        return  # damaged
    try:
        _ = Commit(commit, head).event
    except NewerVersion as error:
        raise newer_ledger(error) from None
    except CouldNotJudge:
        pass
    try:
        record = loads(found.data) if found is not None else {}
        is_newer = (record["major"], record["minor"]) > (FORMAT_MAJOR, FORMAT_MINOR)
    except (Malformed, LookupError, TypeError):
        return  # damaged
    if is_newer:
        raise NewerVersion("this ledger has a newer format", hints=(UPGRADE,))


def newer_ledger(error: NewerVersion) -> NewerVersion:
    """The error about a ledger that has such an event."""
    return NewerVersion(f"a newer version of gitcoord has written this ledger: {error.message}", hints=error.hints)
