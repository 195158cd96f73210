"""Notes about the git processes that lock refs. They distinguish the lock files of a killed process from others.

git's lock files name no owner, and git closes them as soon as they are made, so open files prove nothing. Before a git process of
gitcoord moves refs, a note records which locks it may take. Once it has taken them, the note records their files. `stale` decides
when a lock may be removed. A note is valid only if its first line equals its own file name.
"""

from __future__ import annotations

from gitcoord.base.names import RefName
from gitcoord.git.files import (
    close,
    file_identity,
    fstat,
    list_files,
    make_directory,
    open_new,
    open_to_read,
    random_hex,
    read_up_to,
    remove_file,
    write_at_once,
)
from gitcoord.git.host import is_running, own_namespace, runs_still, start_time
from gitcoord.git.process import Child
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locks.stale import StaleLocks

PACKED = "packed-refs"
ANY = ("refs/*", "HEAD", "ORIG_HEAD")  # for a git that decides itself which refs it moves
_LIMIT = 1 << 24


class Owner(NamedTuple):
    """A git process that locks refs, as the name of its note describes it."""

    pid: str
    start: str  # its start time; '-' and a random text where that is unknown
    boot: str
    namespace: str

    @property
    def name(self) -> str:
        """The file name of its note. Another process may get the same pid after a reboot while the old note is still needed."""
        return ".".join((self.pid, self.start, self.boot.replace("/", "_"), self.namespace.strip("pid:[]")))


class Content(NamedTuple):
    """The content of a note."""

    refs: list[str]  # which its process may lock; a name that ends in '/*' stands for all below it
    taken: dict[str, str] | None  # the lock files that it had, by name; None before that is known
    written: int  # when, in nanoseconds of the file system's clock

    def covers(self, lock: str) -> bool:
        """Return whether its process may have taken this lock."""
        name = lock.removesuffix(".lock")
        return any(name == ref or (ref.endswith("/*") and name.startswith(ref[:-1])) for ref in self.refs)


class LockNote:
    """A note while its process runs."""

    def __init__(self, path: str, fd: int, *, deletes: bool) -> None:
        self._path = path
        self._fd = fd
        self._deletes = deletes

    def taken(self, common: str, refs: Iterable[RefName]) -> None:
        """Record the files of the locks, now that the process has them all.

        That of packed-refs only where the process deletes refs: otherwise it is another's.
        """
        names = [*(f"{ref}.lock" for ref in refs), *((f"{PACKED}.lock",) if self._deletes else ())]
        files = [(name, file_identity(f"{common}/{name}")) for name in names]
        lines = [f"{file} {name}\n" for name, file in files if file]
        write_at_once(self._fd, "".join(lines).encode("utf-8", "surrogateescape") + b"\0")

    def end(self, code: int) -> None:
        """Remove the note. That of a killed process stays until its locks are removed. Harmless to repeat."""
        if code >= 0:
            self.forget()
        else:
            self._close()

    def forget(self) -> None:
        """Remove the note: the process holds no lock any more."""
        remove_file(self._path)
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            close(self._fd)
            self._fd = -1


class LockNotes:
    """The notes below `<scratch>/locks`, for the locks below `common`. In each: its own name and a ref a line, then a NUL; then,
    once they are taken, the locks' files and another NUL."""

    def __init__(self, common: str, scratch: str, boot: str) -> None:
        self.common = common
        self.directory = scratch + "/locks"
        self._boot = boot
        self._stale: StaleLocks | None = None

    def note(self, pid: int, refs: Iterable[RefName], *, deletes: bool = True) -> LockNote:
        """Record that this git process is about to lock these refs, or those below a name that ends in '/*'."""
        self.sweep()
        start = start_time(pid) or f"-{random_hex(4)}"
        name = Owner(str(pid), start, self._boot, own_namespace()).name
        # Only a transaction that deletes refs locks packed-refs too.
        data = "\n".join([name, *refs, *((PACKED,) if deletes else ())]).encode("utf-8", "surrogateescape") + b"\0"
        path = f"{self.directory}/{name}"
        try:
            fd = _write(path, data)
        except FileNotFoundError:
            make_directory(self.directory)
            fd = _write(path, data)
        return LockNote(path, fd, deletes=deletes)

    def start(
        self,
        argv: list[str],
        env: dict[bytes, bytes],
        refs: Iterable[RefName] = ANY,
        *,
        shares_terminal: bool = False,
    ) -> Child:
        """Start a git that locks refs by itself, and note it. Without a note, locks that it leaves when killed stay."""
        self.sweep()
        child = Child(argv, env, shares_terminal=shares_terminal)
        try:
            child.note = self.note(child.pid, refs)
        except OSError:
            pass
        return child

    def remove_stale_locks(self, refs: Iterable[RefName]) -> bool:
        """Remove locks of dead owners on these refs. True if one was removed; LockHeld if one may not be."""
        return self._removal().remove_stale_locks(refs)

    def sweep(self) -> None:
        """Remove the locks of dead owners, where that can be done at once, and drop notes that are no longer needed."""
        for name in list_files(self.directory):
            owner = owner_of(name)
            if owner is not None and not self.is_alive(owner):
                self._removal().sweep(name)

    def _removal(self) -> StaleLocks:
        if self._stale is None:
            from gitcoord.git.locks.stale import StaleLocks  # only after a crash

            self._stale = StaleLocks(self)
        return self._stale

    def all(self) -> list[tuple[Owner, Content | None]]:
        """Every note with its owner; None for the content of one that cannot be read."""
        names = list_files(self.directory)
        return [(owner, self.content(name)) for name in names if (owner := owner_of(name)) is not None]

    def content(self, name: str) -> Content | None:
        """The content of a note: empty where it is incomplete or names another process. None if it cannot be read."""
        try:
            fd = open_to_read(f"{self.directory}/{name}", waits=False, follows=False)
            try:
                data, written = read_up_to(fd, _LIMIT), fstat(fd).st_mtime_ns
            finally:
                close(fd)
        except OSError:
            return None
        if len(data) == _LIMIT:
            return None
        head, *rest = data.decode("utf-8", "surrogateescape").split("\0")
        first, *refs = head.split("\n")
        if not rest or first != name:
            return Content([], None, written)
        if len(rest) < 2:
            return Content(refs, None, written)
        files = [line.partition(" ") for line in rest[0].split("\n")[:-1]]
        return Content(refs, {lock: file for file, _, lock in files}, written)

    def is_alive(self, owner: Owner) -> bool:
        if owner.boot.partition("/")[0] != self._boot.partition("/")[0]:
            return False
        if owner.boot != self._boot or owner.namespace != own_namespace():
            return True  # another container: its processes or their start times cannot be seen from here
        if owner.start.startswith("-"):
            return is_running(int(owner.pid))  # no /proc here, or it was gone before it was noted
        return runs_still(owner.pid, owner.start)


def owner_of(name: str) -> Owner | None:
    """The owner whose note has this file name; None for other files."""
    pid, start, boot, namespace, *_ = (*name.split("."), "", "", "")
    if not pid.isdecimal():
        return None
    return Owner(pid, start, boot.replace("_", "/"), f"pid:[{namespace}]" if namespace else "")


def _write(path: str, data: bytes) -> int:
    """Write a new file and leave it open. An incomplete note is removed."""
    try:
        fd = open_new(path)
    except FileExistsError:
        remove_file(path)  # of a process that this one has replaced within a tick
        fd = open_new(path)
    try:
        write_at_once(fd, data)
    except OSError:
        remove_file(path)
        close(fd)
        raise
    return fd
