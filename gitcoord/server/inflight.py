"""Registry of pushes that are landing: the agents and paths that each reads or writes, while its receive-pack lives.

A check before the refs move says nothing about the moment in which they move. So every push of events or code makes an entry, with a number,
before it reads the state by which it is judged. A push of code waits for pushes of the ledger with a lower number that write
what it reads, and then reads; a push of the ledger waits for pushes of code with a lower number that read what it writes.
The earlier push has therefore landed, or failed, before the later one is judged or lands. Only lower numbers are waited for,
so no cycle of waiting pushes can form. An entry ends with the process that moves the refs: neither a killed hook nor a slow
one ends it early.

Files below `<scratch>/inflight`: `lock`, `next` (the next number), `<number>.<pid>` (the entry of a push), `refs.<pid>` (after a line
about the process, the refs that must move in one transaction, for the reference-transaction hook), `locked.<pid>` (made by
that hook: receive-pack held the locks of all these refs). By the last two, locks that a killed push left are known.
"""

from __future__ import annotations

from fcntl import LOCK_EX, flock

from gitcoord.base.codec import Malformed, dumps, loads
from gitcoord.base.errors import StoreError
from gitcoord.base.names import ancestors, fold
from gitcoord.git.files import (
    close,
    list_files,
    make_directory,
    modified,
    open_to_change,
    read_file,
    remove_file,
    write_file,
)
from gitcoord.git.host import getppid, own_namespace, runs_still, start_time
from gitcoord.startup.annotations import Callable, Iterable
from gitcoord.startup.namedtuple import NamedTuple

LEASE_MS = 10_000  # of a push whose receive-pack cannot be seen from here
_MANY = 2000
_ANCESTORS = 32
_LIMIT = 1 << 24


class Footprint(NamedTuple):
    """Agents and paths that a push reads (code) or writes (ledger). `everything`: not known yet, or too many to list."""

    everything: bool = False
    agents: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()

    def conflicts_with(self, other: Footprint) -> bool:
        """Return whether one must wait for the other.

        An empty footprint conflicts with none, not even `everything`: two pushes of code never wait for each other.
        """
        if NOTHING in (self, other):
            return False
        if self.everything or other.everything:
            return True
        return _agents_overlap(self.agents, other.agents) or _paths_overlap(self.paths, other.paths)


NOTHING, EVERYTHING = Footprint(), Footprint(True)


def footprint(agents: Iterable[str], paths: Iterable[str]) -> Footprint:
    """The footprint, with folded paths: a needless conflict costs a little time, a missed one a stale write."""
    keys = frozenset(fold(path, case=True) for path in paths)
    return EVERYTHING if len(keys) > _MANY else Footprint(False, frozenset(agents), keys)


def _agents_overlap(some: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether the sides share an agent; a subagent counts as its parent."""
    return any(a == b or a.startswith(b + ".") or b.startswith(a + ".") for a in some for b in others)


def _paths_overlap(some: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether a path of one side equals, contains or lies below a path of the other."""
    if not some.isdisjoint(others):
        return True
    return any(above in others for path in some for above in ancestors(path)) or any(
        above in some for path in others for above in ancestors(path)
    )


class Entry(NamedTuple):
    number: int
    pid: str
    start: str
    boot: str
    namespace: str
    mono: int
    reads: Footprint
    writes: Footprint


class Inflight:
    """The registry of this repository, as one push uses it."""

    def __init__(self, common: str, scratch: str, boot: str, mono: Callable[[], int]) -> None:
        self._common = common
        self._directory = f"{scratch}/inflight"
        self._boot = boot
        self._mono = mono
        self._entry: Entry | None = None
        self.enabled = True  # False: no push waits, and one may land after the claim that it relied on is gone
        self.pid = receive_pack()

    # --- entries

    def register(self, *, reads: Footprint = NOTHING, writes: Footprint = NOTHING) -> None:
        """Make the entry of this push, with the next number. Raises StoreError where nothing can be written: then nothing may pass."""
        self._locked(lambda: self._register(reads, writes))

    def _locked(self, action: Callable[[], None]) -> None:
        try:
            make_directory(self._directory)
            fd = open_to_change(f"{self._directory}/lock")
            try:
                flock(fd, LOCK_EX)
                action()
            finally:
                close(fd)
        except OSError as error:
            raise StoreError(f"cannot note that this push is landing: {error.strerror}") from None

    def _register(self, reads: Footprint, writes: Footprint) -> None:
        self._reap_dead_pushes()
        text = read_file(f"{self._directory}/next").decode("ascii", "replace")
        living = [entry.number for entry in self._entries(sweep=True)]
        number = max([int(text) if text.isdecimal() else 1, *(each + 1 for each in living)])
        write_file(f"{self._directory}/next", str(number + 1).encode())
        start = start_time(int(self.pid)) if self.pid else ""
        self._entry = Entry(
            number, self.pid if start else "", start, self._boot, own_namespace(), self._mono(), reads, writes
        )
        self._write()

    def refine(self, *, reads: Footprint) -> None:
        """Replace the registered footprint by the real, smaller one."""
        assert self._entry is not None
        self._entry = self._entry._replace(reads=reads, mono=self._mono())
        self._write()

    def _write(self) -> None:
        assert self._entry is not None
        e = self._entry
        rows = [[held.everything, sorted(held.agents), sorted(held.paths)] for held in (e.reads, e.writes)]
        data = dumps([*e[:-2], *rows]).encode()
        if len(data) > _LIMIT:
            raise StoreError("this push is too large to be noted")
        try:
            write_file(f"{self._directory}/{e.number}.{e.pid or '-'}", data)
        except OSError as error:
            raise StoreError(f"cannot note that this push is landing: {error.strerror}") from None

    def must_wait(self) -> bool:
        """Return whether a push with a lower number is still landing that this one must wait for."""
        assert self._entry is not None
        mine = self._entry
        if not self.enabled:
            return False
        for entry in self._entries():
            if entry.number < mine.number and (
                mine.reads.conflicts_with(entry.writes) or entry.reads.conflicts_with(mine.writes)
            ):
                return True
        return False

    def withdraw(self) -> None:
        """Remove this push, which was refused: the others need not wait for it."""
        if self._entry is not None:
            remove_file(f"{self._directory}/{self._entry.number}.{self._entry.pid or '-'}")
        if self.pid:
            remove_file(f"{self._directory}/refs.{self.pid}")

    def _entries(self, *, sweep: bool = False) -> list[Entry]:
        found = []
        for name in list_files(self._directory):
            if name.endswith(".tmp"):
                continue  # somebody is about to put it in place
            number, _, pid = name.partition(".")
            if not number.isdecimal():
                continue
            data = read_file(f"{self._directory}/{name}", _LIMIT)
            entry = _parse(data, int(number), pid)
            if data and self._lives(entry):
                found.append(entry)
            elif sweep:
                remove_file(f"{self._directory}/{name}")
        return found

    def _lives(self, entry: Entry) -> bool:
        if entry.boot != self._boot:
            return False
        if not entry.pid or entry.namespace != own_namespace():
            return self._mono() - entry.mono < LEASE_MS  # another container's, or no receive-pack: its state is unknown
        return runs_still(entry.pid, entry.start)

    # --- the transaction

    def note_refs(self, lines: list[str]) -> None:
        """Record the refs of this push that must move in one transaction, for the reference-transaction hook."""
        if not self.pid:
            return
        start = start_time(int(self.pid))
        head = f"# {start or '-'} {self._boot} {own_namespace() or '-'}"
        data = "".join(f"{line}\n" for line in [head, *lines]).encode("utf-8", "surrogateescape")

        def note() -> None:
            self._reap_dead_pushes()
            write_file(f"{self._directory}/refs.{self.pid}", data)

        self._locked(note)

    def _reap_dead_pushes(self) -> None:
        """Remove the notes of pushes that have ended, and the locks that a killed one left."""
        for name in list_files(self._directory):
            kind, _, pid = name.partition(".")
            if kind != "refs" or not pid.isdecimal():
                continue
            head, *lines = read_file(f"{self._directory}/{name}", _LIMIT).decode("utf-8", "surrogateescape").split("\n")
            words = head.split(" ")
            if len(words) == 4 and self._runs(pid, *words[1:]):
                continue
            self._unlock(pid, [line.split(" ", 2) for line in lines if line])
            remove_file(f"{self._directory}/locked.{pid}")
            remove_file(f"{self._directory}/{name}")

    def _runs(self, pid: str, start: str, boot: str, namespace: str) -> bool:
        if boot.partition("/")[0] != self._boot.partition("/")[0]:
            return False
        # Another container's cannot be seen from here.
        return namespace != (own_namespace() or "-") or runs_still(pid, start)

    def _unlock(self, pid: str, rows: list[list[str]]) -> None:
        """Remove locks that were made after the push was judged and before it held them: those are its own.

        One of git's own housekeeping, made later, is not; nor is one that somebody else had, or the push could not lock.
        """
        judged, held = (modified(f"{self._directory}/{name}.{pid}") for name in ("refs", "locked"))
        locks = [f"{ref}.lock" for _, _, ref in rows]
        if any(not new.strip("0") for _, new, _ in rows):
            locks.append("packed-refs.lock")
        for name in locks if judged and held else ():
            if judged <= modified(f"{self._common}/{name}") <= held:
                if name == "packed-refs.lock":  # first what was made under it: without the lock it may be another's
                    remove_file(f"{self._common}/packed-refs.new")
                remove_file(f"{self._common}/{name}")


def _parse(data: bytes, number: int, pid: str) -> Entry:
    """The content of a note. Files are replaced whole, so an unreadable one is of no push: it counts as dead."""
    try:
        *head, reads, writes = loads(data, _LIMIT)
        held = [
            Footprint(everything, frozenset(agents), frozenset(paths)) for everything, agents, paths in (reads, writes)
        ]
        return Entry(*head, *held)
    except (Malformed, ValueError, TypeError):
        return Entry(number, pid, "", "", "", 0, EVERYTHING, EVERYTHING)


def receive_pack() -> str:
    """The process that will move the refs: the nearest above this one that is git's receive-pack; '' where none is seen."""
    pid = getppid()
    for _ in range(_ANCESTORS):
        if pid <= 1:
            return ""
        words = read_file(f"/proc/{pid}/cmdline").split(b"\0")
        name = words[0].rpartition(b"/")[2]
        if name in (b"git-receive-pack", b"receive-pack") or (name == b"git" and b"receive-pack" in words[1:]):
            return str(pid)
        stat = read_file(f"/proc/{pid}/stat")
        if not stat:
            return ""
        pid = int(stat.rpartition(b") ")[2].split()[1])
    return ""
