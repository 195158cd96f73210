"""Names of the form `<ref>:<path>` for readers that have no such lookup of their own."""

from __future__ import annotations

from gitcoord.base.names import Oid
from gitcoord.git.store import Object
from gitcoord.git.tree import parse_tree
from gitcoord.startup.annotations import Callable


def follow(start: Oid | None, path: str, read: Callable[[Oid | None], Object | None], oid_length: int) -> Oid | None:
    """The id of what lies at a path of this commit or tree; None where there is nothing."""
    found = read(start)
    if found is not None and found.kind == "commit":
        found = read(found.data.partition(b"\n")[0].decode("ascii").removeprefix("tree "))
    for name in path.split("/") if path else ():
        if found is None or found.kind != "tree":
            return None
        entry = parse_tree(found.data, oid_length).get(name)
        found = read(entry.oid) if entry is not None else None
    return found.oid if found is not None else None
