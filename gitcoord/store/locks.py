"""Lock files that a killed git left behind.

git's lock files carry no owner, and an open-file check proves nothing: git closes them after `prepare`. So before each
transaction the git process and the locks it will take are noted. A lock is removed only where a note names it and that
very process is dead; a lock without a note is never touched, and the error names the file.

The file of a note that is no longer needed is kept for the next one, under a name that is nobody's: to make a file and delete
it for each transaction costs more than all the rest of this, where the file system does not use deleted places again at once.
"""

import posix

from gitcoord.errors import LockHeld
from gitcoord.names import RefName
from gitcoord.record import NamedTuple
from gitcoord.store.files import make_directory, read_file, remove_file, write_at_once
from gitcoord.store.process import is_running, process_state, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PACKED = ("packed-refs.lock", "packed-refs.new")
_SPARE = "spare"
_PAGE = 4096  # so much is written in one piece, or not at all


class Note(NamedTuple):
    """Who was about to lock what. On disk: these words in a line, then a ref name a line, up to a NUL."""

    pid: int
    start: str
    boot: str
    namespace: str
    refs: tuple[str, ...]


def _namespace() -> str:
    try:
        return posix.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


class LockNotes:
    """The notes below `<scratch>/locks`, for the locks below `common`."""

    def __init__(self, common: str, scratch: str, boot: str) -> None:
        self._common = common
        self._directory = scratch + "/locks"
        self._boot = boot

    def note(self, pid: int, refs: "Iterable[RefName]", *, deletes: bool = True) -> str:
        """Write down that this git process is about to lock these refs; gives the note's file, to forget it by."""
        self.sweep()  # what the dead noted and did not leave behind must not vouch for a lock of somebody living
        words = [str(pid), start_time(pid) or "-", self._boot, _namespace() or "-"]
        # Only a transaction that deletes refs locks packed-refs too.
        locked = [*refs, *(_PACKED if deletes else ())]
        data = "\n".join([" ".join(words), *locked]).encode("utf-8", "surrogateescape")
        # Not the number alone: after a reboot or a wrap another process has it, and the old note may still be needed.
        path = f"{self._directory}/{pid}-{words[1]}-{self._boot[:8]}"
        if len(data) < _PAGE:
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
        except PermissionError:  # the spare one was another user's
            remove_file(path)
            _write(path, data)
        return path

    def forget(self, path: str) -> None:
        """Emptied before it becomes the spare one: nobody may find there what this one said, and take it for the next."""
        try:
            if _empty(path):
                posix.rename(path, f"{self._directory}/{_SPARE}")
            else:
                posix.unlink(path)
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
        return [(f"{self._directory}/{name}", self._read(name)) for name in names if name[:1].isdecimal()]

    def _read(self, name: str) -> Note:
        text = read_file(f"{self._directory}/{name}", 1 << 22).partition(b"\0")[0].decode("utf-8", "surrogateescape")
        first, *refs = text.split("\n")
        words = first.split(" ")
        if len(words) != 4 or not words[0].isdecimal():
            words, refs = self._named(name), []
        return Note(int(words[0]), words[1], words[2], words[3], tuple(refs))

    def _named(self, name: str) -> list[str]:
        """Who made a note that says nothing yet, as far as its name tells; that of nobody vouches for nothing."""
        pid, _, rest = name.partition("-")
        start, _, boot = rest.partition("-")
        known = pid.isdecimal() and boot == self._boot[:8]
        return [pid, start, self._boot, _namespace() or "-"] if known else ["0", "-", "", "-"]

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
        if note.boot != self._boot:
            return False
        if note.namespace != (_namespace() or "-"):
            return True  # another container: its processes cannot be seen from here
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
    """Over what the file held: its rest lies after the NUL. A note of which a part is missing must not be found."""
    fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC, 0o666)
    try:
        write_at_once(fd, data + b"\0")
    except OSError:
        remove_file(path)
        raise
    finally:
        posix.close(fd)


def _empty(path: str) -> bool:
    """Make a note say nothing; False where its file cannot be used again. It is not cut short: to fill it again would take longer."""
    try:
        fd = posix.open(path, posix.O_WRONLY | posix.O_CLOEXEC)
    except OSError:
        return False
    try:
        return posix.fstat(fd).st_size <= _PAGE and posix.write(fd, b"\0") == 1
    except OSError:
        return False
    finally:
        posix.close(fd)
