"""Uncommitted work as commits that nobody else sees: made in a directory of their own, which goes with them.

Nothing of the repository is written: the index is a private one, and new objects go where only this process looks. A process that was
killed leaves its directory to the next one.
"""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import ancestors, check_path
from gitcoord.git.commands.objects import commit_stand_in
from gitcoord.git.commands.under_way import add_to_index, check_attributes, own_objects
from gitcoord.git.commands.worktrees import read_tree, update_index, with_index, write_tree
from gitcoord.git.files import (
    chmod,
    close,
    exists,
    is_directory,
    is_folder,
    is_link,
    is_readable,
    is_symlink,
    list_files,
    lstat,
    make_directory,
    open_emptied,
    remove_file,
    remove_tree,
    write_all,
)
from gitcoord.git.locks import flock
from gitcoord.git.process import Env
from gitcoord.ledger.context import Context
from gitcoord.policy.parse import attributes_of
from gitcoord.policy.reader import Source
from gitcoord.radar.model import LeftOut, Work
from gitcoord.startup.annotations import Iterable

_PLACE = "radar/work"
_LARGEST = 4 << 20  # bytes of one file
_MOST_BYTES = 64 << 20  # of the uncommitted files of one work tree
_MOST_FILES = 2000
_TOO_LARGE = f"more than {_LARGEST >> 20} MiB"
_TOO_MANY = "too many"
_PRIVATE = "gitcoord-read keeps it from agents"
_FILTERED = "git would run a filter on it"
_READ = "gitcoord-read"


class Place:
    """The directory of one look; the context removes it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._path = ctx.scratch(f"{_PLACE}/{ctx.host.random()[:12]}")
        self._lock = -1

    def __enter__(self) -> Place:
        _remove_abandoned(self._path.rpartition("/")[0])
        self._lock = flock.acquire(f"{self._path}.lock")
        make_directory(f"{self._path}/objects/info")
        make_directory(self.tree)
        chmod(self._path, 0o700)
        # In a file, since the variable of git's cannot name every directory.
        objects = self._ctx.repo.objects.encode("utf-8", "surrogateescape")
        _write(f"{self._path}/objects/info/alternates", objects + b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        remove_tree(self._path)
        flock.release(self._lock, f"{self._path}.lock")

    @property
    def tree(self) -> str:
        """The work tree of merges: it has only the files of attributes."""
        return f"{self._path}/tree"

    @property
    def env(self) -> Env:
        return own_objects(self._ctx.repo.env, self._ctx.repo.common_dir, self.tree, self._path)

    def write_attributes(self, source: Source) -> None:
        """Let merges go by the attributes of trunk: union, binary or a driver of the user's."""
        files = source.attribute_files
        for (path, _), blob in zip(files, self._ctx.store.read([oid for _, oid in files])):
            try:
                name = f"{self.tree}/{check_path(path)}"
            except UsageError:
                continue  # no path that git would check out
            make_directory(name.rpartition("/")[0])
            _write(name, blob.data if blob is not None else b"")

    def commit_of(self, work: Work) -> str:
        """The commit of this work, with its uncommitted files."""
        paths = work.uncommitted
        if not paths:
            return work.head
        index = f"{self._path}/index"
        env = with_index(own_objects(self._ctx.repo.env, work.git_dir, work.tree, self._path), index)
        failure = f"what is not committed in {work.tree} cannot be looked at"
        try:
            read_tree(env, work.head).require(failure)
            gone = _gone(work.tree, paths)
            zeros = "0" * len(work.head)
            rows = "".join(f"0 {zeros}\t{path}\0" for path in paths if path in gone)
            if gone:
                update_index(env, rows.encode("utf-8", "surrogateescape"), whole=True).require(failure)
            add_to_index(env, work.tree, [path for path in paths if path not in gone]).require(failure)
            tree = write_tree(env, whole=True).require(failure).text
        finally:
            remove_file(index)
        return commit_stand_in(env, tree, work.head).require(failure).text


def _gone(tree: str, paths: Iterable[str]) -> set[str]:
    """Those of these files that are not there any more. What lies beyond a link is not in the work tree."""
    links: dict[str, bool] = {}
    for path in paths:
        for above in ancestors(path)[1:]:
            if above not in links:
                links[above] = is_link(f"{tree}/{above}")
    return {
        path
        for path in paths
        if any(links[above] for above in ancestors(path)[1:])
        or not exists(f"{tree}/{path}")
        or is_directory(f"{tree}/{path}")
    }


def _write(path: str, data: bytes) -> None:
    fd = open_emptied(path)
    try:
        write_all(fd, data)
    finally:
        close(fd)


def _remove_abandoned(place: str) -> None:
    """Remove what processes left that were killed."""
    for name in list_files(place):
        path = f"{place}/{name.removesuffix('.lock')}"
        lock = flock.acquire(f"{path}.lock") if name.endswith(".lock") else -1
        if lock >= 0:
            remove_tree(path)
            flock.release(lock, f"{path}.lock")


# --- what may be looked into -------------------------------------------------------------------------------------------


def readable(ctx: Context, source: Source, work: Work) -> tuple[list[str], list[LeftOut]]:
    """The uncommitted files that may be read, and those that are left out: kept from agents, too large, or read only by running something."""
    paths = work.uncommitted
    words = _words(ctx, work) if paths else {}
    private = _private(source, paths)
    found: list[str] = []
    left: list[LeftOut] = []
    size = 0
    for path in paths:
        said = words.get(path, {})
        why, bytes_ = _size(f"{work.tree}/{path}")
        if path in private or attributes_of(said).read:
            why, bytes_ = _PRIVATE, 0
        elif said.get("filter", "unspecified") not in ("unspecified", "unset", "set", ""):
            why, bytes_ = _FILTERED, 0  # lfs, for one, would write into the repository
        size += bytes_
        if not why and (size > _MOST_BYTES or len(found) == _MOST_FILES):
            why = _TOO_MANY
        if why:
            left.append(LeftOut(path, why))
        else:
            found.append(path)
    return found, left


def _private(source: Source, paths: Iterable[str]) -> set[str]:
    """Those of these files that trunk's policy, or a private rule of this machine, keeps from agents."""
    if not source.says_who_reads:
        return set()
    return {path for path, values in source.attributes(paths).items() if values.read}


def _words(ctx: Context, work: Work) -> dict[str, dict[str, str]]:
    """The attributes of each file by the work tree itself, which may mark what trunk does not know yet."""
    answer = check_attributes(ctx.repo.env, ("filter", _READ), work.uncommitted, work.tree)
    words = (
        answer.require(f"the attributes of files in {work.tree} cannot be read")
        .out.decode("utf-8", "surrogateescape")
        .split("\0")
    )
    found: dict[str, dict[str, str]] = {}
    for path, attribute, value in zip(words[::3], words[1::3], words[2::3]):
        found.setdefault(path, {})[attribute] = value
    return found


def _size(path: str) -> tuple[str, int]:
    """(why this file is not read, its size). A deleted one needs no reading."""
    try:
        found = lstat(path)
    except (OSError, ValueError):
        return "", 0
    if is_symlink(found) or is_folder(found):  # a folder where a file was: it is gone
        return "", 0
    if found.st_size > _LARGEST:
        return _TOO_LARGE, 0
    return ("", found.st_size) if is_readable(path) else ("it cannot be read", 0)
