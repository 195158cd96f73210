"""Files that a process holds as long as it lives: the kernel lets go of them whatever way it ends, in any container."""

from __future__ import annotations

import posix
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

from gitcoord.git.files import remove_file

_FLAGS = posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC


def hold(path: str) -> int:
    """Hold this file from now on; gives what to `let_go` by, or -1 where another process holds it."""
    fd = posix.open(path, _FLAGS, 0o666)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        posix.close(fd)
        return -1
    return fd


def let_go(fd: int, path: str = "") -> None:
    """With its path, the file goes too. Removed first: nobody finds it there and unheld."""
    if path:
        remove_file(path)
    posix.close(fd)


def is_held(path: str) -> bool | None:
    """Does a living process hold it? None where there is no such file. Looking keeps nobody else from looking."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return None
    try:
        flock(fd, LOCK_SH | LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        posix.close(fd)
