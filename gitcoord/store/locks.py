"""Lock files that a killed git left behind.

git's lock files carry no owner, and an open-file check proves nothing: git closes them after `prepare`. So before each
transaction the git process and the locks it will take are noted. A lock is removed only where a note names it and that
very process is dead; a lock without a note is never touched, and the error names the file.

The file of a note that is no longer needed is kept for the next one, under a name that is nobody's: to make a file and delete
it for each transaction costs more than all the rest of this, where the file system does not use deleted places again at once.
What it said stays in it, and counts no more: a note is believed only under the name of the process that it speaks of.
"""

import posix

from gitcoord.errors import LockHeld
from gitcoord.names import RefName
from gitcoord.record import NamedTuple
from gitcoord.store.files import list_files, make_directory, read_up_to, remove_file, write_at_once
from gitcoord.store.process import is_running, own_namespace, process_state, runs_still, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PACKED = ("packed-refs.lock", "packed-refs.new")
_SPARE = "spare"
_PAGE = 4096  # so much is written in one piece, or not at all
_LIMIT = 1 << 24
_FLAGS = posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK  # what lies there may be anything


class Owner(NamedTuple):
    """A git process that locks refs: what its note is called."""

    pid: str
    start: str  # since when it runs; '-' and something random where that cannot be told
    boot: str
    namespace: str

    @property
    def name(self) -> str:
        """All of it: after a reboot or a wrap another has the number, and the old note may still be needed."""
        return ".".join((self.pid, self.start, self.boot.replace("/", "_"), self.namespace.strip("pid:[]")))


class LockNotes:
    """The notes below `<scratch>/locks`, for the locks below `common`. In each its own name, then a ref a line, then a NUL."""

    def __init__(self, common: str, scratch: str, boot: str) -> None:
        self._common = common
        self._directory = scratch + "/locks"
        self._boot = boot

    def note(self, pid: int, refs: "Iterable[RefName]", *, deletes: bool = True) -> str:
        """Write down that this git process is about to lock these refs; gives the note's file, to forget it by."""
        self.sweep()  # what the dead noted and did not leave behind must not vouch for a lock of somebody living
        start = start_time(pid) or f"-{posix.urandom(4).hex()}"
        name = Owner(str(pid), start, self._boot, own_namespace()).name
        # Only a transaction that deletes refs locks packed-refs too.
        data = "\n".join([name, *refs, *(_PACKED if deletes else ())]).encode("utf-8", "surrogateescape") + b"\0"
        path = f"{self._directory}/{name}"
        if len(data) <= _PAGE:  # or a kill could leave a part of it, with the old behind
            try:
                posix.rename(f"{self._directory}/{_SPARE}", path)
            except OSError:
                pass  # there is none, or another was quicker
        # Written in place: whoever dies before the note is whole has locked nothing yet.
        try:
            _write(path, data)
        except FileNotFoundError:
            make_directory(self._directory)
            _write(path, data)
        return path

    def forget(self, path: str) -> None:
        try:
            posix.rename(path, f"{self._directory}/{_SPARE}")
        except OSError:
            pass  # gone already; or it stays, and is one of the dead soon

    def recover(self, refs: "Iterable[RefName]") -> bool:
        """Remove what dead owners left in the way of these refs. True if something was removed; LockHeld if it may not be.

        The caller holds the writers' queue, so that nobody of ours makes a new lock in between.
        """
        in_the_way = [name for name in self._names(refs) if self._exists(name)]
        for name in in_the_way:
            self._remove(name)
        self.sweep()
        return bool(in_the_way)

    def sweep(self) -> None:
        """Drop notes whose processes are dead and whose locks are gone."""
        for name, owner in self._owners():
            if self._alive(owner):
                continue
            refs = self._refs(name)  # only now: the dead write no more
            if refs is not None and not any(self._exists(ref if ref in _PACKED else f"{ref}.lock") for ref in refs):
                self.forget(f"{self._directory}/{name}")

    def _names(self, refs: "Iterable[RefName]") -> list[str]:
        return [*(f"{ref}.lock" for ref in refs), *_PACKED]

    def _exists(self, name: str) -> bool:
        try:
            posix.lstat(f"{self._common}/{name}")
            return True
        except OSError:
            return False

    def _owners(self) -> "list[tuple[str, Owner]]":
        """Whose notes there are. What is called like none, but for what is not ours, is of one that is dead."""
        found = []
        for name in list_files(self._directory):
            pid, start, boot, namespace, *_ = (*name.split("."), "", "", "")
            if pid.isdecimal():
                boot, namespace = boot.replace("_", "/"), f"pid:[{namespace}]" if namespace else ""
                found.append((name, Owner(pid, start, boot, namespace)))
        return found

    def _refs(self, name: str) -> "list[str] | None":
        """What a note says its owner locks: nothing where it says it of another, or is not whole. None if it cannot be read."""
        try:
            fd = posix.open(f"{self._directory}/{name}", _FLAGS | posix.O_RDONLY)
            try:
                data = read_up_to(fd, _LIMIT)
            finally:
                posix.close(fd)
        except OSError:
            return None
        if len(data) == _LIMIT:
            return None
        text, whole, _ = data.partition(b"\0")
        first, *refs = text.decode("utf-8", "surrogateescape").split("\n")
        return refs if whole and first == name else []

    def _remove(self, name: str) -> None:
        lock = f"{self._common}/{name}"
        named = {name, name.removesuffix(".lock")}
        owners = [owner for note, owner in self._owners() if named & {*(self._refs(note) or ())}]
        living = [owner for owner in owners if self._alive(owner)]
        if living:
            pid = int(living[0].pid)
            stopped = process_state(pid) in ("T", "t")
            raise LockHeld(
                f"{lock} is held by process {pid}" + (", which is stopped" if stopped else ""),
                hints=((f"let it go on: kill -CONT {pid}",) if stopped else ("try again in a moment",)),
                data={"file": lock, "pid": pid},
            )
        if not owners:
            raise LockHeld(
                f"{lock} is in the way, and gitcoord does not know whose it is",
                hints=("if no git process is running here, remove that file and try again",),
                data={"file": lock},
            )
        self._unlink(lock)

    def _unlink(self, lock: str) -> None:
        """Move the lock aside first: if another git made a new one just now, it is not lost."""
        # Outside of refs/: a leftover there would be a branch or a claim.
        aside = f"{self._directory}/stale-{posix.urandom(6).hex()}"
        try:
            make_directory(self._directory)
            inode = posix.lstat(lock).st_ino
            posix.rename(lock, aside)
            if posix.lstat(aside).st_ino != inode:
                posix.link(aside, lock)
            posix.unlink(aside)
        except (FileNotFoundError, FileExistsError):
            pass  # somebody else was quicker
        except OSError as error:
            raise LockHeld(
                f"{lock} is in the way, whose owner is dead, and cannot be removed: {error.strerror}",
                hints=("remove that file and try again",),
                data={"file": lock},
            ) from None

    def _alive(self, owner: Owner) -> bool:
        if owner.boot.partition("/")[0] != self._boot.partition("/")[0]:
            return False
        if owner.boot != self._boot or owner.namespace != own_namespace():
            return True  # another container: its processes cannot be seen from here, or not since when they run
        if owner.start.startswith("-"):
            return is_running(int(owner.pid))  # no /proc here, or it was gone before it was noted
        return runs_still(owner.pid, owner.start)


def _write(path: str, data: bytes) -> None:
    """Over what the file held. A note of which a part is missing must not be found."""
    fd = _open(path)
    try:
        write_at_once(fd, data)
    except OSError:
        remove_file(path)
        raise
    finally:
        posix.close(fd)


def _open(path: str) -> int:
    """The file, if only we write to it; else a new one in its place."""
    flags = _FLAGS | posix.O_WRONLY | posix.O_CREAT
    try:
        fd = posix.open(path, flags, 0o666)
        found = posix.fstat(fd)
        if found.st_nlink == 1 and found.st_mode & 0o170000 == 0o100000:
            return fd
        posix.close(fd)  # a copy of this repository has it too
    except FileNotFoundError:
        raise
    except OSError:
        pass  # another user's
    remove_file(path)
    return posix.open(path, flags | posix.O_EXCL, 0o666)
