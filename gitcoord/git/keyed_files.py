"""Small records that one process at a time reads and rewrites, each in a file of its own below a directory."""

from __future__ import annotations

from fcntl import LOCK_EX, flock

from gitcoord.git.files import (
    close,
    ftruncate,
    list_files,
    make_directory,
    modified,
    open_to_change,
    pread,
    pwrite,
    read_if_file,
    remove_file,
    stamp,
)
from gitcoord.git.loose_writer import hasher
from gitcoord.startup.annotations import Callable

_MOST = 4096  # files in one directory; the oldest go
_LARGEST = 1 << 17
_HASHED = 1 << 18  # a file of more bytes is not hashed


def update(directory: str, key: str, change: Callable[[bytes], bytes], *, largest: int = _LARGEST) -> None:
    """Rewrite the record under this key. No other process reads or writes it meanwhile; a crash may truncate it.

    Of a record of more than `largest` bytes the beginning is read. OSError where nothing may be written.
    """
    path = path_of(directory, key)
    try:
        fd = open_to_change(path)
    except FileNotFoundError:
        make_directory(directory)
        fd = open_to_change(path)
    try:
        flock(fd, LOCK_EX)
        before = pread(fd, largest, 0)
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
    for name in sorted(names, key=lambda name: modified(f"{directory}/{name}"))[: _MOST // 4]:
        remove_file(f"{directory}/{name}")


def stamp_and_hash(path: str) -> tuple[str, str]:
    """(`stamp` of a file, the hash of its content if that is small and can be read); ('', '') where there is none."""
    mark, data = stamp(path), read_if_file(path, _HASHED + 1)
    small = mark and data is not None and len(data) <= _HASHED
    return mark, hasher(40)(data).hexdigest() if small and data is not None else ""
