"""Hook files on disk: replaced atomically, the old one kept beside and restored."""

from __future__ import annotations

from gitcoord.git.files import (
    close,
    is_directory,
    is_regular,
    link,
    list_files,
    lstat,
    make_directory,
    open_new,
    open_to_read,
    read,
    remove_file,
    rename,
    rmdir,
    write_all,
)


def look(path: str) -> bytes | None:
    """The first bytes of a regular file; None where there is nothing; b'' for anything else, such as a link."""
    try:
        if not is_regular(lstat(path)):
            return b""
    except OSError:
        return None
    fd = open_to_read(path)
    try:
        return read(fd, 1 << 20)
    finally:
        close(fd)


def same_file(path: str, other: str) -> bool:
    """Whether these are two names of one file: an interrupted `put` leaves that."""
    return lstat(path).st_ino == lstat(other).st_ino


def put(path: str, data: bytes, keep: str = "") -> None:
    """Replace a hook atomically. With `keep`, the old file or link stays under that name."""
    make_directory(path.rpartition("/")[0])
    new = f"{path}.gitcoord-new"
    remove_file(new)
    fd = open_new(new, 0o777)
    try:
        write_all(fd, data)
    finally:
        close(fd)
    if keep and look(keep) is None:
        try:
            link(path, keep, follow_symlinks=False)
        except (OSError, NotImplementedError):
            rename(path, keep)  # no hard links on this file system: for a moment there is no hook
    rename(new, path)


def bring_back(keep: str, path: str) -> None:
    """Put the kept file back, atomically."""
    rename(keep, path)


def remove_tree(path: str) -> None:
    """Remove a directory and everything below it; links are not followed. Harmless to repeat."""
    if not is_directory(path):
        return
    for name in list_files(path):
        below = f"{path}/{name}"
        if is_directory(below):
            remove_tree(below)
        else:
            remove_file(below)
    remove_empty(path)  # unless another process wrote into it meanwhile


def remove_empty(path: str) -> None:
    """Remove a directory that has nothing in it; others stay."""
    try:
        rmdir(path)
    except OSError:
        pass
