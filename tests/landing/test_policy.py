"""Settings of trunk's policy: files that the check rests on, and roles that do not land."""

from __future__ import annotations

from tests.cli.support import World
from tests.landing.support import Trunk

GUARDED = "[land]\n\tcheck = sh check.sh && sh tests/run\n\tguarded = check.sh tests\n"


def test_the_check_runs_with_trunks_guarded_files(world: World) -> None:
    """A branch that makes the check easier is checked by the old one; what it changes there lands with it."""
    trunk = Trunk(world, policy=GUARDED)
    world.commit({"check.sh": "test ! -e broken\n", "tests/run": "test ! -e tests/more\n"})
    trunk.branch("alice", {"check.sh": "true\n", "broken": "x\n"})
    failed = trunk.land("alice", "--json")
    assert failed.code == 1 and failed.json["error"] == "check", failed
    trunk.commit("alice", {"broken": None, "tests/more": "new\n", "tests/run": None})
    done = trunk.land("alice", "--json")
    assert done.code == 0, done
    assert trunk.show("check.sh") == "true" and trunk.show("tests/more") == "new"
    trunk.nothing_left()


def test_an_unguarded_file_is_taken_from_the_branch(world: World) -> None:
    trunk = Trunk(world, policy="[land]\n\tcheck = sh check.sh\n\tguarded = other missing\n")
    world.commit({"check.sh": "false\n"})
    trunk.branch("alice", {"check.sh": "true\n"})
    assert trunk.land("alice").code == 0


def test_a_role_that_does_not_land(world: World) -> None:
    policy = '[role "scout"]\n\tland = false\n[agent "alice"]\n\trole = scout\n'
    trunk = Trunk(world, policy=policy)
    trunk.branch("alice", {"a": "x\n"})
    trunk.branch("bob", {"b": "x\n"})
    before = trunk.tip
    for words in ((), ("--check", "true"), ("--wait", "0")):
        refusal = trunk.land("alice", *words, "--json")
        assert refusal.code == 1 and refusal.json["error"] == "role", refusal
    assert trunk.tip == before
    assert trunk.land("bob").code == 0
    trunk.nothing_left()
