"""The claims that a landing releases, and those that it leaves; a dry run changes nothing."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import World
from tests.landing.support import Trunk
from tests.support import CLAIM, HANDOFF, git, run_command


def _claim(trunk: Trunk, agent: str, *words: str) -> None:
    done = run_command([*CLAIM, *words], trunk.tree(agent), trunk.world.environ(agent, {}))
    assert done.returncode == 0, done.stderr


def test_a_directory_that_is_named_as_turns_are_is_shown(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"land/a": "x\n"})
    _claim(trunk, "alice", "land/a")
    done = trunk.land("alice", "--json")
    assert done.code == 0 and done.json["released"] == ["land/a"], done
    trunk.nothing_left()


def test_a_claim_on_everything_is_released_where_something_landed(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"dir/a": "x\n"})
    _claim(trunk, "alice", ".")
    done = trunk.land("alice", "--json")
    assert done.code == 0 and done.json["released"] == ["."], done
    trunk.nothing_left()


def test_the_agent_that_waited_for_what_is_released_is_named(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"dir/a": "x\n"})
    trunk.branch("bob", {"b": "x\n"})
    _claim(trunk, "alice", "dir")
    assert world.claim("--queue", "dir", agent="bob").code == 3
    done = trunk.land("alice")
    assert done.code == 0 and "released dir\ndir goes to bob, who waited\n" in done.out, done


def test_a_claim_is_found_where_case_is_folded(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    trunk = Trunk(World(tmp_path / "repo", ledger=True, fold=True))
    trunk.branch("alice", {"Dir/a": "x\n"})
    _claim(trunk, "alice", "dir")
    done = trunk.land("alice", "--json")
    assert done.code == 0 and done.json["released"] == ["dir"], done


def test_a_dry_run_changes_nothing(world: World) -> None:
    """A landing that was interrupted after trunk had moved is left for a command that may write."""
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    trunk.branch("bob", {"b": "x\n"})
    trunk.interrupt("alice")
    before = world.git("for-each-ref")
    assert trunk.land("bob", "--dry-run").code == 0
    assert world.git("for-each-ref") == before
    assert "the landing of alice had been interrupted" in trunk.land("bob").err
    trunk.nothing_left()


def test_claims_of_agents_whose_commits_land_are_released_unless_something_is_uncommitted(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("bob", {"b": "1\n", "dir/b": "1\n"})
    tree = trunk.branch("alice", {"a": "1\n"})
    for agent, *paths in (("bob", "b", "dir/b"), ("carol", "a")):
        run_command([*CLAIM, *paths], trunk.tree("bob"), world.environ(agent, {}))
    git(tree, "merge", "-q", "--no-ff", "-m", "bob's", "bob")
    (trunk.tree("bob") / "dir/b").write_text("not committed\n")
    assert trunk.land("alice", "--wait", "0", "--json").json["error"] == "held", "carol has no part in it"
    world.free("carol")
    done = trunk.land("alice", "--json")
    assert done.code == 0 and done.json["released"] == ["b"], done
    assert world.claims() == ["path/dir/b/@bob"]
    assert world.coord("fsck").code == 0


def test_a_claim_stays_while_its_work_is_on_a_branch_that_has_not_landed(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"b": "1\n"})
    _claim(trunk, "alice", "b")
    world.git("branch", "later", "alice")
    trunk.commit("alice", {"b": "2\n"})
    git(trunk.tree("alice"), "checkout", "-q", "later")
    done = trunk.land("alice", "--json")
    assert done.code == 0 and done.json["released"] == [] and world.claims() == ["path/b/@alice"], done
    git(trunk.tree("alice"), "checkout", "-q", "alice")
    done = trunk.land("alice", "--squash", "--json")
    assert done.code == 0 and done.json["released"] == ["b"], done
    trunk.nothing_left()


def test_a_claim_is_released_where_trunk_has_the_content_of_its_branch(world: World) -> None:
    """The work of a subagent came in squashed."""
    trunk = Trunk(world)
    trunk.branch("alice.x", {})
    _claim(trunk, "alice.x", "b")
    trunk.commit("alice.x", {"b": "1\n"})
    git(trunk.branch("alice", {}), "merge", "-q", "--squash", "alice.x")
    trunk.commit("alice", {"a": "1\n"})
    done = trunk.land("alice", "--json")
    assert done.code == 0 and done.json["released"] == ["b"], done


def test_a_claim_that_was_handed_over_stays_until_the_work_that_came_with_it_lands(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "1\n"})
    trunk.branch("bob", {}, "alice")
    _claim(trunk, "bob", "a")
    trunk.commit("bob", {"a": "2\n"})
    words = (
        "new",
        "--to",
        "alice",
        "--state",
        "ok now",
        "--changed",
        "all of a",
        "--remaining",
        "the end",
        "--next",
        "land it",
    )
    assert run_command([*HANDOFF, *words], trunk.tree("bob"), world.environ("bob", {})).returncode == 0
    id = world.handoff("list", "--json", agent="alice").json["handoffs"][0]["id"]
    assert run_command([*HANDOFF, "accept", id], trunk.tree("alice"), world.environ("alice", {})).returncode == 0
    done = trunk.land("alice", "--json")
    assert done.code == 0 and done.json["released"] == [] and world.claims() == ["path/a/@alice"], done
    git(trunk.tree("alice"), "merge", "-q", "bob")
    done = trunk.land("alice", "--json")
    assert done.code == 0 and done.json["released"] == ["a"], done
    trunk.nothing_left()


def test_an_intent_does_not_keep_a_landing_waiting_and_its_holder_is_told(world: World) -> None:
    trunk = Trunk(world, marks="text gitcoord-claim\n")
    trunk.branch("alice", {"text": "alice\n"})
    world.take("text", "--mode", "intent", agent="bob")
    done = trunk.land("alice", "--wait", "0", "--json")
    assert done.code == 0 and done.json["told"] == ["bob"], done
    assert world.claims() == ["path/text/@bob"]
    told = world.claim("text", agent="bob")
    assert f"changed on main: alice has landed ({trunk.tip[:12]})" in told.out, told
    world.free("bob")
    trunk.commit("alice", {"text": "again\n"})
    world.take("text", "--mode", "read", agent="bob")
    assert trunk.land("alice", "--wait", "0", "--json").json["error"] == "held", "a reader relies on what is there"
