"""Work trees that have trunk checked out: they follow where it moves, or are left where uncommitted changes would be touched.

While trunk moves, git's own lock on their index is held, so no commit there can be made with the old index on the new tip. The lock names
its process, and a note has old and new tip: the next landing finishes what a process that died has begun.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, dumps, loads
from gitcoord.base.errors import StoreError
from gitcoord.git.commands.refs import detach_head, git_dir, rev_parse
from gitcoord.git.commands.worktrees import (
    list_worktrees,
    staged_raw,
    switch_tree,
    with_index,
    without_location,
    write_tree,
)
from gitcoord.git.files import exists, is_directory, read_file, remove_file, rename, write_file
from gitcoord.git.host import own_process, runs_still
from gitcoord.landing.bring import contains
from gitcoord.ledger.context import Context
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.worktrees.index import IndexLock, copy_index

_NOTE = "landing/following"
_MARK = "gitcoord landing"
_COPY = ".landing"  # behind the name of the index that it becomes


class Place(NamedTuple):
    """A work tree that has trunk checked out."""

    path: str
    git_dir: str


def places_of(ctx: Context, ref: str) -> list[Place]:
    """The work trees that have this branch checked out. Only of those more is asked than their list."""
    answer = list_worktrees(ctx.repo.env).require("git worktree list failed", StoreError)
    parts = [dict((*row.partition(" ")[::2],) for row in part.split("\0") if row) for part in answer.text.split("\0\0")]
    found = []
    for index, rows in enumerate(parts):
        path = rows.get("worktree", "")
        if rows.get("branch") == ref and is_directory(path):
            own = git_dir(without_location(ctx.repo.env), path).text if index else ctx.repo.common_dir
            found += [Place(path, own)] if own else []
    return found


class Following:
    """The work trees of trunk for the time in which it moves; the context frees their locks."""

    def __init__(self, ctx: Context, ref: str, old: str, new: str) -> None:
        self._ctx = ctx
        self._old, self._new = old, new
        self._places = places_of(ctx, ref)
        owner = f"{_MARK} {own_process()}".encode()
        self._locks = [IndexLock(f"{place.git_dir}/index", owner) for place in self._places]
        self._locked: list[bool] = []

    def __enter__(self) -> Following:
        if self._places:
            record = {"v": 1, "owner": own_process(), "old": self._old, "new": self._new}
            record["places"] = [list(place) for place in self._places]
            write_file(self._ctx.scratch(_NOTE), dumps(record).encode())
        self._locked = [lock.take(self._ctx.host.pause) for lock in self._locks]
        return self

    def follow(self) -> dict[str, list[str]]:
        """After trunk has moved: the paths of the work trees that followed, and of those that were left; `locked`: those of them whose index another git
        has locked."""
        found: dict[str, list[str]] = {"followed": [], "left": [], "locked": []}
        for place, lock, locked in zip(self._places, self._locks, self._locked):
            done = locked and _switch(self._ctx, place, lock, self._old, self._new)
            if not done:
                detach_head(self._ctx.repo.env, place.git_dir, self._old)
            found["followed" if done else "left"].append(place.path)
            found["locked"] += [] if locked else [place.path]
        return found

    def __exit__(self, *_: object) -> None:
        for lock in self._locks:
            lock.__exit__()
        if self._places:
            remove_file(self._ctx.scratch(_NOTE))


def _switch(ctx: Context, place: Place, lock: IndexLock, old: str, new: str) -> bool:
    """Switch files and a copy of the index, and put it in place. git refuses where something uncommitted would be touched."""
    copy = f"{place.git_dir}/index{_COPY}"
    if not copy_index(f"{place.git_dir}/index", copy):
        return False
    if switch_tree(with_index(ctx.repo.env, copy), old, new, place.path).code:
        remove_file(copy)
        return False
    lock.replace(copy)
    return True


def finish_following(ctx: Context, ref: str) -> None:
    """Finish what a landing that died had begun: where trunk has moved, its work trees follow or are left; its locks go."""
    data = read_file(ctx.scratch(_NOTE), 1 << 20)
    if not data:
        return
    try:
        record = loads(data, 1 << 20)
        places = [Place(*row) for row in record["places"]]
        owner, old, new = (str(record[key]) for key in ("owner", "old", "new"))
    except (Malformed, KeyError, TypeError):
        remove_file(ctx.scratch(_NOTE))
        return
    if runs_still(*owner.partition(" ")[::2]):
        return
    for place in places:
        _finish_index(ctx, place, new)
        tip = ctx.local.target(ref)
        here = read_file(f"{place.git_dir}/HEAD").decode("utf-8", "replace").strip()
        if here != f"ref: {ref}" or not tip or not contains(ctx, tip, new):
            continue
        _finish_place(ctx, place, old, new, tip)
    remove_file(ctx.scratch(_NOTE))


def _finish_index(ctx: Context, place: Place, new: str) -> None:
    """Put the index of `new` in place where it was ready, beside the index or in its lock already; remove what else was left."""
    index = f"{place.git_dir}/index"
    lock, copy = f"{index}.lock", f"{index}{_COPY}"
    if read_file(lock, len(_MARK)).decode("ascii", "replace") == _MARK:
        remove_file(lock)
    for ready in (copy, lock):
        env = with_index({**ctx.repo.env, b"GIT_DIR": place.git_dir.encode("utf-8", "surrogateescape")}, ready)
        if exists(ready) and write_tree(env).text == rev_parse(ctx.repo.env, f"{new}^{{tree}}").text:
            rename(ready, index)
    remove_file(copy)
    remove_file(f"{copy}.lock")


def _finish_place(ctx: Context, place: Place, old: str, new: str, tip: str) -> None:
    """The work tree has the files of `old`, or of `new`, and the index of the same."""
    env = {**ctx.repo.env, b"GIT_DIR": place.git_dir.encode("utf-8", "surrogateescape")}
    at = new if not staged_raw(env, new).out else old
    if at == tip:
        return
    with IndexLock(f"{place.git_dir}/index") as lock:
        if not (lock.take(ctx.host.pause) and _switch(ctx, place, lock, at, tip)):
            detach_head(ctx.repo.env, place.git_dir, at)
