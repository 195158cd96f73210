"""Directories that the file system keeps apart from those around them.

ext4 puts a new file near its directory, and without a journal it does not use the places of deleted files again for some
minutes: whoever makes a file there steps over all of them, which takes up to a hundred times as long. Where thousands of files
come and go beside the repository, it pays to make ours elsewhere.
"""

import posix
from fcntl import ioctl
from struct import calcsize, pack, unpack
from time import time

from gitcoord.store.files import is_directory, remove_directory, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_GET_FLAGS, _SET_FLAGS = 0x6601, 0x6602
_OLD = 14 * 24 * 3600.0  # as with git
_TOP = 0x20000  # "top of a hierarchy": ext4 spreads the directories in it over the disk


def make_apart(path: str, temporary: str, make: "Callable[[str], None]" = posix.mkdir) -> None:
    """Make this directory, apart where the file system can do that. Harmless to repeat, and where another is quicker.

    What a kill leaves of it has a name that begins with `temporary`.
    """
    if is_directory(path):
        return  # an empty one would be replaced, with whatever rights it has
    around = f"{temporary}-{posix.urandom(8).hex()}"
    # Where it lands depends on its name too: not in the same place for all repositories of a disk.
    inner = f"{around}/{posix.urandom(8).hex()}"
    posix.mkdir(around)
    try:
        _spread(around)
        make(inner)
        posix.rename(inner, path)
    except OSError:
        remove_directory(inner)
        if not is_directory(path):
            raise
    finally:
        remove_directory(around)


def drop_old(path: str, names: "Sequence[str]") -> None:
    """Remove what killed writers left in a directory that is in use: git looks only at the whole, and that stays new."""
    for name in names if is_directory(path) else ():  # a link leads to what is not ours
        left = f"{path}/{name}"
        try:
            if posix.lstat(left).st_mtime < time() - _OLD:
                remove_directory(left) if is_directory(left) else remove_file(left)
        except OSError:
            pass  # not left: it is in its place by now


def _spread(path: str) -> None:
    size = calcsize("l")
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        flags = unpack("I", ioctl(fd, 2 << 30 | size << 16 | _GET_FLAGS, bytes(size))[:4])[0]
        ioctl(fd, 1 << 30 | size << 16 | _SET_FLAGS, pack("I", flags | _TOP) + bytes(size - 4))
    except OSError:
        pass  # another file system
    finally:
        posix.close(fd)
