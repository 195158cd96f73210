"""The state: the files of the ledger's tree, as far as they were read.

`decide` and `apply` are pure. Where they look at something that was not read they raise `NotLoaded`, which names it; the
caller reads it and calls again. So the rules never touch git, and a part that was not read is never taken for empty.
The same holds for `View`: what was seen outside the ledger.
"""

from __future__ import annotations

from gitcoord.base.names import covers
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitcoord.base.codec import Record
    from gitcoord.ledger.sessions import Beat, Seen

# What an event does to the tree: file -> new record or None for "gone"; a key that ends in '/' is a whole directory.
# A file whose name ends in '.md' is text: its record has the one key "text".
Changes = dict[str, "Record | None"]
Part = tuple[str, str]


class NotLoaded(Exception):
    """`what` is ("file", key), ("leaves", dir), ("below", dir), ("names", dir), several of these as ("parts", kind, path,
    kind, path, ...), or a View's own."""

    def __init__(self, *what: str) -> None:
        super().__init__(*what)
        self.what = what


class State:
    """A partial map of the tree. `complete=True` knows everything (replay, simulation).

    Rules call `get`, `want`, `leaves`, `below`, `names` and `patched`; only a reader calls `load_...`, only replay calls `patch`.
    """

    __slots__ = ("_base", "_children", "_known", "_removed", "complete", "files", "names_of", "seq")

    def __init__(self, files: dict[str, Record | None] | None = None, *, seq: int = 0, complete: bool = False) -> None:
        self.seq = seq  # of the event that made this state
        self.complete = complete
        self.files: dict[str, Record | None] = {}
        self.names_of: dict[str, list[str]] = {}
        self._base: State | None = None
        self._removed: tuple[str, ...] = ()  # directories ("dir/") that this state took away from the one below
        self._known: set[str] = set()  # "dir/" is known whole, "dir/@" has its leaves known
        self._children: dict[str, set[str]] = {}
        for key, record in (files or {}).items():
            self.load_file(key, record)

    # --- for readers

    def load_file(self, key: str, record: Record | None) -> None:
        self.files[key] = record
        if record is not None:
            self._enter(key)

    def _enter(self, key: str) -> None:
        """Let its directories know it."""
        while key:
            key, _, name = key.rpartition("/")
            siblings = self._children.get(key)
            if siblings is None:
                self._children[key] = {name}
            elif name in siblings:
                return
            else:
                siblings.add(name)

    def load_leaves(self, directory: str, records: dict[str, Record]) -> None:
        for key, record in records.items():
            self.load_file(key, record)
        self._known.add(directory + "/@")

    def load_below(self, directory: str, records: dict[str, Record]) -> None:
        for key, record in records.items():
            self.load_file(key, record)
        self._known.add(directory + "/")

    def load_names(self, directory: str, names: list[str]) -> None:
        self.names_of[directory] = names

    # --- for rules

    def get(self, key: str) -> Record | None:
        """The record in this file, None where there is none."""
        if key in self.files:
            return self.files[key]
        if self._base is not None:
            return None if key.startswith(self._removed) else self._base.get(key)
        if self.complete or self._is_known(key):
            return None
        raise NotLoaded("file", key)

    def want(self, parts: Iterable[Part]) -> None:
        """All of these parts, ("file" or "leaves" or "below", path), will be asked for: they are read together.

        A rule that is about many paths says so first; else it is started again for each of them.
        """
        missing = [part for part in dict.fromkeys(parts) if not self._is_read(*part)]
        if missing:
            raise NotLoaded("parts", *(word for part in missing for word in part))

    def _is_read(self, kind: str, path: str) -> bool:
        if kind == "file" and path in self.files:
            return True
        inside = path if kind == "file" else path + "/"
        if self._base is not None:
            return inside.startswith(self._removed) or self._base._is_read(kind, path)
        return self.complete or self._is_known(inside) or (kind == "leaves" and path + "/@" in self._known)

    def leaves(self, directory: str) -> dict[str, Record]:
        """The `@...` files that lie directly in this directory."""
        if self._base is not None:
            found = {} if f"{directory}/".startswith(self._removed) else self._base.leaves(directory)
            names = self._index().get(directory, ())
            return self._over(found, [f"{directory}/{name}" for name in names if name[0] == "@"])
        if not (self.complete or directory + "/@" in self._known or self._is_known(directory + "/")):
            raise NotLoaded("leaves", directory)
        keys = [f"{directory}/{name}" for name in self._children.get(directory, ()) if name[0] == "@"]
        return {key: record for key in keys if (record := self.files.get(key)) is not None}

    def below(self, directory: str) -> dict[str, Record]:
        """All files below this directory."""
        if self._base is not None:
            found = {} if f"{directory}/".startswith(self._removed) else self._base.below(directory)
            return self._over(found, self._inside(directory))
        if not (self.complete or self._is_known(directory + "/")):
            raise NotLoaded("below", directory)
        return {key: record for key in self._inside(directory) if (record := self.files.get(key)) is not None}

    def _inside(self, directory: str) -> list[str]:
        """What lies below this directory, as far as this very state has it: files, and directories on the way."""
        children, found = self._index(), [directory]
        for here in found:
            found += [f"{here}/{name}" for name in children.get(here, ())]
        return found[1:]

    def _index(self) -> dict[str, set[str]]:
        """The names in each directory; for a patch made when it is first asked for, with what it takes away."""
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
            theirs = {name for name in self._base.names(directory) if f"{directory}/{name}/" not in self._removed}
            return sorted(theirs | mine)
        if directory in self.names_of:
            return self.names_of[directory]
        if not (self.complete or self._is_known(directory + "/")):
            raise NotLoaded("names", directory)
        return sorted(self._children.get(directory, ()))

    def _over(self, found: dict[str, Record], keys: list[str]) -> dict[str, Record]:
        """What the state below says, with those of this one's changes on top that are among these."""
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
        """The state after these changes, on top of this one, which stays as it is.

        A patch on a smaller one, or one that is not much larger, becomes one with it. So of a chain of a thousand events
        a dozen patches lie on each other, and each change was copied a dozen times at most.
        """
        new = State(seq=self.seq, complete=self.complete)
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
        """The same in place; only on a complete state."""
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
        while key:
            key, _, name = key.rpartition("/")
            self._children[key].discard(name)
            if self._children[key]:
                return
            del self._children[key]


class Policy(NamedTuple):
    """What the project's settings say of one resource; undeclared means one unit, anybody, the usual ttl."""

    capacity: int = 1
    ttl: int = 0
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    declared: bool = False


class View:
    """What was seen outside the ledger when a decision was made: clocks, heartbeats, settings, the work tree."""

    __slots__ = ("wall", "mono", "boot", "remote", "beats", "seen", "resources", "facts")

    def __init__(self, wall: int, mono: int, boot: str, remote: str = "") -> None:
        self.wall = wall  # seconds, for people to read and for the skew rule
        self.mono = mono  # milliseconds on a clock that does not count sleep
        self.boot = boot  # names the machine, boot and time namespace that `mono` belongs to
        self.remote = remote  # the remote that decides; '' where this repository does
        self.beats: dict[str, Beat | None] = {}
        self.seen: dict[str, Seen] = {}
        self.resources: dict[str, Policy] | None = None
        self.facts: dict[tuple[str, ...], object] = {}

    def beat(self, agent: str) -> Beat | None:
        """The agent's last heartbeat; None where its ref is missing or unreadable."""
        if agent not in self.beats:
            raise NotLoaded("beat", agent)
        return self.beats[agent]

    def want_beats(self, agents: list[str]) -> None:
        """All of these will be asked for: they are read together."""
        missing = [agent for agent in dict.fromkeys(agents) if agent not in self.beats]
        if missing:
            raise NotLoaded("beats", *missing)

    def first_seen(self, agent: str) -> Seen | None:
        """Since when this host has seen the agent's heartbeat unchanged."""
        if agent not in self.seen:
            raise NotLoaded("seen", agent)
        return self.seen[agent]

    def want_seen(self, agents: list[str]) -> None:
        missing = [agent for agent in dict.fromkeys(agents) if agent not in self.seen]
        if missing:
            raise NotLoaded("seen", *missing)

    def resource(self, name: str) -> Policy:
        if self.resources is None:
            raise NotLoaded("resources")
        return self.resources.get(name, Policy())

    def declared(self, name: str) -> dict[str, Policy]:
        """The declared resources that a claim on this one would cover or be covered by."""
        if self.resources is None:
            raise NotLoaded("resources")
        return {other: p for other, p in self.resources.items() if covers(other, name) or covers(name, other)}

    def fact(self, *what: str) -> object:
        """Something about commits or the work tree, such as ("changed", base, commit, path)."""
        if what not in self.facts:
            raise NotLoaded(*what)
        return self.facts[what]
