"""Scratch work trees for checks: each belongs to a living process, known by a lock; those of dead ones are removed."""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.git.commands.objects import diff_names
from gitcoord.git.commands.refs import add_detached_worktree
from gitcoord.git.commands.worktrees import fill_worktree, prune_worktrees, restore_in
from gitcoord.git.files import list_files, make_directory, remove_tree
from gitcoord.git.locks import flock
from gitcoord.ledger.context import Context

_PLACE = "landing/trees"


class Scratch:
    """One scratch work tree, made when it is first filled; the context removes it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.path = ctx.scratch(f"{_PLACE}/{ctx.host.random()[:12]}")
        self._lock = -1

    @property
    def gpg_home(self) -> str:
        """An empty home for gpg, which finds the agent of the account by its own home, not by a variable."""
        return f"{self.path}.gpg"

    def __enter__(self) -> Scratch:
        return self

    def fill(self, commit: str) -> str:
        """Make it anew with the files of this commit; gives its path."""
        self._remove()
        self._lock = flock.acquire(f"{self.path}.lock")
        made = add_detached_worktree(self._ctx.repo, self._ctx.notes, self.path, commit)
        made.require("git cannot make a work tree for the check", StoreError)
        make_directory(self.gpg_home)
        filled = fill_worktree(self._ctx.repo.env, self.path)
        filled.require("git cannot write the files for the check", StoreError)
        return self.path

    def take_from(self, old: str, commit: str, paths: tuple[str, ...]) -> list[str]:
        """Put the files of `old` at and below these paths in the place of those of `commit`; gives those that differ."""
        if not paths:
            return []
        env = self._ctx.repo.env
        found = diff_names(env, old, commit, *(f":(top,literal){path.rstrip('/')}" for path in paths))
        changed = found.require("git cannot compare the files that the check rests on", StoreError).entries
        if changed:
            # A file in the place of a directory, of either side, covers what is below it: git knows no path below a file.
            there = set(changed)
            tops = [path for path in changed if there.isdisjoint(_above(path))]
            taken = restore_in(env, self.path, old, tops)
            taken.require("git cannot write the files that the check rests on", StoreError)
        return changed

    def _remove(self) -> None:
        if self._lock >= 0:
            _remove(self._ctx, self.path)
            flock.release(self._lock, f"{self.path}.lock")
            self._lock = -1

    def __exit__(self, *_: object) -> None:
        self._remove()


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _remove(ctx: Context, path: str) -> None:
    remove_tree(path)
    remove_tree(f"{path}.gpg")
    prune_worktrees(ctx.repo.env)


def remove_abandoned(ctx: Context) -> None:
    """Remove the scratch work trees whose processes have died."""
    place = ctx.scratch(f"{_PLACE}/x").rpartition("/")[0]
    for name in sorted(list_files(place)):
        path = f"{place}/{name.removesuffix('.lock')}"
        lock = flock.acquire(f"{path}.lock") if name.endswith(".lock") else -1
        if lock >= 0:
            _remove(ctx, path)
            flock.release(lock, f"{path}.lock")
