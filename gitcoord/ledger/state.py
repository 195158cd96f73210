"""The state: the files of the ledger's tree, each part read when a rule first asks for it.

`decide` and `apply` are pure: they see the ledger only through a `State`. It reads missing parts from its source, so a part that was
not read is never taken for empty.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.startup.annotations import Callable, Iterable

# Reads these parts into the state, all of them together. CouldNotJudge where one cannot be read.
Source = Callable[["State", list["Part"]], None]

# The changes of the tree by an event: file -> new record, or None to delete it; a key that ends in '/' is a whole directory.
# A file whose name ends in '.md' is text: its record has the one key "text".
Changes = dict[str, "Record | None"]
# ("file", key), ("leaves", directory), ("below", directory), ("names", directory) or ("named", directory + "//" + name).
Part = tuple[str, str]


class State:
    """A map of the tree. Without a source it is complete (replay, simulation).

    Rules call `get`, `leaves`, `below`, `names`, `prefetch` and `patched`; only a source calls `load_...`, only replay `patch`.
    """

    __slots__ = ("_base", "_children", "_known", "_named", "_removed", "_source", "files", "names_of", "seq")

    def __init__(
        self, files: dict[str, Record | None] | None = None, *, seq: int = 0, source: Source | None = None
    ) -> None:
        self.seq = seq  # of the event that made this state
        self._source = source
        self.files: dict[str, Record | None] = {}
        self.names_of: dict[str, list[str]] = {}
        self._base: State | None = None
        self._removed: tuple[str, ...] = ()  # directories ("dir/") of the base that this state deletes
        self._known: set[str] = set()  # "dir/" is known whole, "dir/@" has its leaves known
        self._children: dict[str, set[str]] = {}
        self._named: dict[str, set[str]] | None = None  # the files by name, once one was asked for
        for key, record in (files or {}).items():
            self.load_file(key, record)

    # --- for the source

    def load_file(self, key: str, record: Record | None) -> None:
        self.files[key] = record
        if record is not None:
            self._enter(key)
            if self._named is not None:
                self._named.setdefault(key.rpartition("/")[2], set()).add(key)

    def _enter(self, key: str) -> None:
        """Add a file to the index of its directories."""
        while key:
            key, _, name = key.rpartition("/")
            siblings = self._children.get(key)
            if siblings is None:
                self._children[key] = {name}
            elif name in siblings:
                return
            else:
                siblings.add(name)

    def load_part(self, kind: str, path: str, records: dict[str, Record]) -> None:
        """All files of one part of the kind "leaves", "below" or "named"."""
        for key, record in records.items():
            self.load_file(key, record)
        self._known.add(path + {"leaves": "/@", "below": "/", "named": ""}[kind])

    def load_names(self, directory: str, names: list[str]) -> None:
        self.names_of[directory] = names

    # --- for rules

    def get(self, key: str) -> Record | None:
        """The record in this file, None where there is none."""
        if key in self.files:
            return self.files[key]
        if self._base is not None:
            return None if key.startswith(self._removed) else self._base.get(key)
        if self._source is None or self._is_known(key):
            return None
        self._source(self, [("file", key)])
        return self.files[key]

    def prefetch(self, parts: Iterable[Part]) -> None:
        """Read those of these parts that are missing, all together: for speed only."""
        bottom = self
        while bottom._base is not None:
            bottom = bottom._base
        if bottom._source is None:
            return
        missing = [part for part in dict.fromkeys(parts) if not self._is_read(*part)]
        if missing:
            bottom._source(bottom, missing)

    def _is_read(self, kind: str, path: str) -> bool:
        if kind == "file" and path in self.files:
            return True
        inside = path if kind == "file" else path + "/"
        if self._base is not None:
            return inside.startswith(self._removed) or self._base._is_read(kind, path)
        if self._source is None or self._is_known(inside):
            return True
        if kind == "named":
            return path in self._known or self._is_known(path.partition("//")[0] + "/")
        return (kind == "leaves" and path + "/@" in self._known) or (kind == "names" and path in self.names_of)

    def leaves(self, directory: str) -> dict[str, Record]:
        """The `@...` files that lie directly in this directory."""
        if self._base is not None:
            found = {} if f"{directory}/".startswith(self._removed) else self._base.leaves(directory)
            names = self._index().get(directory, ())
            return self._over(found, [f"{directory}/{name}" for name in names if name[0] == "@"])
        self.prefetch([("leaves", directory)])
        keys = [f"{directory}/{name}" for name in self._children.get(directory, ()) if name[0] == "@"]
        return {key: record for key in keys if (record := self.files.get(key)) is not None}

    def below(self, directory: str) -> dict[str, Record]:
        """All files below this directory."""
        if self._base is not None:
            found = {} if f"{directory}/".startswith(self._removed) else self._base.below(directory)
            return self._over(found, self._inside(directory))
        self.prefetch([("below", directory)])
        return {key: record for key in self._inside(directory) if (record := self.files.get(key)) is not None}

    def named(self, directory: str, name: str) -> dict[str, Record]:
        """The files of this name below this directory, at any depth: for few among many, without reading the others."""
        if self._base is not None:
            keys = [key for key in self.files if key.endswith(f"/{name}") and key.startswith(f"{directory}/")]
            found = {} if f"{directory}/".startswith(self._removed) else self._base.named(directory, name)
            return self._over(found, keys)
        if not self._is_read("named", f"{directory}//{name}"):
            self.prefetch([("named", f"{directory}//{name}")])
        if self._named is None:
            self._named = {}
            for key in self.files:
                self._named.setdefault(key.rpartition("/")[2], set()).add(key)
        keys = [key for key in self._named.get(name, ()) if key.startswith(f"{directory}/")]
        return {key: record for key in keys if (record := self.files.get(key)) is not None}

    def _inside(self, directory: str) -> list[str]:
        """The files below this directory in this state alone, without its base, and their directories."""
        children, found = self._index(), [directory]
        for here in found:
            found += [f"{here}/{name}" for name in children.get(here, ())]
        return found[1:]

    def _index(self) -> dict[str, set[str]]:
        """The names in each directory. For a patch, made at the first call; deleted files are in it too."""
        if self._base is not None and not self._children:
            for key in self.files:
                self._enter(key)
        return self._children

    def names(self, directory: str) -> list[str]:
        """The names of what lies directly in this directory."""
        if self._base is not None:
            mine = {
                key[len(directory) + 1 :].split("/", 1)[0]
                for key, r in self.files.items()
                if r is not None and key.startswith(directory + "/")
            }
            theirs = (
                name
                for name in self._base.names(directory)
                if f"{directory}/{name}" not in self.files and not f"{directory}/{name}/".startswith(self._removed)
            )
            return sorted({*theirs, *mine})
        self.prefetch([("names", directory)])
        return self.names_of[directory] if directory in self.names_of else sorted(self._children.get(directory, ()))

    def _over(self, found: dict[str, Record], keys: list[str]) -> dict[str, Record]:
        """The records of the state below, with this state's changes of these keys on top."""
        if self._removed:
            found = {key: record for key, record in found.items() if not key.startswith(self._removed)}
        for key in keys:
            record = self.files.get(key)
            if record is not None:
                found[key] = record
            elif key in self.files:
                found.pop(key, None)
        return found

    def _is_known(self, key: str) -> bool:
        end = key.find("/")
        while end >= 0:
            if key[: end + 1] in self._known:
                return True
            end = key.find("/", end + 1)
        return False

    def patched(self, changes: Changes) -> State:
        """The state after these changes: a patch on this state, which is not changed.

        A patch is merged with the one below it unless that is more than twice as large. So a chain of a thousand events makes about
        a dozen patches, and each change is copied a dozen times at most.
        """
        new = State(seq=self.seq)
        new._removed = tuple(key for key in changes if key.endswith("/"))
        new.files = {key: record for key, record in changes.items() if not key.endswith("/")}
        under = self
        while under._base is not None and len(under.files) <= 2 * len(new.files):
            kept = {key: record for key, record in under.files.items() if not key.startswith(new._removed)}
            new.files = {**kept, **new.files}
            new._removed = (*under._removed, *new._removed)
            under = under._base
        new._base = under
        return new

    # --- for replay

    def patch(self, changes: Changes) -> None:
        """Apply changes in place; only on a complete state."""
        for key, record in changes.items():
            if key.endswith("/"):
                for file in list(self.below(key[:-1])):
                    self._remove(file)
            elif record is None:
                self._remove(key)
            else:
                self.load_file(key, record)

    def _remove(self, key: str) -> None:
        if self.files.pop(key, None) is None:
            return
        if self._named is not None:
            self._named[key.rpartition("/")[2]].discard(key)
        while key:
            key, _, name = key.rpartition("/")
            self._children[key].discard(name)
            if self._children[key]:
                return
            del self._children[key]
