"""Files that a process holds as long as it lives: the kernel lets go of them whatever way it ends, in any container."""

from __future__ import annotations

from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

from gitcoord.git.files import close, open_to_change, open_to_read, remove_file


def acquire(path: str) -> int:
    """Hold this file from now on; gives what to `release` by, or -1 where another process holds it."""
    fd = open_to_change(path)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        close(fd)
        return -1
    return fd


def release(fd: int, path: str = "") -> None:
    """With its path, the file goes too. Removed first: nobody finds it there and unheld."""
    if path:
        remove_file(path)
    close(fd)


def is_locked(path: str) -> bool | None:
    """Does a living process hold it? None where there is no such file. Looking keeps nobody else from looking."""
    try:
        fd = open_to_read(path)
    except OSError:
        return None
    try:
        flock(fd, LOCK_SH | LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        close(fd)
