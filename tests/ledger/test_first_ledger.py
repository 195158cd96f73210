"""Several processes make the ledger at once: one makes it, and the others go on with that one, whenever they look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitcoord.base.names import Oid, RefName
from gitcoord.git.config import Settings
from gitcoord.git.loose_reader import LooseReader
from gitcoord.git.repo import Repo
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.world.client import ClientWorld
from tests.cli.support import World
from tests.support import FakeHost, plumbing_store, repo_at


class Interrupted(LooseReader):
    """Something else happens right after the n-th look at a ref."""

    def __init__(self, repo: Repo, after: int, meanwhile: Callable[[], None]) -> None:
        super().__init__(repo, 40)
        self.left = after
        self._meanwhile = meanwhile

    def ref(self, name: RefName) -> Oid | None:
        found = super().ref(name)
        self.left -= 1
        if self.left == 0:
            self._meanwhile()
        return found


def init_while(world: World, after: int, meanwhile: Callable[[], None]) -> dict[str, object]:
    """The answer of `init` with `meanwhile` run right after its n-th look at a ref; {} if it makes fewer looks."""
    repo = repo_at(world.top / ".git", worktree=world.top)
    store = plumbing_store(repo, 40)
    looks = store._loose = Interrupted(repo, after, meanwhile)
    ctx = Context(repo, Settings([("gitcoord.gc", "false")]), store, FakeHost(), ClientWorld)
    try:
        made = init(ctx, Actor("bob"))
    finally:
        store.close()
    return made if looks.left <= 0 else {}


@pytest.mark.parametrize("after", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("claims", [False, True])
def test_another_process_makes_it_between_two_looks(git_repo: Path, after: int, claims: bool) -> None:
    world = World(git_repo)

    def meanwhile() -> None:
        assert world.coord("init").code == 0
        if claims:
            world.take("src/a.py")

    made = init_while(world, after, meanwhile)
    if made:
        assert made["created"] is False and made["root"] == world.git("config", "gitcoord.root")
        assert len(world.events()) == (3 if claims else 1) and world.events()[0] == "init by alice"
    assert made or after > 2, "at least the ledger and its tip are looked at"


@pytest.mark.parametrize("after", [1, 2, 3, 4, 5, 6])
def test_the_first_event_comes_between_two_looks_at_a_torn_ledger(git_repo: Path, after: int) -> None:
    """The maker was killed between its two refs; the next event makes up for the second one."""
    world = World(git_repo)
    world.git("config", "gitcoord.fsync", "false")
    world.init().git("update-ref", "-d", "refs/gitcoord/tip")
    made = init_while(world, after, lambda: assert_granted(world))
    assert made == {} or made["created"] is False
    assert made or after > 3


def assert_granted(world: World) -> None:
    assert world.take("src/a.py") > 1
