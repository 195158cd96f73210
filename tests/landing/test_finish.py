"""Commands other than `land` that complete the record of an interrupted landing."""

from __future__ import annotations

import pytest

from tests.cli.support import World
from tests.landing.support import Trunk


@pytest.mark.parametrize("verb", ["start", "sweep"])
def test_an_interrupted_landing_is_finished(world: World, verb: str) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    trunk.interrupt("alice")
    done = world.coord(verb, agent="bob")
    assert done.code == 0 and "the landing of alice had been interrupted, and is on record now" in done.err, done
    assert world.events()[-1].startswith("land alice on main") or verb == "start"
    trunk.nothing_left()
    assert "interrupted" not in world.coord(verb, agent="bob").err


def test_a_landing_that_trunk_does_not_contain_is_left_alone(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    trunk.interrupt("alice", moved=False)
    assert "interrupted" not in world.coord("sweep", agent="bob").err
    assert world.git("ls-tree", "-r", "--name-only", "gitcoord", "landings") == "landings/@alice"


def test_a_new_work_tree_says_what_is_claimed_when_it_lands(world: World) -> None:
    Trunk(world, marks="text gitcoord-claim=landing\n")
    done = world.coord("worktree", "add", "one")
    assert "claimed by git coord land, not before: text" in done.out, done
    world.commit({".gitattributes": "text gitcoord-claim\n"})
    assert "git coord land" not in world.coord("worktree", "add", "two").out
