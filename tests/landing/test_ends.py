"""The end of a check: by its timeout, or by a signal to the landing. Nothing that it started lives on, and the turn and the work tree are given back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.landing.support import Trunk
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
    check = _LEAVES.format(pids=pids, ready=f"echo >{ready}")
    with subprocess.Popen(
        [*COORD, "land", "--check", check], cwd=trunk.tree("alice"), env=world.environ("alice", {}),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as landing:  # fmt: skip
        ready.read_text()
        landing.send_signal(number)
        out, err = landing.communicate(timeout=60)
    assert landing.returncode == 130 and "interrupted: nothing was changed" in err, (landing.returncode, out, err)
    assert len(pids.read_text().split()) == 3 and _alive(pids) == []
    assert trunk.tip == before
    assert world.claims() == [] and "gitcoord/landing" not in world.git("worktree", "list")
    if lanes > 1:  # its place stays on record until the next landing, and counts no more
        assert trunk.land("alice", "--check", "true").code == 0
    trunk.nothing_left()
