"""Index files: copies to work on, and the shared one replaced under git's own lock."""

from __future__ import annotations

from gitcoord.git.files import (
    close,
    fstat,
    open_emptied,
    open_new,
    open_to_read,
    read,
    rename,
    unlink,
    utime,
    write_all,
)
from gitcoord.startup.annotations import Callable


def copy_index(source: str, target: str) -> bool:
    """Copy an index; False where there is none.

    The copy keeps the time of the original: git tells by it which entries it must not believe without looking.
    """
    try:
        fd = open_to_read(source)
    except FileNotFoundError:
        return False
    try:
        out = open_emptied(target)
        try:
            while chunk := read(fd, 1 << 20):
                write_all(out, chunk)
            time = fstat(fd).st_mtime_ns
            utime(out, ns=(time, time))
        finally:
            close(out)
    finally:
        close(fd)
    return True


_TRIES = 100
_PAUSE = 0.05


class IndexLock:
    """git's lock on an index, taken on demand; the context frees it."""

    def __init__(self, index: str, owner: bytes = b"") -> None:
        """`owner`: the content of the lock file, by which a lock that a dead process left can be told."""
        self._index = index
        self._owner = owner
        self._lock = index + ".lock"
        self._had = False

    def __enter__(self) -> IndexLock:
        return self

    def take(self, pause: Callable[[float], None]) -> bool:
        """Wait for the lock for a bounded time, since a dead process may have left its file; gives whether it is ours."""
        for _ in range(_TRIES):
            if self._had or self._try():
                return True
            pause(_PAUSE)
        return False

    def _try(self) -> bool:
        try:
            fd = open_new(self._lock)
        except FileExistsError:
            return False
        write_all(fd, self._owner)
        close(fd)
        self._had = True
        return True

    def replace(self, new: str) -> None:
        """Make `new` the index, and let go. As git does it: the lock itself becomes the index."""
        rename(new, self._lock)
        rename(self._lock, self._index)
        self._had = False

    def __exit__(self, *_: object) -> None:
        if self._had:
            unlink(self._lock)
            self._had = False
