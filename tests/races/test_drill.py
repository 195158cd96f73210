"""The drill: real processes take, work, crash, expire, hand over and release, until every task is done once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.races.support import DEADLINE, Project, keep_figures, long_timeout, soak, wait_until
from tests.support import ROOT

WEIGHTS = (60, 10, 8, 12, 10)  # of the fates in tasker.py
CRASH = 9  # how tasker.py ends in the middle of a task


class Drill:
    """So many workers at once; one that crashed is replaced by another under a new name."""

    def __init__(self, project: Project, workers: int, ttl: int) -> None:
        self.project = project
        self.ttl = ttl
        self.log = project.place / "drill.log"
        self.running = {f"w{number}.0": self.start(f"w{number}.0") for number in range(workers)}
        self.crashes = 0

    def start(self, name: str) -> subprocess.Popen[str]:
        options = {"root": str(ROOT), "name": name, "log": str(self.log), "ttl": self.ttl, "weights": WEIGHTS}
        argv = [sys.executable, "-I", "-S", str(Path(__file__).with_name("tasker.py")), json.dumps(options)]
        return subprocess.Popen(argv, cwd=self.project.repo, env=self.project.env, stderr=subprocess.PIPE, text=True)

    def ended(self) -> list[str]:
        return [name for name, process in self.running.items() if process.poll() is not None]

    def run(self, seconds: float) -> None:
        """Follow the workers in the order in which they end: one that waits to be lost needs the others."""
        try:
            while self.running:
                wait_until("a worker ends", lambda: bool(self.ended()), seconds)
                name = self.ended()[0]
                process = self.running.pop(name)
                _, err = process.communicate()
                assert process.returncode in (0, CRASH), f"{name}: {err}"
                if process.returncode == CRASH:
                    self.crashes += 1
                    base, _, life = name.rpartition(".")
                    again = f"{base}.{int(life) + 1}"
                    self.running[again] = self.start(again)
        finally:
            for process in self.running.values():
                process.kill()
                process.communicate()


@long_timeout
@pytest.mark.slow
def test_every_task_is_done_once(project: Project) -> None:
    count, workers = soak(24, 300), soak(4, 16)
    rows = [
        {
            "title": f"task {n}", "key": f"k{n}", "attempts": 1000, "paths": [f"src/{n % 7}"] if n % 3 else [],
            "needs": [f"k{n - 1}"] if n % 5 == 4 else [], "line": "api" if n % 11 == 0 else "",
        }
        for n in range(count)
    ]  # fmt: skip
    (project.place / "tasks.json").write_text(json.dumps(rows))
    assert project.coord("task", "add", "--from", str(project.place / "tasks.json"), "-q", agent="boss").code == 0
    began = time.monotonic()
    drill = Drill(project, workers, ttl=1)
    drill.run(soak(2, 20) * DEADLINE)
    tasks: list[Any] = project.coord("task", "list", "--all", "--json").json["tasks"]
    assert Counter(task["state"] for task in tasks) == {"done": count}
    said = [json.loads(line) for line in drill.log.read_text().splitlines()]
    finished = Counter(row["id"] for row in said if row["what"] == "finish")
    assert set(finished.values()) == {1} and set(finished) == {task["id"] for task in tasks}
    events = project.events()
    assert Counter(event["id"] for event in events if event["kind"] == "finish") == finished
    kinds = Counter(event["kind"] for event in events)
    told = Counter(row["what"] for row in said)
    assert kinds["handoff"] == told["hand over"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    project.assert_clean()
    # The drill is one only if all of that happened in it.
    assert drill.crashes and kinds["lapse"] and kinds["accept"] and told["give back"]
    figures = {
        "processes": workers, "tasks": count, "done": len(finished), "crashes": drill.crashes, "events": len(events),
        "lost owners": kinds["lapse"], "handed over": kinds["accept"], "given back": told["give back"],
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    keep_figures("drill of tasks", figures)


@long_timeout
def test_each_task_goes_to_exactly_one_asker(project: Project) -> None:
    """All workers only ask for tasks, at once, and there are more of them than processors."""
    count, workers = soak(40, 1000), soak(8, 32)
    rows = [{"title": f"task {n}", "priority": ("low", "high")[n % 2]} for n in range(count)]
    (project.place / "tasks.json").write_text(json.dumps(rows))
    assert project.coord("task", "add", "--from", str(project.place / "tasks.json"), "-q", agent="boss").code == 0
    script = 'while git-coord task next --json >> "$OUT"; do :; done'
    askers = [
        project.start("sh", "-c", script, agent=f"w{n}", env={"OUT": str(project.place / f"out{n}")})
        for n in range(workers)
    ]
    for asker in askers:
        asker.communicate(timeout=soak(2, 20) * DEADLINE)
    given = [
        answer["task"]["id"]
        for n in range(workers)
        for line in (project.place / f"out{n}").read_text().splitlines()
        if (answer := json.loads(line))["task"]
    ]
    assert sorted(given, key=lambda id: int(id[1:])) == [f"t{n + 2}" for n in range(count)]
    project.assert_clean()
