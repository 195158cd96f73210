"""Branches, work trees and repositories that are out of the ordinary: odd names, nothing checked out, ways in which git itself keeps both sides."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.landing.support import Trunk
from tests.support import git


@pytest.mark.parametrize("name", ["feature/login", "ümläut", "a;b", "x@y", "refs/heads/deep"])
def test_any_name_that_git_takes_lands(world: World, name: str) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "x\n"})
    git(tree, "branch", "-m", name)
    done = trunk.land("alice")
    assert done.code == 0 and trunk.show("a") == "x", done
    assert world.git("rev-parse", f"refs/heads/{name}") == trunk.tip
    trunk.nothing_left()


def test_a_name_like_an_option_is_named_after_two_dashes(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    world.git("update-ref", "refs/heads/--squash", "alice")
    done = trunk.land("alice", "--", "--squash")
    assert done.code == 0 and trunk.show("a") == "x", done
    assert world.git("rev-parse", "main") == world.git("rev-parse", "alice"), "no squash"


def test_with_nothing_checked_out_and_on_trunk_the_branch_is_named(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "x\n"})
    git(tree, "checkout", "-q", "--detach")
    before = trunk.tip
    for done in (trunk.land("alice"), world.coord("land", agent="alice")):
        assert done.code == 2 and "hint: name the branch: git coord land <branch>" in done.err, done
    assert trunk.tip == before
    assert trunk.land("alice", "alice").code == 0 and trunk.show("a") == "x"
    trunk.nothing_left()


def test_a_list_with_a_union_merge_keeps_the_lines_of_both(world: World) -> None:
    trunk = Trunk(world, marks="CHANGES merge=union\n")
    world.commit({"CHANGES": "first\n"})
    for agent in ("alice", "bob"):
        trunk.branch(agent, {"CHANGES": f"first\n{agent}\n"})
    assert trunk.land("alice").code == trunk.land("bob").code == 0
    assert sorted(trunk.show("CHANGES").split()) == ["alice", "bob", "first"]
    trunk.nothing_left()


def test_a_branch_lands_as_it_was_asked_for_where_it_moves_or_goes_meanwhile(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "1\n"})
    asked = world.git("rev-parse", "alice")
    moves = f"git -C {trunk.tree('alice')} commit -q --allow-empty -m later"
    assert trunk.land("alice", "--check", moves).code == 0
    assert trunk.tip == asked != world.git("rev-parse", "alice")
    trunk.branch("bob", {"b": "1\n"})
    git(trunk.tree("bob"), "checkout", "-q", "--detach")
    assert trunk.land("bob", "bob", "--check", f"git -C {trunk.top} branch -q -D bob").code == 0
    assert trunk.show("b") == "1"
    trunk.nothing_left()


def test_a_bare_repository_with_work_trees(world: World, tmp_path: Path) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "x\n"})
    subprocess.run(["git", "config", "core.bare", "true"], cwd=trunk.top, check=True)
    done = trunk.land("alice")
    assert done.code == 0 and git(tree, "show", "main:a") == b"x\n", done


@pytest.mark.parametrize("words", [("--task", ""), ("--check", ""), ("--check", "true", "--check", " ")])
def test_an_empty_value_is_refused(world: World, words: tuple[str, ...]) -> None:
    """A variable that is not set, most likely: without the check or the task nothing is to land."""
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    before = trunk.tip
    for more in ((), ("--dry-run",)):
        done = trunk.land("alice", *words, *more)
        assert done.code == 2 and f"{words[0]} has an empty value" in done.err, done
    assert trunk.tip == before
