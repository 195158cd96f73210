"""The claims that a landing releases, and those that it leaves; a dry run changes nothing."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import World
from tests.landing.support import Trunk
from tests.support import CLAIM, run_command


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


def test_a_claim_is_found_where_case_is_folded(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    trunk = Trunk(World(tmp_path / "repo").init(fold=True))
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
