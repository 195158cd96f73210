"""Locks on files by flock(2). The kernel releases them when their process ends, also across containers."""

from __future__ import annotations

from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

from gitcoord.git.files import close, open_to_change, open_to_read, remove_file


def acquire(path: str) -> int:
    """Lock this file. Gives the descriptor for `release`, or -1 where another process has the lock."""
    fd = open_to_change(path)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        close(fd)
        return -1
    return fd


def release(fd: int, path: str = "") -> None:
    """Release the lock. With its path, the file is removed first, so that no process finds it unlocked."""
    if path:
        remove_file(path)
    close(fd)


def is_locked(path: str) -> bool | None:
    """Return whether a living process has locked this file; None if there is no such file. Several may ask at once."""
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
