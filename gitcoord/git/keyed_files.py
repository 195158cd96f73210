"""Small records that one process at a time reads and rewrites, each in a file of its own below a directory."""

from __future__ import annotations

from fcntl import LOCK_EX, flock

from gitcoord.git.files import (
    close,
    ftruncate,
    is_regular,
    list_files,
    make_directory,
    open_to_change,
    open_to_read,
    pread,
    pwrite,
    read,
    remove_file,
    stat,
)
from gitcoord.git.loose_writer import hasher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 4096  # files in one directory; the oldest go
_LARGEST = 1 << 17
_HASHED = 1 << 18  # a file of more bytes is not hashed


def update(directory: str, key: str, change: Callable[[bytes], bytes]) -> None:
    """Rewrite the record under this key. No other process reads or writes it meanwhile; a crash may truncate it.

    OSError where nothing may be written.
    """
    path = path_of(directory, key)
    try:
        fd = open_to_change(path)
    except FileNotFoundError:
        make_directory(directory)
        fd = open_to_change(path)
    try:
        flock(fd, LOCK_EX)
        before = pread(fd, _LARGEST, 0)
        after = change(before)
        if after != before:
            pwrite(fd, after, 0)
            ftruncate(fd, len(after))
    finally:
        close(fd)
    if not before:
        _prune(directory)


def path_of(directory: str, key: str) -> str:
    return f"{directory}/{hasher(40)(key.encode('utf-8', 'surrogateescape')).hexdigest()}"


def _prune(directory: str) -> None:
    """Remove the oldest records. A process that is just changing one of them loses only that change."""
    names = list_files(directory)
    if len(names) <= _MOST:
        return
    ages = []
    for name in names:
        try:
            ages.append((stat(f"{directory}/{name}").st_mtime_ns, name))
        except OSError:
            continue
    for _, name in sorted(ages)[: _MOST // 4]:
        remove_file(f"{directory}/{name}")


def stamp_and_hash(path: str) -> tuple[str, str]:
    """(modification time, size and inode of a file, the hash of its content if it is small); ('', '') where there is none."""
    try:
        found = stat(path)
    except OSError:
        return "", ""
    mark = f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"
    if not is_regular(found) or found.st_size > _HASHED:
        return mark, ""
    try:
        fd = open_to_read(path, waits=False)
    except OSError:
        return mark, ""
    try:
        data = read(fd, _HASHED + 1)
        return mark, hasher(40)(data).hexdigest() if len(data) <= _HASHED else ""
    except OSError:
        return mark, ""
    finally:
        close(fd)
