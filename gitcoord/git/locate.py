"""Resolves a path to the work tree or git directory that it leads to, through symbolic links.

A tool may name a file relatively, through links, or in another work tree. The gates judge the place that would change.
"""

from __future__ import annotations

from errno import EINVAL, ELOOP, ENOENT, ENOTDIR

from gitcoord.base.names import LEDGER, ROOT
from gitcoord.git.files import exists, read_file, readlink
from gitcoord.git.repo import common_of, follow
from gitcoord.startup.namedtuple import NamedTuple

_LINKS = 40
_NO_LINK = (EINVAL, ENOENT, ENOTDIR)


class Place(NamedTuple):
    path: str  # below `top`, ROOT for itself; absolute where there is no work tree
    top: str = ""  # the work tree around it; '' outside of any
    common: str = ""  # the git directory that its work trees share, or the one that it lies in; '' outside of any
    inner: bool = False  # in a git directory, not in a work tree


def write_targets(cwd: str, word: str) -> list[Place]:
    """The places that writing to `word` could change: the target of a link there, and the link itself.

    OSError or ValueError where they cannot be determined.
    """
    path = word if word.startswith("/") else f"{cwd}/{word}"
    return [locate(found) for found in dict.fromkeys((resolve(path, last=False), resolve(path, last=True)))]


def resolve(path: str, *, last: bool) -> str:
    """An absolute path without '.', '..' and links; the last part is followed only where asked for."""
    todo = path.split("/")[::-1]
    here, links = "", 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        target = _link(f"{here}/{part}") if last or any(rest not in ("", ".") for rest in todo) else ""
        if target:
            links += 1
            if links > _LINKS:
                raise OSError(ELOOP, "too many symbolic links", path)
            here = "" if target.startswith("/") else here
            todo += target.split("/")[::-1]
        else:
            here = f"{here}/{part}"
    return here or "/"


def _link(path: str) -> str:
    """The target of a link; '' where there is no link. OSError where that cannot be read."""
    try:
        return readlink(path)
    except OSError as error:
        if error.errno in _NO_LINK:
            return ""
        raise


def locate(path: str) -> Place:
    """The work tree around a path that `resolve` gave."""
    top = path
    while True:
        base = "" if top == "/" else top
        if exists(f"{base}/.git"):
            found = common_at(top)
            below = path[len(base) + 1 :] or ROOT
            return Place(below, top, found, below == ".git" or below.startswith(".git/"))
        if exists(f"{base}/HEAD") and exists(f"{base}/objects") and exists(f"{base}/refs"):
            return Place(path, "", top, True)
        if top == "/":
            return Place(path)
        top = top.rpartition("/")[0] or "/"


def common_at(top: str) -> str:
    """The git directory that the work trees of a repository share; '' where `.git` is none."""
    dot_git = f"{'' if top == '/' else top}/.git"
    target = dot_git
    if not exists(f"{dot_git}/HEAD"):
        found = follow(dot_git, top)
        if found is None:
            return ""
        target = found
    return resolve(common_of(target), last=True)


def is_set_up(common: str) -> bool:
    """Return whether gitcoord is set up in this repository. Reads few files, since most repositories do not use it.

    A repository that cannot be read counts as set up: the gate looks closer, or refuses.
    """
    if exists(f"{common}/{LEDGER}"):
        return True
    config = read_file(f"{common}/config", 1 << 20).decode("utf-8", "replace").lower()
    if not config:
        return exists(f"{common}/config")
    here = False
    for line in config.split("\n"):
        line = line.strip()
        if line.startswith("["):
            head, _, line = line.partition("]")
            here = head == "[gitcoord"
            line = line.strip()
        if here and line.partition("=")[0].strip() == "root":
            return True
    return False
