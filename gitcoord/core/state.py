"""The state: the files of the ledger's tree, as far as they were read.

`decide` and `apply` are pure. Where they look at something that was not read they raise `NotLoaded`, which names it; the
caller reads it and calls again. So the rules never touch git, and a part that was not read is never taken for empty.
The same holds for `View`: what was seen outside the ledger.
"""

from gitcoord.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.sessions import Beat, Seen

# What an event does to the tree: file -> new record or None for "gone"; a key that ends in '/' is a whole directory.
# A file whose name ends in '.md' is text: its record has the one key "text".
Changes = dict[str, "Record | None"]


class NotLoaded(Exception):
    """`what` is ("file", key), ("leaves", dir), ("below", dir), ("names", dir) or something that only a View knows."""

    def __init__(self, *what: str) -> None:
        super().__init__(*what)
        self.what = what


class State:
    """An immutable-by-convention partial map of the tree. `complete=True` knows everything (replay, simulation)."""

    __slots__ = ("complete", "files", "leaves_of", "below_of", "names_of", "seq")

    def __init__(self, files: "dict[str, Record | None] | None" = None, *, seq: int = 0, complete: bool = False) -> None:
        self.seq = seq  # of the event that made this state
        self.complete = complete
        self.files: dict[str, Record | None] = files if files is not None else {}
        self.leaves_of: set[str] = set()
        self.below_of: set[str] = set()
        self.names_of: dict[str, list[str]] = {}

    # What a reader may add; never what a rule calls.

    def load_file(self, key: str, record: "Record | None") -> None:
        self.files[key] = record

    def load_leaves(self, directory: str, records: "dict[str, Record]") -> None:
        self.files.update(records)
        self.leaves_of.add(directory)

    def load_below(self, directory: str, records: "dict[str, Record]") -> None:
        self.files.update(records)
        self.below_of.add(directory)

    def load_names(self, directory: str, names: list[str]) -> None:
        self.names_of[directory] = names

    # What rules call.

    def get(self, key: str) -> "Record | None":
        """The record in this file, None where there is none."""
        try:
            return self.files[key]
        except KeyError:
            if self.complete or self._known(key):
                return None
            raise NotLoaded("file", key) from None

    def leaves(self, directory: str) -> "dict[str, Record]":
        """The `@...` files that lie directly in this directory."""
        if not (self.complete or directory in self.leaves_of or self._known(directory + "/")):
            raise NotLoaded("leaves", directory)
        prefix = directory + "/@"
        return {k: r for k, r in self.files.items() if r is not None and k.startswith(prefix) and "/" not in k[len(prefix) :]}

    def below(self, directory: str) -> "dict[str, Record]":
        """All files below this directory."""
        if not (self.complete or self._known(directory + "/")):
            raise NotLoaded("below", directory)
        prefix = directory + "/"
        return {k: r for k, r in self.files.items() if r is not None and k.startswith(prefix)}

    def names(self, directory: str) -> list[str]:
        """The names of what lies directly in this directory."""
        if directory in self.names_of:
            return self.names_of[directory]
        if not (self.complete or self._known(directory + "/")):
            raise NotLoaded("names", directory)
        prefix = directory + "/"
        return sorted({k[len(prefix) :].split("/", 1)[0] for k, r in self.files.items() if r is not None and k.startswith(prefix)})

    def _known(self, key: str) -> bool:
        return any(key.startswith(directory + "/") for directory in self.below_of)

    def patched(self, changes: "Changes") -> "State":
        """The state after these changes."""
        new = State(dict(self.files), seq=self.seq, complete=self.complete)
        new.leaves_of, new.below_of, new.names_of = set(self.leaves_of), set(self.below_of), dict(self.names_of)
        new.patch(changes)
        return new

    def patch(self, changes: "Changes") -> None:
        """The same in place, for replay."""
        for key, record in changes.items():
            if key.endswith("/"):
                for file in [file for file in self.files if file.startswith(key)]:
                    del self.files[file]
                self.names_of.pop(key.rstrip("/").rpartition("/")[0], None)
            elif record is None and self.complete:
                self.files.pop(key, None)
            else:
                self.files[key] = record


class Policy(NamedTuple):
    """What the project's settings say of one resource; undeclared means one unit, anybody, the usual ttl."""

    capacity: int = 1
    ttl: int = 0
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    declared: bool = False


class View:
    """What was seen outside the ledger when a decision was made: clocks, heartbeats, settings, the work tree."""

    __slots__ = ("wall", "mono", "boot", "beats", "seen", "resources", "facts")

    def __init__(self, wall: int, mono: int, boot: str) -> None:
        self.wall = wall  # seconds, for people to read and for the skew rule
        self.mono = mono  # milliseconds on a clock that does not count sleep
        self.boot = boot  # names the machine, boot and time namespace that `mono` belongs to
        self.beats: dict[str, Beat | None] = {}
        self.seen: dict[str, Seen] = {}
        self.resources: dict[str, Policy] | None = None
        self.facts: dict[tuple[str, ...], object] = {}

    def beat(self, agent: str) -> "Beat | None":
        """The agent's last heartbeat; None where its ref is missing or unreadable."""
        if agent not in self.beats:
            raise NotLoaded("beat", agent)
        return self.beats[agent]

    def first_seen(self, agent: str) -> "Seen | None":
        """Since when this host has seen the agent's heartbeat unchanged."""
        if agent not in self.seen:
            raise NotLoaded("seen", agent)
        return self.seen[agent]

    def resource(self, name: str) -> Policy:
        if self.resources is None:
            raise NotLoaded("resources")
        return self.resources.get(name, Policy())

    def fact(self, *what: str) -> object:
        """Something about commits or the work tree, such as ("changed", base, commit, path)."""
        if what not in self.facts:
            raise NotLoaded(*what)
        return self.facts[what]
