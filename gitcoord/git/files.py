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
    """Open a file to which each write appends, at its end by then."""
    return posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC, 0o666)


def open_new(path: str, mode: int = 0o666) -> int:
    """FileExistsError where something has that name, also a link that leads nowhere."""
    return posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, mode)


def open_emptied(path: str) -> int:
    """To write it anew."""
    return posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o666)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all bytes. On a full disk a part is written before OSError."""
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
    """Random digits for names that no other writer takes: process numbers repeat in containers."""
    return posix.urandom(size).hex()


# --- files by their names ------------------------------------------------------------------------------------------


def read_up_to(fd: int, limit: int) -> bytes:
    """The beginning of a file. Most are small, and the system maps, clears and unmaps as much memory as is asked for."""
    data = part = posix.read(fd, min(limit, _FIRST))
    while part and len(data) < limit:  # the kernel gives files in /proc page by page
        part = posix.read(fd, min(limit - len(data), max(_FIRST, len(data))))
        data += part
    return data


def read_file(path: str, limit: int = 65536) -> bytes:
    """The beginning of a file; empty for what is none, or cannot be read. A pipe does not keep the reader waiting."""
    return read_if_file(path, limit) or b""


def read_if_file(path: str, limit: int = 1 << 62) -> bytes | None:
    """The same; None for what is no file, or cannot be read."""
    try:
        fd = open_to_read(path, waits=False)
    except (OSError, ValueError):
        return None
    try:
        return read_up_to(fd, limit) if is_regular(posix.fstat(fd)) else None
    except OSError:
        return None
    finally:
        posix.close(fd)


def write_at_once(fd: int, data: bytes) -> None:
    """Write in one call, or raise OSError; the caller then removes the part that was written."""
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


def _found(path: str) -> posix.stat_result | None:
    try:
        return posix.stat(path)
    except (OSError, ValueError):
        return None


def _found_itself(path: str) -> posix.stat_result | None:
    """The same of a link, instead of its target."""
    try:
        return posix.lstat(path)
    except (OSError, ValueError):
        return None


def owner(path: str) -> int:
    found = _found(path)
    return found.st_uid if found is not None else -1


def is_own(path: str) -> bool:
    """Return whether the file belongs to the user who runs this process."""
    return owner(path) == posix.getuid()


def exists(path: str) -> bool:
    return _found_itself(path) is not None


def same_file(one: str, other: str) -> bool:
    found, second = _found(one), _found(other)
    return found is not None and second is not None and found[1:3] == second[1:3]


def is_directory(path: str) -> bool:
    found = _found_itself(path)
    return found is not None and is_folder(found)


def is_link(path: str) -> bool:
    found = _found_itself(path)
    return found is not None and is_symlink(found)


def free_name(path: str) -> str:
    """This name, or with a number after it, that does not exist yet."""
    number, name = 1, path
    while exists(name):
        number += 1
        name = f"{path}.{number}"
    return name


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
    found = _found(path)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if found is not None else ()


def stamp(path: str) -> str:
    """Modification time, size and inode of a file; '' where there is none."""
    found = _found(path)
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}" if found is not None else ""


def file_identity(path: str) -> str:
    """A file's inode and change time, which no other file shares; '' where there is none."""
    found = _found_itself(path)
    return f"{found.st_ino}:{found.st_ctime_ns}" if found is not None else ""


def modified(path: str) -> int:
    """The time when a file was last written, in nanoseconds; 0 if there is none."""
    found = _found_itself(path)
    return found.st_mtime_ns if found is not None else 0


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


def remove_tree(path: str) -> None:
    """Remove a directory with all that is in it, also where its directories may not be written. Links are not followed. Best effort."""
    try:
        posix.chmod(path, 0o700)
        for name in posix.listdir(path):
            inner = f"{path}/{name}"
            if is_directory(inner) and not is_link(inner):
                remove_tree(inner)
            else:
                posix.unlink(inner)
        posix.rmdir(path)
    except OSError:
        pass


def same_content(one: str, other: str) -> bool:
    """Return whether these two files, or two links, have the same content."""
    if is_link(one) and is_link(other):
        return posix.readlink(one) == posix.readlink(other)
    if is_link(one) or is_link(other):
        return False
    data = read_if_file(one)
    return data is not None and data == read_if_file(other)
