"""A commit of the ledger, taken apart."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import Oid
from gitcoord.git.store import Object
from gitcoord.ledger.event import Event, decode_event

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
    def event(self) -> Event:
        if self._event is None:
            self._event = decode_event(self.message)
        return self._event
