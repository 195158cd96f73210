"""The check: a branch cannot change the one that it is checked by, and an evil one does no harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from gitcoord.landing.cli_check import Running
from gitcoord.terminal.screen import Screen
from tests.cli.support import World
from tests.landing.support import Trunk, lines
from tests.support import git

EVIL = {
    "edits the tree": ("echo evil > text; echo evil > more; git add -A; git commit -qm evil; exit 0", 0),
    "reads its input": ("cat", 0),
    "leaves processes": ("setsid sleep 1000 & echo $! > {pids}; (sleep 1000 & echo $! >> {pids})", 0),
    "leaves one that prints on": ("for n in 1 2 3 4 5 6; do setsid yes & echo $! >> {pids}; done", 0),
    "never ends": ("echo $$ > {pids}; trap '' TERM; while :; do sleep 1; done", 1),
    "prints a gigabyte": ("head -c 1000000000 /dev/zero; exit 3", 1),
    "makes itself unreadable": ("mkdir -p x/y && chmod 000 x; exit 1", 1),
    "knows who it is for": ("env | grep -E '^(GITCOORD_|SSH_|GIT_|CLAUDECODE)' && exit 1; exit 0", 0),
}


def _state(pid: str) -> str:
    """The letter of /proc for a process; '' for none. A dead one may wait for whoever started this test to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


@pytest.mark.parametrize("kind", EVIL)
def test_evil_checks(world: World, kind: str) -> None:
    command, code = EVIL[kind]
    pids = world.top / ".git/pids"
    trunk = Trunk(world, policy=f"[land]\n\ttimeout = {'2s' if kind == 'never ends' else '1m'}\n")
    trunk.branch("alice", {"new": "x\n"})
    env = {"SSH_AUTH_SOCK": "/nowhere", "CLAUDECODE": "1", "GITCOORD_AGENT": "alice"}
    before = trunk.tip
    done = trunk.land("alice", "--check", command.format(pids=pids), "--json", env=env)
    assert done.code == code, done
    assert (trunk.tip != before) == (code == 0)
    assert trunk.show("text") == lines().rstrip("\n")
    if code:
        assert os.path.getsize(done.json["output"]) < 3 << 20
    assert "{pids}" not in command or pids.read_text()
    for pid in pids.read_text().split() if pids.exists() else ():
        assert _state(pid) in ("", "Z"), "nothing that it started lives longer than it"
    trunk.nothing_left()


def test_during_a_halt_nothing_waits_for_its_turn_or_is_checked(world: World) -> None:
    trunk = Trunk(world, policy="[land]\n\tcheck = touch ../checked\n")
    trunk.branch("alice", {"a": "x\n"})
    assert world.person("halt", "-m", "stop").code == 0
    done = trunk.land("alice", "--wait", "2s")
    assert done.code == 1 and "everything was halted" in done.err and "queue" not in done.err, done
    assert not (trunk.top.parent / "checked").exists()


def test_a_branch_that_changes_the_check_is_checked_by_trunks(world: World) -> None:
    """Of an agent, such a branch is refused; a person may land it."""
    trunk = Trunk(world, policy=f"[land]\n\tcheck = touch {world.top}/.git/trunks && false\n")
    trunk.branch("alice", {})
    policy: dict[str, str | None] = {
        ".gitcoord/config": f"[land]\n\tcheck = touch {world.top}/.git/branchs\n",
        "new": "x\n",
    }
    trunk.commit("alice", policy, "a person's work")
    before = trunk.tip
    refused = trunk.land("alice", "--json")
    assert refused.code == 1 and refused.json["verdicts"][0]["rule"] == "own-files", refused
    assert not (world.top / ".git/trunks").exists(), "what is refused is not checked"
    done = world.person("land", "alice")
    assert done.code == 1 and "the check ended with 1" in done.out, done
    assert (world.top / ".git/trunks").exists() and not (world.top / ".git/branchs").exists()
    assert trunk.tip == before
    trunk.nothing_left()


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


@pytest.mark.parametrize(
    ("trunks", "branchs"),
    [("run", "run/file"), ("run/file", "run"), ("run/file/deep", "run/file"), ("tests/run", "tests")],
)
def test_a_guarded_file_in_the_place_of_a_directory(world: World, trunks: str, branchs: str) -> None:
    """The check runs with trunk's files, whatever the branch has in their place."""
    trunk = Trunk(world, policy=f"[land]\n\tguarded = {'tests/run' if 'tests' in trunks else 'run'}\n")
    world.commit({trunks: "trunk's\n"})
    trunk.branch("alice", {})
    git(trunk.tree("alice"), "rm", "-q", trunks)
    trunk.commit("alice", {branchs: "hers\n", "new": "x\n"})
    words = f'grep -q trunk {trunks} && test -z "$(find . -path ./{branchs} -type f -not -path ./{trunks})"'
    done = trunk.land("alice", "--check", words)
    assert done.code == 0, done
    assert trunk.show(branchs) == "hers"
    trunk.nothing_left()


def test_more_checks_than_a_landing_has_are_refused(world: World) -> None:
    """None of them is left out."""
    trunk = Trunk(world, policy="[land]\n" + 20 * "\tcheck = true\n")
    trunk.branch("alice", {"new": "x\n"})
    done = trunk.land("alice", "--check", "false")
    assert done.code == 2 and "at most 20 checks" in done.err and "checking" not in done.err, done
    world.commit({".gitcoord/config": (trunk.top / ".gitcoord/config").read_text() + "\tcheck = false\n"})
    judged = world.coord("policy", "check")
    assert judged.code == 4 and "land.check is there 21 times" in judged.err, judged
    before = trunk.tip
    done = trunk.land("alice")
    assert done.code == 4 and "land.check is there 21 times" in done.err, done
    assert trunk.tip == before
    assert world.claims() == []


def test_an_unguarded_file_is_taken_from_the_branch(world: World) -> None:
    trunk = Trunk(world, policy="[land]\n\tcheck = sh check.sh\n\tguarded = other missing\n")
    world.commit({"check.sh": "false\n"})
    trunk.branch("alice", {"check.sh": "true\n"})
    assert trunk.land("alice").code == 0


def test_a_check_that_trunk_gets_while_this_one_runs_counts(world: World) -> None:
    """A landing may wait long for its turn, and trunk have another policy by then."""
    trunk = Trunk(world)
    trunk.branch("alice", {"new": "x\n"})
    trunk.branch("policy", {".gitcoord/config": "[land]\n\tcheck = test -e wanted\n"})
    move = f"git -C {trunk.top} -c core.hooksPath=/dev/null merge -q --ff-only policy"
    done = trunk.land("alice", "--check", move, "--json")
    assert done.code == 1 and done.json["command"] == "test -e wanted", done
    assert trunk.tip == trunk.world.git("rev-parse", "policy"), "it has not landed"
    assert world.claims() == []


@pytest.mark.parametrize("live", [True, False])
def test_a_check_says_how_long_it_runs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], live: bool
) -> None:
    """At a terminal each second, in one line; elsewhere each minute. The turn is looked after as often as it asks for."""
    now, looked = [1000.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def look() -> float:
        looked.append(now[0] - 1000)
        return 10.0

    running = Running(Screen({}), "make test", 600, look, live=live)
    said = []
    while now[0] < 1065:
        said.append(capfd.readouterr().err)
        now[0] += min(running(), 7.0)
        assert now[0] <= 1070
    running.end()
    lines = [words.strip() for words in [*said, capfd.readouterr().err] if words]
    words = "of at most 10m: make test"
    if live:
        assert lines[:3] == [f"\x1b[Kchecking for {n}s {words}" for n in range(3)] and lines[-1].endswith("\x1b[K")
    else:
        assert lines == [f"checking for 1m {words}"]
    assert looked == pytest.approx([0, 10, 20, 30, 40, 50, 60], abs=1)


@pytest.mark.skipif(shutil.which("gpg") is None, reason="needs gpg")
def test_a_check_has_no_key_of_gpg(world: World) -> None:
    """gpg finds the agent of an account by its home, without any variable."""
    trunk, home = Trunk(world), tempfile.mkdtemp(prefix="gpg", dir="/tmp")  # the name of a socket is short
    trunk.branch("alice", {"new": "x\n"})
    make = ["gpg", "--batch", "--passphrase", "", "--pinentry-mode", "loopback", "--quick-gen-key", "alice"]
    environ = world.environ("alice", {"HOME": home})
    signs = "echo x | gpg --batch --pinentry-mode error --sign >/dev/null"
    try:
        subprocess.run(make, env=environ, check=True, capture_output=True)
        assert subprocess.run(["sh", "-c", signs], env=environ, check=False, capture_output=True).returncode == 0
        done = trunk.land("alice", "--check", f"! {signs}", env={"HOME": home})
        assert done.code == 0, done
        trunk.nothing_left()
    finally:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], env=environ, check=False)
        shutil.rmtree(home)
