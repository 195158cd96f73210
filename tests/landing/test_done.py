"""`git coord land --done`: the work tree goes where its work has landed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import World
from tests.cli.test_json import holds
from tests.landing.support import Trunk
from tests.support import COORD, git, run_command


def test_done_removes_the_work_tree_unless_one_stands_in_it(world: World) -> None:
    Trunk(world)
    trees = {}
    for name in ("one", "two"):
        trees[name] = Path(world.coord("worktree", "add", name, "--json").json["path"])
        (trees[name] / name).write_text("x\n")
        git(trees[name], "add", "-A")
        git(trees[name], "commit", "-q", "-m", "work")
    done = world.coord("land", "one", "--done", "--json")
    assert holds(done, "landed")["removed"] == str(trees["one"]) and not trees["one"].exists()
    inside = run_command([*COORD, "land", "--done"], trees["two"], world.environ("alice", {}))
    assert inside.returncode == 0 and b"git coord worktree done two" in inside.stderr, inside
    assert trees["two"].exists() and world.git("show", "main:two") == "x"


@pytest.mark.parametrize("way", ["--squash", "--rebase"])
def test_done_removes_the_work_tree_of_commits_that_were_made_anew(world: World, way: str) -> None:
    Trunk(world)
    trees = {}
    for name in ("one", "two", "three"):
        trees[name] = Path(world.coord("worktree", "add", name, "--json").json["path"])
        for more in ("a", "b"):
            (trees[name] / f"{name}-{more}").write_text("x\n")
            git(trees[name], "add", "-A")
            git(trees[name], "commit", "-q", "-m", more)
    world.commit({"other": "x\n"})
    done = world.coord("land", "one", way, "--done", "--json")
    assert holds(done, "landed")["removed"] == str(trees["one"]) and not trees["one"].exists()
    commits = f"git -C {trees['two']} commit -q --allow-empty -m meanwhile"
    stays = world.coord("land", "two", way, "--done", "--check", commits)
    assert stays.code == 0 and "1 commit(s) of 'two' are neither" in stays.err and trees["two"].exists(), stays
    (trees["three"] / "three-a").write_text("uncommitted\n")
    stays = world.coord("land", "three", way, "--done")
    assert stays.code == 0 and "uncommitted work in 'three'" in stays.err and trees["three"].exists(), stays
    git(trees["three"], "checkout", "-q", ".")
    assert world.coord("worktree", "done", "three").code == 1
    words = stays.err.partition("elsewhere: git coord ")[2].split()
    assert world.coord(*words).code == 0 and not trees["three"].exists(), words


def test_done_is_made_up_for_by_the_landing_that_was_killed_before(world: World) -> None:
    trunk = Trunk(world)
    tree = Path(world.coord("worktree", "add", "alice", "--json").json["path"])
    (tree / "a").write_text("x\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "work")
    trunk.interrupt("alice")
    done = world.coord("land", "alice", "--done", "--json", agent="alice")
    assert holds(done, "landed")["removed"] == str(tree) and not tree.exists()
