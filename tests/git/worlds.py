"""The repositories on which every store must keep the same promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gitcoord.base.names import Oid
from gitcoord.git.repo import Repo
from tests.git.memory_store import MemoryStore
from tests.support import git, plumbing_store, repo_at

if TYPE_CHECKING:
    from gitcoord.git.store import Store

REFTABLE = pytest.param("reftable", marks=pytest.mark.newer_git)
DISK = ("sha1", "asking", "packed", "worktree", "bare", "sha256", REFTABLE)
WORLDS = ("memory", *DISK)


class World:
    """A store, and its repository where there is one on disk."""

    def __init__(
        self, store: Store, repo: Repo | None, top: Path | None, *, packed: bool = False, asking: bool = False
    ) -> None:
        self.store = store
        self.repo = repo
        self.top = top
        self._packed = packed
        self._asking = asking

    def blob(self, text: str) -> Oid:
        """An object that is there for all to see."""
        oid = self.store.write("blob", text.encode())
        self.store.flush()
        return oid

    def settle(self) -> None:
        """Pack the refs, in a world of packed refs."""
        if self._packed and self.top is not None:
            git(self.top, "pack-refs", "--all")

    def other(self) -> Store:
        """The same place, as another process would see it."""
        if self.repo is None:
            return self.store
        return plumbing_store(self.repo, self.store.oid_length, asking=self._asking)


def make_world(kind: str, place: Path, git_repo: Callable[[], Path]) -> World:
    if kind == "memory":
        return World(MemoryStore(), None, None)
    if kind in ("sha1", "asking", "packed"):
        top, asking = git_repo(), kind == "asking"
        repo = repo_at(top / ".git", worktree=top)
        store = plumbing_store(repo, 40, asking=asking)
        return World(store, repo, top, packed=kind == "packed", asking=asking)
    if kind == "worktree":
        main, top = git_repo(), place / "linked"
        git(main, "commit", "--quiet", "--allow-empty", "-m", "first")
        git(main, "worktree", "add", "--quiet", str(top))
        repo = repo_at(main / ".git/worktrees/linked", common=main / ".git", worktree=top)
        return World(plumbing_store(repo, 40), repo, top)
    option = {"bare": "--bare", "sha256": "--object-format=sha256", "reftable": "--ref-format=reftable"}[kind]
    top = place / kind
    git(place, "init", "--quiet", option, str(top))
    repo = repo_at(top if kind == "bare" else top / ".git", worktree=None if kind == "bare" else top)
    asking = kind == "reftable"
    return World(plumbing_store(repo, 64 if kind == "sha256" else 40, asking=asking), repo, top, asking=asking)
