"""Small local files: read whole, replaced at once. Notes only; nothing that matters if deleted."""

from __future__ import annotations

import posix

_FIRST = 16384
_NO_SPACE = 28


def read_up_to(fd: int, limit: int) -> bytes:
    """The beginning of a file. Most are small, and the system maps, clears and unmaps as much memory as is asked for."""
    data = posix.read(fd, min(limit, _FIRST))
    return data if len(data) < _FIRST or limit <= _FIRST else data + posix.read(fd, limit - _FIRST)


def read_file(path: str, limit: int = 65536) -> bytes:
    """A small file's bytes; empty where it cannot be read."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
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
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (OSError, ValueError):
        return b""
    try:
        return read_up_to(fd, limit) if posix.fstat(fd).st_mode & 0o170000 == 0o100000 else b""
    except OSError:
        return b""
    finally:
        posix.close(fd)


def read_all(path: str) -> bytes | None:
    """A file of any size; None for what is none, or cannot be read. A pipe would keep its reader waiting."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = posix.fstat(fd)
        return posix.read(fd, found.st_size) if found.st_mode & 0o170000 == 0o100000 else None
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
    temporary = f"{path}.{posix.urandom(6).hex()}.tmp"  # numbers of processes are the same in several containers
    try:
        fd = posix.open(temporary, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o666)
        try:
            world = memoryview(data)
            while world:
                world = world[posix.write(fd, world) :]  # on a full disk first a part, and then the error
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
    fd = posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC, 0o666)
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


def inode(path: str) -> int:
    """What stays the same when a directory is moved or mounted elsewhere, and differs in a copy."""
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
        return posix.lstat(path).st_mode & 0o170000 == 0o040000
    except (OSError, ValueError):
        return False


def is_link(path: str) -> bool:
    try:
        return posix.lstat(path).st_mode & 0o170000 == 0o120000
    except OSError:
        return False


def rename(old: str, new: str) -> None:
    posix.rename(old, new)


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
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
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
        stats = posix.lstat(one), posix.lstat(other)
        kinds = {stat.st_mode & 0o170000 for stat in stats}
        if kinds == {0o120000}:
            return posix.readlink(one) == posix.readlink(other)
        return kinds == {0o100000} and stats[0].st_size == stats[1].st_size and _same_bytes(one, other)
    except OSError:
        return False


def _same_bytes(one: str, other: str) -> bool:
    flags = posix.O_RDONLY | posix.O_CLOEXEC
    fds = [posix.open(one, flags)]
    try:
        fds.append(posix.open(other, flags))
        while True:
            parts = [posix.read(fd, 1 << 16) for fd in fds]
            if parts[0] != parts[1] or not parts[0]:
                return parts[0] == parts[1]
    finally:
        for fd in fds:
            posix.close(fd)
