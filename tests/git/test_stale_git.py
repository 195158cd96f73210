"""A swap compares with the refs that are there, however long the store has been open.

git takes a new packed-refs for the one it read if inode, size and whole second agree, which two packings in a row bring
about on most tries. A store that kept its git for a second swap, or its reader for a second look, would be fooled here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcoord.git.store import SwapFailed, Update, Verify
from gitcoord.world.open import environ, open_repository
from tests.support import git

REF = "refs/heads/gitcoord"
TRIES = 25


def test_a_swap_after_others_packed_twice_expects_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", str(tmp_path / "project"))
    top = tmp_path / "project"
    tree = git(top, "hash-object", "-t", "tree", "-w", "/dev/null").decode().strip()
    commits = [git(top, "commit-tree", "-m", str(n), tree).decode().strip() for n in range(2 * TRIES + 2)]
    monkeypatch.chdir(top)
    store = open_repository(environ(), writing=True).store
    (top / ".git" / "gitcoord").mkdir()

    def packed(oid: str) -> str:
        git(top, "update-ref", REF, oid)
        git(top, "pack-refs", "--all")
        return oid

    last = packed(commits[0])
    for number in range(1, 2 * TRIES, 2):
        store.swap([Verify(REF, last)])  # the store's git has seen this packed-refs
        assert store.resolve([REF]) == [last]
        stale, last = last, [packed(oid) for oid in commits[number : number + 2]][-1]
        assert store.resolve([REF]) == [last]
        with pytest.raises(SwapFailed):
            store.swap([Update(REF, stale, commits[-1])])
    store.close()
