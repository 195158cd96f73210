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
from gitcoord.store.files import make_directory, read_up_to, remove_file, write_at_once
from gitcoord.store.process import is_running, own_namespace, process_state, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PACKED = ("packed-refs.lock", "packed-refs.new")
_SPARE = "spare"
_PAGE = 4096  # so much is written in one piece, or not at all
_LIMIT = 1 << 22
_FLAGS = posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK  # what lies there may be anything


class Note(NamedTuple):
    """Who was about to lock what. On disk: these words in a line, then a ref name a line, then a NUL; what follows is old."""

    pid: int
    start: str
    boot: str
    namespace: str
    refs: tuple[str, ...]

    @property
    def name(self) -> str:
        """Not the number alone: after a reboot or a wrap another process has it, and the old note may still be needed."""
        return f"{self.pid}.{self.start}.{self.boot[:8]}.{self.namespace}"


class LockNotes:
    """The notes below `<scratch>/locks`, for the locks below `common`."""

    def __init__(self, common: str, scratch: str, boot: str) -> None:
        self._common = common
        self._directory = scratch + "/locks"
        self._boot = boot

    def note(self, pid: int, refs: "Iterable[RefName]", *, deletes: bool = True) -> str:
        """Write down that this git process is about to lock these refs; gives the note's file, to forget it by."""
        self.sweep()  # what the dead noted and did not leave behind must not vouch for a lock of somebody living
        # Only a transaction that deletes refs locks packed-refs too.
        locked = (*refs, *(_PACKED if deletes else ()))
        note = Note(pid, start_time(pid) or "-", self._boot, own_namespace() or "-", locked)
        data = "\n".join([" ".join(map(str, note[:4])), *locked]).encode("utf-8", "surrogateescape") + b"\0"
        path = f"{self._directory}/{note.name}"
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
        if not in_the_way:
            self.sweep()
            return False
        notes = self._notes()
        for name in in_the_way:
            self._remove(name, notes)
        self.sweep()
        return True

    def _names(self, refs: "Iterable[RefName]") -> list[str]:
        return [*(f"{ref}.lock" for ref in refs), *_PACKED]

    def _exists(self, name: str) -> bool:
        try:
            posix.lstat(f"{self._common}/{name}")
            return True
        except OSError:
            return False

    def _notes(self) -> "list[tuple[str, Note]]":
        try:
            names = posix.listdir(self._directory)
        except OSError:
            return []
        found = [(f"{self._directory}/{name}", self._read(name)) for name in names if name[:1].isdecimal()]
        return [(path, note) for path, note in found if note is not None]

    def _read(self, name: str) -> "Note | None":
        """None where it cannot be read: such a note vouches for nothing, and is not taken away."""
        try:
            fd = posix.open(f"{self._directory}/{name}", _FLAGS | posix.O_RDONLY)
            try:
                data = read_up_to(fd, _LIMIT)
            finally:
                posix.close(fd)
        except OSError:
            return None
        text, end, _ = data.partition(b"\0")
        first, *refs = text.decode("utf-8", "surrogateescape").split("\n")
        words = first.split(" ")
        if end and len(words) == 4 and words[0].isdecimal():
            note = Note(int(words[0]), words[1], words[2], words[3], tuple(refs))
            if note.name == name:
                return note
        return self._named(name)

    def _named(self, name: str) -> Note:
        """Who made a note that says nothing yet, as far as its name tells."""
        pid, start, boot, namespace, *_ = (*name.split("."), "", "", "")
        known = pid.isdecimal() and boot == self._boot[:8]
        return Note(int(pid), start, self._boot, namespace, ()) if known else Note(0, "-", "", "-", ())

    def _remove(self, name: str, notes: "list[tuple[str, Note]]") -> None:
        lock = f"{self._common}/{name}"
        owners = [note for _, note in notes if name.removesuffix(".lock") in note.refs or name in note.refs]
        living = [note for note in owners if self._alive(note)]
        if living:
            stopped = process_state(living[0].pid) in ("T", "t")
            raise LockHeld(
                f"{lock} is held by process {living[0].pid}" + (", which is stopped" if stopped else ""),
                hints=((f"let it go on: kill -CONT {living[0].pid}",) if stopped else ("try again in a moment",)),
                data={"file": lock, "pid": living[0].pid},
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
        aside = f"{self._directory}/stale-{posix.getpid()}"
        try:
            make_directory(self._directory)
            inode = posix.lstat(lock).st_ino
            posix.rename(lock, aside)
            if posix.lstat(aside).st_ino != inode:
                posix.link(aside, lock)
            posix.unlink(aside)
        except (FileNotFoundError, FileExistsError):
            pass  # somebody else was quicker

    def _alive(self, note: Note) -> bool:
        if note.boot.partition("/")[0] != self._boot.partition("/")[0]:
            return False
        if note.boot != self._boot or note.namespace != (own_namespace() or "-"):
            return True  # another container: its processes cannot be seen from here, or not since when they run
        if note.start == "-":
            return is_running(note.pid)  # no /proc here, or it was gone before it was noted
        return start_time(note.pid) == note.start and process_state(note.pid) not in ("Z", "X")

    def sweep(self) -> None:
        """Drop notes whose processes are dead and whose locks are gone."""
        for path, note in self._notes():
            left = (ref if ref in _PACKED else f"{ref}.lock" for ref in note.refs)
            if not self._alive(note) and not any(self._exists(name) for name in left):
                self.forget(path)


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
