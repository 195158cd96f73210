"""The redo log: the objects of the last transactions, in one file that is flushed once instead of each object by itself.

A claim writes about eight loose objects, and a disk needs for each about as long as for all of them together. So they are
appended here first, and this file alone is on the disk before a ref leads to them. What a power cut takes of the loose files
is put back from it (`restore`): by the first writer after the boot, and by whoever misses an object. A log bears the name of
the boot in which it was written, so that one of an earlier boot is known. When it is full another one begins, and it is
removed once the whole file system has been flushed, in the background.

Calling order: `append`, put the objects in their places, `settle`. Only then may a ref lead to them.
"""

import posix

from gitcoord.store.files import list_files, make_directory, write_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitcoord.names import Oid

_FULL = 1 << 18
_MOST = 1 << 20  # more than this at a time is not written twice


class Redo:
    """The logs below one directory. Any number of processes append to one, each batch in one write."""

    def __init__(self, directory: str, boot: str) -> None:
        self._directory = directory
        self._boot = boot.partition("/")[0]
        self._path = f"{directory}/{self._boot}"
        self._fd = -1

    def append(self, objects: "Iterable[tuple[Oid, bytes]]") -> bool:
        """Write down what these objects' files hold. False where there is no log for them: then flush each. OSError."""
        data = b"".join([b"object %s %d\n%s\n" % (oid.encode(), len(packed), packed) for oid, packed in objects])
        if len(data) > _MOST or self._boot == "unknown":
            return False
        if not self._is_in_place():
            self._open()
        if self._fd < 0:
            return False
        write_at_once(self._fd, data)  # never in two parts: another's could come between
        return True

    def _open(self) -> None:
        self.close()
        flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC
        try:
            try:
                self._fd = posix.open(self._path, flags, 0o666)
            except FileNotFoundError:
                make_directory(self._directory)
                self._fd = posix.open(self._path, flags, 0o666)
        except PermissionError:
            pass  # another user's

    def settle(self) -> bool:
        """Wait until it is on the disk. False where it was moved away meanwhile: who flushes its objects may be done already."""
        posix.fsync(self._fd)
        return self._is_in_place()

    def _is_in_place(self) -> bool:
        try:
            return self._fd >= 0 and posix.stat(self._path).st_ino == posix.fstat(self._fd).st_ino
        except FileNotFoundError:
            return False

    def set_aside(self) -> list[str]:
        """Where the log is full, end it. Gives the files to remove once all that was written so far is on the disk."""
        if not self._is_in_place() or posix.fstat(self._fd).st_size < _FULL:
            return []
        try:
            posix.rename(self._path, _aside(self._path))
        except FileNotFoundError:
            return []  # another was quicker
        return [
            f"{self._directory}/{name}" for name in list_files(self._directory) if name.startswith(f"{self._boot}.")
        ]

    def of_other_boots(self) -> list[str]:
        return [
            f"{self._directory}/{name}"
            for name in list_files(self._directory)
            if name != self._boot and not name.startswith(f"{self._boot}.")
        ]

    def take_others(self) -> list[str]:
        """The logs of other boots, none of them where whoever wrote it would look for it, unless we may not move it."""
        stuck = set()
        for path in self.of_other_boots():
            if _is_current(path):
                try:
                    if posix.lstat(path).st_mode & 0o170000 == 0o100000 and posix.access(path, posix.R_OK):
                        posix.rename(path, _aside(path))
                except FileNotFoundError:
                    pass  # another took it: it is there under another name, or all of it is back
                except OSError:
                    stuck.add(path)
        # One that is new meanwhile has a living writer.
        return [path for path in self.of_other_boots() if path in stuck or not _is_current(path)]

    def every(self) -> list[str]:
        return [f"{self._directory}/{name}" for name in list_files(self._directory)]

    def close(self) -> None:
        if self._fd >= 0:
            posix.close(self._fd)
            self._fd = -1


def _is_current(path: str) -> bool:
    return "." not in path.rpartition("/")[2]


def _aside(path: str) -> str:
    """A name that nobody has: numbers of processes are the same in several containers."""
    return f"{path}.{posix.urandom(8).hex()}"
