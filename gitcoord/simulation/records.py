"""The claims or the requests of a ledger, found by what they may overlap with and by agent."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitcoord.base.codec import Record

    Top = tuple[str, str]  # a space and the first component of a name


def top_of(space: str, name: str) -> Top:
    return space, name.split("/")[0]


class Records:
    """Records by file, by the first component of their paths, and by agent."""

    def __init__(self, files: dict[str, Record]) -> None:
        self.files: dict[str, Record] = {}
        self._by_top: dict[Top, dict[str, Record]] = {}
        self._by_agent: dict[str, dict[str, Record]] = {}
        self.put_all(files)

    def put_all(self, files: Mapping[str, Record | None]) -> None:
        for file, record in files.items():
            self.put(file, record)

    def put(self, file: str, record: Record | None) -> None:
        """Set this file; None removes it."""
        top, agent = place_of(file)
        for part in (self.files, self._by_top.setdefault(top, {}), self._by_agent.setdefault(agent, {})):
            part.pop(file, None)
            if record is not None:
                part[file] = record

    def near(self, top: Top) -> list[Record]:
        """All that may overlap with something of this first component."""
        space, name = top
        if name == ".":
            return [record for file, record in self.files.items() if file.split("/")[1] == space]
        return [record for each in (name, ".") for record in self._by_top.get((space, each), {}).values()]

    def on(self, space: str, name: str) -> dict[str, Record]:
        """The claims on just this item, by agent."""
        return {record["agent"]: record for record in self.near(top_of(space, name)) if record["path"] == name}

    def of(self, agent: str) -> dict[str, Record]:
        """All of one agent, by file."""
        return self._by_agent.get(agent, {})


def place_of(file: str) -> tuple[Top, str]:
    """The place of a file of claims or requests: its space with the first component of its path, and its agent."""
    _, space, top, *_ = file.split("/")
    return (space, "." if top[0] == "@" else top), file.rpartition("/@")[2]
