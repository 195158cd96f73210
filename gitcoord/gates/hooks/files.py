"""Hook files on disk: put in place at once, what was there kept beside, and brought back as it was."""

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
    """A plain file's first bytes; None where nothing is; b'' for a link or whatever else is not a plain file."""
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
    """Two names of one file: what a `put` that was interrupted leaves."""
    return lstat(path).st_ino == lstat(other).st_ino


def put(path: str, data: bytes, keep: str = "") -> None:
    """Replace a hook at once. With `keep`, what was there stays under that name: the same file, or the same link."""
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
            rename(path, keep)  # no second names on this file system: for a moment there is no hook
    rename(new, path)


def bring_back(keep: str, path: str) -> None:
    """The kept file takes its place again, at once."""
    rename(keep, path)


def remove_tree(path: str) -> None:
    """A directory with all below it; links are removed, not followed. Harmless to repeat."""
    if not is_directory(path):
        return
    for name in list_files(path):
        below = f"{path}/{name}"
        if is_directory(below):
            remove_tree(below)
        else:
            remove_file(below)
    try:
        rmdir(path)
    except OSError:
        pass  # somebody wrote into it meanwhile
