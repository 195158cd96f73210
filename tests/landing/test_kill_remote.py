"""SIGKILL at any step of a landing at a remote: the task is done if and only if its commit is on trunk there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.test_kill_sweep import STRACE, WHY_NOT, Point, _killing
from tests.ledger.remote.support import Fleet, Machine

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-"),
    pytest.mark.timeout(300),
]
_POINTS = 8
_STEPS = ("vfork", "clone", "clone3", "rename", "wait4")


def _play(machine: Machine, tracer: list[str], task: str) -> int:
    """alice's landing under the tracer, until all its processes have ended."""
    program = shutil.which("git-coord", path=machine.env["PATH"]) or "git-coord"
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            [*tracer, program, "land", "topic", "--task", task], cwd=machine.repo,
            env={**machine.env, "GITCOORD_AGENT": "alice"}, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            pass_fds=(writer,), timeout=100,
        )  # fmt: skip
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        pipe.read()
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode


def _task(machine: Machine, number: int) -> str:
    """A task of alice's, and a branch with a new file."""
    task = machine.run("git-coord", "task", "add", f"do {number}", "--json", agent="alice").json["tasks"][0]["id"]
    assert machine.run("git-coord", "task", "take", task, agent="alice").code == 0
    machine.git("fetch", "-q")
    machine.git("switch", "-q", "-C", "topic", "origin/main")
    machine.commit({f"file{number}": "x\n"})
    return str(task)


def test_a_landing_at_a_remote_is_killed(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    one, two = fleet.joined()
    trace = tmp_path / "trace"
    assert _play(one, [STRACE, "-o", str(trace)], _task(one, 0)) == 0
    seen: Counter[str] = Counter()
    steps = []
    for line in trace.read_text(errors="replace").splitlines():
        call = re.match(r"(\w+)\(", line)
        if call:
            seen[call[1]] += 1
            steps += [Point(call[1], seen[call[1]])] if call[1] in _STEPS else []
    for number in range(1, _POINTS + 1):
        point = steps[round(number * (len(steps) - 1) / _POINTS)]
        task = _task(one, number)
        _play(one, _killing(point), task)
        state = two.run("git-coord", "task", "show", task, "--json", agent="bob").json["task"]["state"]
        there = f"file{number}" in fleet.git("ls-tree", "--name-only", "main")
        assert (state == "done") == there, f"killed at {point}"
        if not there:
            again = one.run("git-coord", "land", "topic", "--task", task, agent="alice")
            assert again.code == 0, f"killed at {point}: {again}"
        assert f"file{number}" in fleet.git("ls-tree", "--name-only", "main")
        assert two.claim("list", "--json").json["claims"] == [], f"killed at {point}"
    fleet.assert_sound()
