"""`git coord watch`: how long after it was made a local event is delivered, and what waiting for the next one costs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from pathlib import Path

from tests.bench.measure import Failed, Result, Target
from tests.bench.place import Place

_DELIVERY_MS = 100
_SHARE = 0.01


def follow(place: Place, rounds: int, seconds: float) -> list[Result]:
    """Each event counts from the time that the file of the ledger's ref has, which is before anybody could see it."""
    where = place.repository("watched", ["a"])
    argv = ["git-coord", "watch", "--since", "1", "--json"]
    with subprocess.Popen(argv, cwd=where, env=place.env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            samples = [_delivery(place, where, process, number) for number in range(-2, rounds)][2:]
            idle = _idle(process.pid, seconds)
        finally:
            process.kill()
    late = sorted(samples)[max(0, -(-len(samples) * 95 // 100) - 1)] * 1000
    figures = {"rounds": rounds, "p50 ms": round(statistics.median(samples) * 1000, 2), "p95 ms": round(late, 2)}
    return [
        Result("watch", f"watch: a local event is delivered, p95 / {_DELIVERY_MS} ms", late / _DELIVERY_MS, Target(1), figures),
        Result(
            "watch-idle", "watch: idle, processor time / 1% of a core", idle / seconds / _SHARE, Target(1),
            {"seconds": seconds, "processor ms": round(idle * 1000, 2)},
        ),
    ]  # fmt: skip


def _delivery(place: Place, where: Path, process: subprocess.Popen[bytes], number: int) -> float:
    os.chdir(where)
    place.timed("git", "claim", "a", "--ttl", f"{1000 + number}s")
    assert process.stdout is not None
    made = os.stat(where / ".git/refs/heads/gitcoord").st_mtime_ns
    while True:
        line = process.stdout.readline()
        if not line:
            raise Failed("git coord watch has ended")
        if json.loads(line)["event"].get("ttl") == 1000 + number:
            return max(0.0, (time.time_ns() - made) / 1e9)


def _idle(pid: int, seconds: float) -> float:
    before = processor(pid)
    time.sleep(seconds)
    return processor(pid) - before


def processor(root: int) -> float:
    """Seconds of processor time of a process, of those below it and of those below it that ended."""
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            todo += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except FileNotFoundError:
            continue
        total += sum(int(word) for word in words[11:15])
    return total / os.sysconf("SC_CLK_TCK")
