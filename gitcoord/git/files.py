"""Files. Nearly all use of the system's own interface is here: the other modules take from here what they need of it.

Small files are read whole and replaced at once. Where more care is needed, a file is opened here and its descriptor given.
"""

from __future__ import annotations

import posix
from posix import chmod as chmod
from posix import close as close
from posix import fstat as fstat
from posix import fsync as fsync
from posix import ftruncate as ftruncate
from posix import getcwd as getcwd
from posix import geteuid as geteuid
from posix import link as link
from posix import listdir as listdir
from posix import lstat as lstat
from posix import mkdir as mkdir
from posix import pread as pread
from posix import pwrite as pwrite
from posix import read as read
from posix import readlink as readlink
from posix import rename as rename
from posix import rmdir as rmdir
from posix import scandir as scandir
from posix import stat as stat
from posix import umask as umask
from posix import unlink as unlink
from posix import utime as utime

_FIRST = 16384
_NO_SPACE = 28


# --- open files ----------------------------------------------------------------------------------------------------


def open_to_read(path: str, *, waits: bool = True, follows: bool = True) -> int:
    """`waits`: False for what may be a pipe, which would keep its reader waiting. `follows`: False refuses a symbolic link."""
    flags = (0 if waits else posix.O_NONBLOCK) | (0 if follows else posix.O_NOFOLLOW)
    return posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | flags)


def open_to_change(path: str, *, makes: bool = True, follows: bool = True) -> int:
    """`makes`: an empty file where there is none. `follows`: False refuses a symbolic link."""
    flags = (posix.O_CREAT if makes else 0) | (0 if follows else posix.O_NOFOLLOW)
    return posix.open(path, posix.O_RDWR | posix.O_CLOEXEC | flags, 0o666)


def open_to_append(path: str) -> int:
    """Each write goes to the end, wherever that is by then."""
    return posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC, 0o666)


def open_new(path: str, mode: int = 0o666) -> int:
    """FileExistsError where something has that name, also a link that leads nowhere."""
    return posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, mode)


def open_emptied(path: str) -> int:
    """To write it anew."""
    return posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o666)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """On a full disk first a part is written, and then the error comes."""
    view = memoryview(data)
    while view:
        view = view[posix.write(fd, view) :]


def is_regular(found: posix.stat_result) -> bool:
    return found.st_mode & 0o170000 == 0o100000


def is_folder(found: posix.stat_result) -> bool:
    return found.st_mode & 0o170000 == 0o040000


def is_symlink(found: posix.stat_result) -> bool:
    return found.st_mode & 0o170000 == 0o120000


def random_hex(size: int) -> str:
    """For names that no other writer takes: numbers of processes are the same in several containers."""
    return posix.urandom(size).hex()


# --- files by their names ------------------------------------------------------------------------------------------


def read_up_to(fd: int, limit: int) -> bytes:
    """The beginning of a file. Most are small, and the system maps, clears and unmaps as much memory as is asked for."""
    data = posix.read(fd, min(limit, _FIRST))
    return data if len(data) < _FIRST or limit <= _FIRST else data + posix.read(fd, limit - _FIRST)


def read_file(path: str, limit: int = 65536) -> bytes:
    """A small file's bytes; empty where it cannot be read."""
    try:
        fd = open_to_read(path)
    except OSError:
        return b""
    try:
        return read_up_to(fd, limit)
    except OSError:
        return b""
    finally:
        posix.close(fd)


def read_regular(path: str, limit: int) -> bytes:
    """The beginning of a file; empty for what is none, or cannot be read. A pipe would keep its reader waiting."""
    try:
        fd = open_to_read(path, waits=False)
    except (OSError, ValueError):
        return b""
    try:
        return read_up_to(fd, limit) if is_regular(posix.fstat(fd)) else b""
    except OSError:
        return b""
    finally:
        posix.close(fd)


def read_all(path: str) -> bytes | None:
    """A file of any size; None for what is none, or cannot be read. A pipe would keep its reader waiting."""
    try:
        fd = open_to_read(path, waits=False)
    except OSError:
        return None
    try:
        found = posix.fstat(fd)
        return posix.read(fd, found.st_size) if is_regular(found) else None
    except OSError:
        return None
    finally:
        posix.close(fd)


def write_at_once(fd: int, data: bytes) -> None:
    """In one write, or OSError: what was written of it then is the caller's to take back."""
    if posix.write(fd, data) != len(data):
        raise OSError(_NO_SPACE, "No space left on device")


def write_file(path: str, data: bytes) -> None:
    """Replace a small file at once, so that a reader never sees half of it. OSError, and the file stays as it was, where there is no room."""
    temporary = f"{path}.{random_hex(6)}.tmp"
    try:
        fd = open_emptied(temporary)
        try:
            write_all(fd, data)
        finally:
            posix.close(fd)
        posix.rename(temporary, path)
    except BaseException:  # Ctrl-C, too
        remove_file(temporary)
        raise


def make_directory(path: str) -> None:
    """The directory and, if need be, the one above it. Harmless to repeat."""
    try:
        posix.mkdir(path)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_directory(path.rpartition("/")[0])
        make_directory(path)


def list_files(directory: str) -> list[str]:
    try:
        return posix.listdir(directory)
    except OSError:
        return []


def append_file(path: str, data: bytes) -> None:
    """Append in one write, so that lines of several writers do not mix. OSError, and no part of it stays, where there is no room."""
    fd = open_to_append(path)
    try:
        written = posix.write(fd, data)
        if written != len(data):
            end = posix.lseek(fd, 0, 1)
            if posix.fstat(fd).st_size == end:  # nobody has appended since
                posix.ftruncate(fd, end - written)
            raise OSError(_NO_SPACE, "No space left on device")
    finally:
        posix.close(fd)


def remove_file(path: str) -> None:
    """Harmless to repeat."""
    try:
        posix.unlink(path)
    except OSError:
        pass


def is_readable(path: str) -> bool:
    return posix.access(path, posix.R_OK)


def is_executable(path: str) -> bool:
    return posix.access(path, posix.X_OK)


def inode(path: str) -> int:
    """An identity that stays the same when a directory is moved or mounted elsewhere, and differs in a copy."""
    return posix.stat(path).st_ino


def owner(path: str) -> int:
    try:
        return posix.stat(path).st_uid
    except OSError:
        return -1


def exists(path: str) -> bool:
    try:
        posix.lstat(path)
        return True
    except OSError:
        return False


def same_file(one: str, other: str) -> bool:
    try:
        return posix.stat(one)[1:3] == posix.stat(other)[1:3]
    except OSError:
        return False


def is_directory(path: str) -> bool:
    try:
        return is_folder(posix.lstat(path))
    except (OSError, ValueError):
        return False


def is_link(path: str) -> bool:
    try:
        return is_symlink(posix.lstat(path))
    except OSError:
        return False


def free_name(path: str) -> str:
    """This name, or with a number after it, that nothing has yet."""
    number, name = 1, path
    while True:
        try:
            posix.lstat(name)
        except OSError:
            return name
        number += 1
        name = f"{path}.{number}"


def flush_file(path: str) -> None:
    """Make sure that a file's content and name survive a power cut. A file that is not there needs none of that."""
    try:
        fd = open_to_read(path)
    except FileNotFoundError:
        return
    try:
        posix.fsync(fd)
    finally:
        posix.close(fd)


def fingerprint(path: str) -> tuple[int, ...]:
    """Differs whenever the file was replaced or written; () where there is none."""
    try:
        found = posix.stat(path)
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    except OSError:
        return ()


def file_identity(path: str) -> str:
    """A file's inode and change time, which no other file shares; '' where there is none."""
    try:
        found = posix.lstat(path)
        return f"{found.st_ino}:{found.st_ctime_ns}"
    except OSError:
        return ""


def create_directory(path: str) -> bool:
    """Make a directory that was not there, and those above it; False where something has that name."""
    if "/" in path.strip("/"):
        make_directory(path.rpartition("/")[0])
    try:
        posix.mkdir(path)
        return True
    except FileExistsError:
        return False


def remove_directory(path: str) -> None:
    """Remove an empty directory; anything else stays."""
    try:
        posix.rmdir(path)
    except OSError:
        pass


def same_content(one: str, other: str) -> bool:
    """Are these two files, or two links, that say the same?"""
    try:
        found = [posix.lstat(one), posix.lstat(other)]
        if all(map(is_symlink, found)):
            return posix.readlink(one) == posix.readlink(other)
        return all(map(is_regular, found)) and found[0].st_size == found[1].st_size and _same_bytes(one, other)
    except OSError:
        return False


def _same_bytes(one: str, other: str) -> bool:
    fds = [open_to_read(one)]
    try:
        fds.append(open_to_read(other))
        while True:
            parts = [posix.read(fd, 1 << 16) for fd in fds]
            if parts[0] != parts[1] or not parts[0]:
                return parts[0] == parts[1]
    finally:
        for fd in fds:
            posix.close(fd)
