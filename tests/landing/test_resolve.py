"""Going on after a conflict whose time was over: before those who came later, twice at most."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.support import World
from tests.landing.support import Trunk
from tests.support import CLAIM, COORD, git, run_command


def _goes_on(trunk: Trunk) -> subprocess.Popen[bytes]:
    environ, pipe = trunk.world.environ("alice", {}), subprocess.PIPE
    return subprocess.Popen(
        [*COORD, "land", "--continue"], cwd=trunk.tree("alice"), env=environ, stdout=pipe, stderr=pipe
    )


@pytest.mark.parametrize(("conflicts", "place"), [(1, b"1st of 2"), (2, b"1st of 2"), (3, b"2nd of 2")])
def test_going_on_is_first_in_the_queue_twice(world: World, conflicts: int, place: bytes) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"text": "alice\n"})
    environ = world.environ("alice", {})
    for number in range(conflicts):
        world.commit({"text": f"trunk {number}\n"})
        assert trunk.land("alice", *(["--continue"] if number else [])).code == 1
        (tree / "text").write_text(f"both {number}\n")
        git(tree, "add", "-A")
        # As if the time were over: the turn passes on.
        assert run_command([*CLAIM, "release", "@land/main"], tree, environ).returncode == 0
    world.take("@land/main", agent="bob")
    assert world.claim("--queue", "@land/main", agent="carol").code == 3
    with _goes_on(trunk) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert place in line, line
        assert world.claim("--leave", agent="carol").code == 0
        world.free("bob")
        assert process.wait(60) == 0
    assert trunk.show("text") == f"both {conflicts - 1}"
    trunk.nothing_left()


def test_where_nobody_may_go_first_it_waits_like_everybody(world: World) -> None:
    trunk = Trunk(world, policy="[queue]\n\tpriority = normal\n")
    tree = trunk.branch("alice", {"text": "alice\n"})
    world.commit({"text": "trunk\n"})
    assert trunk.land("alice").code == 1
    (tree / "text").write_text("both\n")
    git(tree, "add", "-A")
    run_command([*CLAIM, "release", "@land/main"], tree, world.environ("alice", {}))
    world.take("@land/main", agent="bob")
    with _goes_on(trunk) as process:
        assert process.stderr is not None and b"1st of 1" in process.stderr.readline()
        world.free("bob")
        assert process.wait(60) == 0
    trunk.nothing_left()


def test_no_other_landing_hides_a_conflict_that_stands(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"text": "alice\n"})
    world.commit({"text": "trunk\n"})
    (tree / "text").write_text("uncommitted\n")
    assert trunk.land("alice", "--json").json["error"] == "conflict", "noted as failed"
    git(tree, "checkout", "-q", "text")
    assert trunk.land("alice").code == 1
    turns = world.claims()
    for words in ((), ("--squash",), ("alice",)):
        done = trunk.land("alice", *words, "--json")
        assert (done.code, done.json["error"]) == (1, "unresolved"), done
        assert [hint.partition(": ")[2] for hint in done.json["hints"]] == [
            "git coord land --continue",
            "git coord land --abort",
        ]
    assert world.claims() == turns == ["resource/land/main/@alice"], "the turn is kept"
    needs = [need["help"] for need in world.coord("status", "--json").json["needs_you"] if need["kind"] == "landing"]
    assert needs == ["git coord land --continue"], "once"
    assert run_command([*COORD, "land", "--abort"], world.top, world.environ("alice", {})).returncode == 2
    assert trunk.land("alice", "--abort").code == 0 and git(tree, "status", "--porcelain") == b""
    trunk.nothing_left()


def test_going_on_takes_options_and_keeps_the_first_ones(world: World) -> None:
    trunk = Trunk(world)
    tree, ran = trunk.branch("alice", {"text": "alice\n"}), trunk.top / ".git/ran"
    task = world.coord("task", "add", "do it", "--json").json["tasks"][0]["id"]
    assert world.coord("task", "take", task, agent="alice").code == 0
    world.commit({"text": "trunk\n"})
    assert trunk.land("alice", "--done", "--check", f"echo first >>{ran}").code == 1
    (tree / "text").write_text("both\n")
    git(tree, "add", "-A")
    head = git(tree, "rev-parse", "HEAD")
    for words in ("--continue --squash", "--continue --wait soon", "--continue --task a/b", "--abort --check true",
                  "--abort --squash", "--abort --task t1", "--list --done", "--list --wait 1m"):  # fmt: skip
        done = trunk.land("alice", *words.split(), "--json")
        assert (done.code, done.json["error"]) == (2, "usage"), (words, done)
    assert git(tree, "rev-parse", "HEAD", "MERGE_HEAD").startswith(head), "the conflict stands"
    # As if the time were over: the turn passes on.
    assert run_command([*CLAIM, "release", "@land/main"], tree, world.environ("alice", {})).returncode == 0
    world.take("@land/main", agent="bob")
    assert trunk.land("alice", "--continue", "--wait", "0").code == 1
    world.free("bob")
    done = trunk.land("alice", "--continue", "--merge", "--check", f"echo second >>{ran}", "--task", task)
    assert done.code == 0 and done.out.endswith(f"{task} is done\n"), done
    assert ran.read_text() == "first\nsecond\n"
    assert "note: --done: " in done.err
    trunk.nothing_left()
