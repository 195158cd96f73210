"""The end of a check: by its timeout, or by a signal to the landing. Nothing that it started lives on, and the turn and the work tree are given back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gitcoord.landing.cli_land import Command
from tests.cli.support import World
from tests.landing.support import Trunk
from tests.ledger.remote.support import Fleet
from tests.support import COORD

# Processes that leave the group of the check, and one that goes on starting such.
_LEAVES = "for n in 1 2 3; do setsid sleep 5577 & echo $! >>{pids}; done; {ready}; sleep 5577"
_FORKS = "(while :; do setsid sleep 5577 & echo $! >>{pids}; sleep 0.01; done) & {ready}; sleep 5577"
_RUN = """
import sys
from gitcoord.git.long_process import run_check
from gitcoord.git.process import environ
from gitcoord.sessions.cli_supervisor import become_subreaper
become_subreaper()
for number in range(12):
    code, _ = run_check(sys.argv[1], "/", dict(environ), 0.1, lambda: 1.0)
    assert code is None, code
    print("ended", flush=True)
    sys.stdin.readline()
"""

_EARLY = """
import os, signal, sys
from gitcoord.git import long_process
from gitcoord.git.process import Child, environ
class Early(Child):
    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        os.kill(os.getpid(), int(sys.argv[1]))
long_process.Child = Early
signal.signal(int(sys.argv[1]), signal.default_int_handler)
try:
    long_process.run_check("sleep 5577", "/", dict(environ), 60, lambda: 1.0)
except KeyboardInterrupt:
    print(long_process.descendants(os.getpid()))
"""


def _alive(pids: Path) -> list[str]:
    """Those of these processes that have not ended."""
    found = []
    for pid in pids.read_text().split():
        stat = Path(f"/proc/{pid}/stat")
        try:
            state = stat.read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [pid] if state not in "ZX" else []
    return found


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """A file with the numbers of processes, none of which outlives the test."""
    file = tmp_path / "pids"
    file.write_text("")
    yield file
    for pid in _alive(file):
        os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("command", [_LEAVES, _FORKS])
def test_nothing_lives_longer_than_a_check_that_took_too_long(pids: Path, command: str) -> None:
    argv = [sys.executable, "-c", _RUN, command.format(pids=pids, ready=":")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdin is not None and runner.stdout is not None
        for _ in range(12):
            assert runner.stdout.readline() == "ended\n"
            assert pids.read_text() and _alive(pids) == []
            runner.stdin.write("\n")
            runner.stdin.flush()
    assert runner.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_moment_in_which_a_check_starts(number: signal.Signals) -> None:
    done = subprocess.run([sys.executable, "-c", _EARLY, str(int(number))], capture_output=True, check=False, text=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_landing_that_is_ended_during_its_check(
    world: World, pids: Path, tmp_path: Path, number: signal.Signals, lanes: int
) -> None:
    trunk = Trunk(world, policy=f"[land]\n\tlanes = {lanes}\n")
    trunk.branch("alice", {"new": "x\n"})
    before = trunk.tip
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    trees = world.top / ".git/gitcoord/landing/trees"
    check = _LEAVES.format(pids=pids, ready=f"echo >{ready}")
    with subprocess.Popen(
        [*COORD, "land", "--check", check], cwd=trunk.tree("alice"), env=world.environ("alice", {}),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as landing:  # fmt: skip
        ready.read_text()
        landing.send_signal(number)
        while any(tree.is_dir() for tree in trees.iterdir()) and landing.poll() is None:
            pass
        landing.send_signal(number)  # as a terminal that goes away: again, while it cleans up
        out, err = landing.communicate(timeout=60)
    assert landing.returncode == 130 and "interrupted: nothing was changed" in err, (landing.returncode, out, err)
    assert len(pids.read_text().split()) == 3 and _alive(pids) == []
    assert trunk.tip == before
    assert world.claims() == [] and "gitcoord/landing" not in world.git("worktree", "list")
    if lanes > 1:  # its place stays on record until the next landing, and counts no more
        assert trunk.land("alice", "--check", "true").code == 0
    trunk.nothing_left()


_ENDS = "kill -{number} $(cut -d' ' -f1 {place}/.git/gitcoord/landing/alice.lock)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_landing_that_is_ended_after_trunk_has_moved(world: World, number: signal.Signals) -> None:
    """The work tree that has trunk checked out follows then, and git runs this filter for it."""
    trunk = Trunk(world, marks="new filter=ends\n")
    trunk.branch("alice", {"new": "x\n"})
    world.git("config", "filter.ends.smudge", f"{_ENDS.format(number=int(number), place=world.top)}; cat")
    done = trunk.land("alice")
    assert done.code == 0 and "landed alice on main" in done.out, done
    assert "interrupted" not in done.err
    assert (world.top / "new").read_text() == "x\n"
    trunk.nothing_left()


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_landing_that_is_ended_while_the_remote_moves_trunk(
    fleet: Fleet, number: signal.Signals, atomic: bool
) -> None:
    one = fleet.joined()[0]
    one.git("config", "gitcoord.atomic", str(atomic).lower())
    one.git("switch", "-q", "-c", "alice", "origin/main")
    one.commit({"new": "x\n"})
    hook = fleet.bare / "hooks/post-receive"
    ends = _ENDS.format(number=int(number), place=one.repo)
    hook.write_text(f"#!/bin/sh\nwhile read -r _ _ ref; do test $ref != refs/heads/main || {ends}; done\n")
    hook.chmod(0o755)
    done = one.run("git-coord", "land", agent="alice")
    assert done.code == 0 and "landed alice on " in done.out, done
    assert "interrupted" not in done.err
    assert fleet.git("show", "main:new") == "x\n" and len(fleet.events("land")) == 1
    assert one.claim("list", "--json").json["claims"] == []


@pytest.mark.parametrize("landed", [True, False])
def test_an_interruption_says_whether_it_has_landed(landed: bool) -> None:
    """Such as one while the event after trunk has moved is tried again, which is not deferred."""

    def interrupted(**_: Any) -> int:
        raise KeyboardInterrupt

    command: Any = SimpleNamespace(
        _run=interrupted, _landing=SimpleNamespace(landed=landed), _order=SimpleNamespace(branch="topic", trunk="main")
    )
    with pytest.raises(KeyboardInterrupt) as told:
        Command.run(command)
    assert ("topic has landed on main" in str(told.value)) == landed
