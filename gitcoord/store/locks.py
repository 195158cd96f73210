"""Lock files that a killed git left behind.

git's lock files carry no owner, and an open-file check proves nothing: git closes them after `prepare`. So before each
transaction the git process and the locks it will take are noted. A lock is removed only where a note names it and that
very process is dead; a lock without a note is never touched, and the error names the file.
"""

import posix

from gitcoord.errors import LockHeld
from gitcoord.names import RefName
from gitcoord.record import NamedTuple
from gitcoord.store.files import append_file, make_directory, read_file
from gitcoord.store.process import is_running, process_state, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PACKED = ("packed-refs.lock", "packed-refs.new")


class Note(NamedTuple):
    """Who was about to lock what. On disk: these words in a line, then a ref name a line."""

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
        # Written in place: whoever dies before the note is whole has locked nothing yet.
        try:
            append_file(path, data)
        except FileNotFoundError:
            make_directory(self._directory)
            append_file(path, data)
        return path

    def forget(self, path: str) -> None:
        try:
            posix.unlink(path)
        except FileNotFoundError:
            pass

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
        notes = []
        for name in names:
            path = f"{self._directory}/{name}"
            first, *refs = read_file(path, 1 << 22).decode("utf-8", "surrogateescape").split("\n")
            words = first.split(" ")
            if len(words) == 4 and words[0].isdecimal():
                notes.append((path, Note(int(words[0]), words[1], words[2], words[3], tuple(refs))))
        return notes

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
