"""Nothing lands twice: what trunk has by other commits, as after a squash."""

from __future__ import annotations

from tests.cli.support import World
from tests.landing.support import Trunk, lines
from tests.support import git


def test_a_branch_whose_commits_change_one_line_in_turn_lands_once(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"text": lines(l1="one")})
    trunk.commit("alice", {"text": lines(l1="two")})
    world.commit({"text": lines(l18="eighteen")}, "other work")
    assert trunk.land("alice", "--rebase").code == 0
    before = trunk.tip
    assert trunk.land("alice", "--rebase").out.startswith("nothing to land: ") and trunk.tip == before
    trunk.commit("alice", {"new": "x\n"})
    assert trunk.land("alice", "--squash").code == 0, "what is new lands"
    assert trunk.show("new") == "x" and trunk.tip != before


def test_what_trunk_has_by_a_squash_does_not_land_again_in_lanes(world: World) -> None:
    trunk = Trunk(world, policy="[land]\n\tcheck = true\n\tlanes = 3\n")
    trunk.branch("alice", {"text": lines(l1="one")})
    world.commit({"text": lines(l18="eighteen")}, "other work")
    assert trunk.land("alice", "--squash").code == 0
    before = trunk.tip
    for way in ("--merge", "--squash", "--rebase"):
        assert trunk.land("alice", way, "--json").json["already"] and trunk.tip == before
    trunk.nothing_left()


def test_empty_commits_are_meant_to_land(world: World) -> None:
    trunk = Trunk(world)
    for way in ("merge", "squash", "rebase"):
        git(trunk.branch(way, {}), "commit", "-q", "--allow-empty", "-m", "run the jobs again")
        world.commit({"text": lines(l18=way)}, "other work")
        before = trunk.tip
        done = trunk.land(way, f"--{way}", "--json")
        assert not done.json["already"] and trunk.tip != before, done


def test_what_trunk_has_already_waits_for_no_path(world: World) -> None:
    trunk = Trunk(world, marks="text gitcoord-claim\n")
    trunk.branch("alice", {"text": lines(l1="one")})
    world.commit({"other": "x\n"}, "other work")
    assert trunk.land("alice", "--squash").code == 0
    world.take("text", agent="bob")
    look = trunk.land("alice", "--dry-run", "--check", "true", "--json").json
    assert (look["already"], look["claims"], look["checks"]) == (True, [], [])
    assert trunk.land("alice", "--wait", "0").out.startswith("nothing to land: ")
    assert world.claims() == ["path/text/@bob"]
