"""Removing the lock files of dead processes, and no others.

A lock is removed only where it is proven to have no owner:

- a note names that very file, by inode and change time, and the noted process is dead; or
- a note of a dead process covers the lock's name, the file is not older than the note, no living process of ours may have taken
  it, and every other git that was running when the lock was first seen here has ended, while the file stayed the same.

The second way needs a view of all processes. Where there is none (no /proc, hidden processes, a container), and wherever there is
doubt, nothing is removed and the error names the file. It cannot see a program that writes refs itself, through a library, and is
stopped in the middle.
"""

from __future__ import annotations

from fcntl import LOCK_EX, LOCK_NB, flock
from time import monotonic, sleep

from gitcoord.base.errors import LockHeld, StoreError
from gitcoord.base.names import RefName
from gitcoord.git.files import (
    close,
    file_identity,
    link,
    list_files,
    lstat,
    open_new,
    open_to_change,
    random_hex,
    remove_file,
    rename,
    unlink,
)
from gitcoord.git.host import getpid, stopped_process
from gitcoord.git.locks.running import running_gits
from gitcoord.startup.annotations import Iterable, Iterator
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locks.owners import Content, LockNotes

_PACKED, _NEW = "packed-refs.lock", "packed-refs.new"
_SECONDS = 5.0  # how long to wait for a needed lock that another git may hold
_SHORT = 1.0  # the same for a lock that is not needed
_AGE = 0.1  # seconds; a program that writes refs through a library holds its locks for less
_SLACK = 10**9  # nanoseconds by which a lock may seem older than its note: a process starts before it can be noted
_BY_HAND = "if no git process is running in this repository, remove that file and try again"


class FirstSeen(NamedTuple):
    """A lock when it was first seen: which file, when, and the gits that were running then."""

    file: str
    at: float
    others: dict[str, str] | None


class StaleLocks:
    """The locks of one repository, judged by its notes."""

    def __init__(self, notes: LockNotes) -> None:
        self._notes = notes
        self._first_seen: dict[str, FirstSeen] = {}

    def remove_stale_locks(self, refs: Iterable[RefName]) -> bool:
        """Remove locks of dead owners on these refs. True if one was removed; LockHeld if one may not be."""
        names = [name for name in (*(f"{ref}.lock" for ref in refs), _PACKED) if file_identity(self._path(name))]
        for name in names:
            self._clear(name, _SECONDS)
        orphan = self._drop_orphan()
        self._notes.sweep()
        return bool(names) or orphan

    def sweep(self, note: str) -> None:
        """Remove the locks of a dead owner, where it is quickly proven dead; remove its note if no lock is left."""
        content = self._notes.content(note)
        if content is None:
            return
        left = [lock for lock in self._covered(content) if file_identity(self._path(lock))]
        for lock in list(left):
            try:
                self._clear(lock, _SHORT)
                left.remove(lock)
            except (OSError, StoreError):
                pass  # the next command that needs this ref reports it
        if not left:
            remove_file(f"{self._notes.directory}/{note}")

    def _path(self, name: str) -> str:
        return f"{self._notes.common}/{name}"

    def _covered(self, content: Content) -> Iterator[str]:
        """The locks that a dead owner may have left, by name."""
        for name in content.refs if content.taken is None else ():
            if name.endswith("/*"):
                yield from self._below(name[:-2])
            else:
                yield f"{name}.lock"
        yield from content.taken or ()

    def _below(self, directory: str) -> Iterator[str]:
        for name in list_files(self._path(directory)):
            if name.endswith(".lock"):
                yield f"{directory}/{name}"
            else:
                yield from self._below(f"{directory}/{name}")

    def _clear(self, lock: str, seconds: float) -> None:
        """Remove this lock; LockHeld if it cannot be proven stale."""
        while (file := file_identity(self._path(lock))) and not self._is_stale(lock, file, seconds):
            sleep(0.02)
        if file:
            self._remove(lock, file)
        self._first_seen.pop(lock, None)

    def _is_stale(self, lock: str, file: str, seconds: float) -> bool:
        """Return whether the lock is proven stale; False if this cannot be proven yet."""
        path = self._path(lock)
        notes = self._notes.all()
        dead = [content for owner, content in notes if content is not None and not self._notes.is_alive(owner)]
        if any(content.taken is not None and content.taken.get(lock) == file for content in dead):
            return True
        for owner, content in notes:
            if (content is None or content.covers(lock)) and self._notes.is_alive(owner):
                raise _held(path, int(owner.pid))
        made = int(file.rpartition(":")[2])
        if not any(c.taken is None and c.covers(lock) and made + _SLACK >= c.written for c in dead):
            raise _blocks(path, ", and gitcoord does not know its owner")
        return self._has_no_owner(lock, file, seconds)

    def _has_no_owner(self, lock: str, file: str, seconds: float) -> bool:
        """Return whether every git has ended that ran when this file was first seen. A later one did not make it."""
        path = self._path(lock)
        now = running_gits(self._notes.common)
        seen = self._first_seen.get(lock)
        if seen is None or seen.file != file:
            seen = self._first_seen[lock] = FirstSeen(file, monotonic(), now)
        if seen.others is None or now is None:
            raise _blocks(path, ": its owner seems dead, but whether another process holds it cannot be seen here")
        waited = monotonic() - seen.at
        others = [(int(key.partition(".")[0]), words) for key, words in seen.others.items() if key in now]
        if others and waited > seconds:
            pid, words = others[0]
            raise LockHeld(
                f"{path} may be held by process {pid} ({words})",
                hints=(_go_on(pid) or "try again when that process has ended",),
                data={"file": path, "pid": pid},
            )
        return not others and waited >= _AGE

    def _remove(self, lock: str, file: str) -> None:
        """Move the lock aside first. If another git made a new one just now, that is put back.

        It cannot be put back if a third git took the lock in that instant: the second one has then lost its lock.
        """
        path = self._path(lock)
        aside = f"{self._notes.directory}/stale-{random_hex(6)}"  # below refs/ a leftover would be a ref
        fd = self._exclusive()
        try:
            if file_identity(path) != file:
                return  # another process has removed it
            if lock == _PACKED:
                # It is made under this lock, so by the same owner. It goes first: once the lock is gone, it may be another's.
                remove_file(self._path(_NEW))
            rename(path, aside)
            if lstat(aside).st_ino != int(file.partition(":")[0]):
                try:
                    link(aside, path)
                except FileExistsError:
                    pass
            unlink(aside)
        except FileNotFoundError:
            pass
        except OSError as error:
            why = f", its owner is dead, and it cannot be removed: {error.strerror}"
            raise _blocks(path, why, "remove that file and try again") from None
        finally:
            close(fd)

    def _drop_orphan(self) -> bool:
        """Remove a packed-refs.new without its lock, which would stop everybody who deletes refs.

        It is only ever made by the owner of that lock: while the lock is ours, it is nobody's.
        """
        if not file_identity(self._path(_NEW)) or file_identity(self._path(_PACKED)):
            return False
        note = self._notes.note(getpid(), ())
        try:
            close(open_new(self._path(_PACKED)))
        except OSError:
            return False  # a living git has it
        else:
            remove_file(self._path(_NEW))
            remove_file(self._path(_PACKED))
            return True
        finally:
            note.forget()

    def _exclusive(self) -> int:
        """The right to remove locks here, for as long as this descriptor is open."""
        path = f"{self._notes.directory}.lock"
        try:
            fd = open_to_change(path, follows=False)
        except OSError as error:
            raise StoreError(f"stale locks cannot be removed: {path}: {error.strerror}") from None
        end = monotonic() + _SECONDS
        while True:
            try:
                flock(fd, LOCK_EX | LOCK_NB)
                return fd
            except BlockingIOError:
                if monotonic() > end:
                    close(fd)
                    raise LockHeld(
                        "another process is removing stale locks here and makes no progress",
                        hints=("see whether a gitcoord command is stopped, and let it go on",),
                    ) from None
                sleep(0.02)


def _blocks(path: str, why: str, hint: str = _BY_HAND) -> LockHeld:
    return LockHeld(f"{path} blocks this change{why}", hints=(hint,), data={"file": path})


def _held(path: str, pid: int) -> LockHeld:
    # gitcoord's git is in a process group of its own: where gitcoord is stopped, its git waits for it.
    stopped, words = stopped_process(pid), ""
    if stopped:
        words = ", which is stopped" if stopped == pid else f" for process {stopped}, which is stopped"
    return LockHeld(
        f"{path} is held by process {pid}{words}",
        hints=(_go_on(pid) or "try again in a moment",),
        data={"file": path, "pid": stopped or pid},
    )


def _go_on(pid: int) -> str:
    """The hint where this process, or the one that started it, is stopped; '' where neither is."""
    stopped = stopped_process(pid)
    return f"let it go on: kill -CONT {stopped}" if stopped else ""
