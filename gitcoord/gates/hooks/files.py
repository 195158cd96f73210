"""Hook files on disk: put in place at once, what was there kept beside, and brought back as it was."""

from __future__ import annotations

import posix

from gitcoord.git.files import is_directory, list_files, make_directory, remove_file


def look(path: str) -> bytes | None:
    """A plain file's first bytes; None where nothing is; b'' for a link or whatever else is not a plain file."""
    try:
        if posix.lstat(path).st_mode & 0o170000 != 0o100000:
            return b""
    except OSError:
        return None
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(fd, 1 << 20)
    finally:
        posix.close(fd)


def is_executable(path: str) -> bool:
    return posix.access(path, posix.X_OK)


def same_file(path: str, other: str) -> bool:
    """Two names of one file: what a `put` that was interrupted leaves."""
    return posix.lstat(path).st_ino == posix.lstat(other).st_ino


def put(path: str, data: bytes, keep: str = "") -> None:
    """Replace a hook at once. With `keep`, what was there stays under that name: the same file, or the same link."""
    make_directory(path.rpartition("/")[0])
    new = f"{path}.gitcoord-new"
    remove_file(new)
    fd = posix.open(new, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o777)
    try:
        world = memoryview(data)
        while world:
            world = world[posix.write(fd, world) :]
    finally:
        posix.close(fd)
    if keep and look(keep) is None:
        try:
            posix.link(path, keep, follow_symlinks=False)
        except (OSError, NotImplementedError):
            posix.rename(path, keep)  # no second names on this file system: for a moment there is no hook
    posix.rename(new, path)


def bring_back(keep: str, path: str) -> None:
    """The kept file takes its place again, at once."""
    posix.rename(keep, path)


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
        posix.rmdir(path)
    except OSError:
        pass  # somebody wrote into it meanwhile
