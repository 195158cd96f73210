"""`git coord commit --release` and `--land`."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.cli.test_json import holds
from tests.landing.support import Trunk
from tests.support import CLAIM, COORD, git, run_command


def test_a_commit_that_releases_and_one_that_lands(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "1\n", "b": "1\n"})
    environ = world.environ("alice", {})
    assert run_command([*CLAIM, "a", "b"], tree, environ).returncode == 0
    (tree / "a").write_text("2\n")
    done = run_command([*COORD, "commit", "-m", "a", "--release", "--", "a"], tree, environ)
    assert done.returncode == 0 and b"released a\n" in done.stdout, done
    assert world.claims() == ["path/b/@alice"]
    (tree / "b").write_text("2\n")
    done = run_command([*COORD, "commit", "-m", "b", "--land", "--", "b"], tree, environ)
    assert done.returncode == 0 and b"landed alice on main" in done.stdout, done
    assert (trunk.show("a"), trunk.show("b")) == ("2", "2")
    trunk.nothing_left()


def test_a_commit_that_could_not_land_is_not_made(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "1\n"})
    for place, words in (
        (trunk.top, "trunk itself"),
        (tree, "no branch is checked out"),
        (tree, "leave --release out"),
    ):
        if place == tree:
            git(tree, "checkout", "-q", *(["--detach"] if "branch" in words else ["alice"]))
        (place / "text").write_text(words)
        before = git(place, "rev-parse", "HEAD")
        more = ["--release"] if "release" in words else []
        argv = [*COORD, "commit", "-m", "b", "--land", *more, "--json", "--", "text"]
        done = run_command(argv, place, world.environ("alice", {}))
        assert done.returncode == 2 and words.encode() in done.stdout, done
        assert git(place, "rev-parse", "HEAD") == before
        git(place, "checkout", "-q", "--", "text")


def test_a_commit_that_lands_is_named_also_where_it_does_not_land(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "1\n"})
    for text in ("2\n", "3\n"):
        (tree / "a").write_text(text)
        argv = [*COORD, "commit", "-m", "b", "--land", "--json", "--", "a"]
        ran = run_command(argv, tree, world.environ("alice", {}))
        done = Done(ran.returncode, ran.stdout.decode(), ran.stderr.decode())
        assert done.json["committed"] == git(tree, "rev-parse", "HEAD").decode().strip()
        if text == "2\n":
            holds(done, "landed")
            world.commit({".gitcoord/config": "[land]\n\tcheck = false\n"})
        else:
            assert (done.code, done.json["error"]) == (1, "check")


@pytest.mark.parametrize(("holder", "words"), [("bob", "left the queue"), ("", "it has not landed")])
def test_one_that_is_interrupted_names_its_commit(world: World, tmp_path: Path, holder: str, words: str) -> None:
    """While it waits for its turn, and during its check."""
    trunk = Trunk(world, policy=f"[land]\n\tcheck = echo >{tmp_path}/began; sleep 1000\n".replace("; ", " && "))
    tree = trunk.branch("alice", {"a": "1\n"})
    os.mkfifo(tmp_path / "began")
    if holder:
        world.take("@land/main", agent=holder)
    (tree / "a").write_text("2\n")
    with subprocess.Popen(
        [*COORD, "commit", "-m", "b", "--land", "--", "a"], cwd=tree, env=world.environ("alice", {}),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        said = process.stderr.readline()
        if holder:
            while not said.startswith("waiting: "):
                said = process.stderr.readline()
        else:
            (tmp_path / "began").read_text()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    made = git(tree, "rev-parse", "--short=12", "HEAD").decode().strip()
    assert process.returncode == 130 and f"interrupted: committed {made}; {words}" in err, err
