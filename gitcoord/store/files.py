"""Small local files: read whole, replaced at once. Notes only; nothing that matters if deleted."""

import posix


def read_file(path: str, limit: int = 65536) -> bytes:
    """A small file's bytes; empty where it cannot be read."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return posix.read(fd, limit)
    except OSError:
        return b""
    finally:
        posix.close(fd)


def write_file(path: str, data: bytes) -> None:
    """Replace a small file at once, so that a reader never sees half of it."""
    temporary = f"{path}.{posix.getpid()}.tmp"
    fd = posix.open(temporary, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o666)
    try:
        posix.write(fd, data)
    finally:
        posix.close(fd)
    posix.rename(temporary, path)


def make_directory(path: str) -> None:
    """The directory and, if need be, the one above it. Harmless to repeat."""
    try:
        posix.mkdir(path)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_directory(path.rpartition("/")[0])
        make_directory(path)


def append_file(path: str, data: bytes) -> None:
    fd = posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC, 0o666)
    try:
        posix.write(fd, data)
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


def is_directory(path: str) -> bool:
    try:
        return posix.lstat(path).st_mode & 0o170000 == 0o040000
    except (OSError, ValueError):
        return False


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
