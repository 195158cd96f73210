"""A fleet of scripted agents in work trees of one repository: how long all their work takes, and how much of it is done twice.

Each task is: think, then change one file (hold), test, commit, and bring it to trunk by a push that may be rejected. Times and files are
drawn from a seed, the same for each arm. The arms differ in what an agent does about the others:

- `free`: nothing. A push that is rejected is rebased; where the file was changed meanwhile, the work is done again.
- `lock`: a lock file for each path, tried again after a random time that grows with each try.
- `gitcoord`: `git claim --wait` and `git claim release`.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.measure import Failed, Result, Target
from tests.bench.place import Place

_HOT, _SPREAD = 3, 60
_SEED = 20


class Plan(NamedTuple):
    sizes: tuple[tuple[int, int], ...] = ((4, 4), (20, 3), (64, 1))  # agents, tasks of each
    longest: float = 1.0  # seconds of thinking, holding and testing, each from a fifth of this on


class Task(NamedTuple):
    path: str
    think: float
    hold: float
    test: float

    @property
    def work(self) -> float:
        return self.hold + self.test


class Spent(NamedTuple):
    """Seconds of one agent's tasks."""

    redone: float
    waited: float


class Arm:
    """The way in which agents treat each other. One for each run."""

    def __init__(self, place: Place, where: Path) -> None:
        self.place = place
        self.where = where

    def acquire(self, agent: Agent, path: str) -> None:
        """Before the work on a path."""

    def land(self, agent: Agent) -> bool:
        """Bring the work onto trunk; False where others changed the same lines, so that it has to be done again."""
        while not agent.git("push", "-q", ".", "HEAD:refs/heads/main", ok=False):
            if not agent.git("rebase", "-q", "main", ok=False):
                agent.git("rebase", "--abort")
                return False
        return True

    def release(self, agent: Agent, path: str) -> None:
        """After it has landed."""


class Lock(Arm):
    """Made by one call that fails where the file is there; full jitter, as is usual."""

    def acquire(self, agent: Agent, path: str) -> None:
        file, sleep = self.where / f"{path}.lock", agent.longest / 10
        while True:
            try:
                os.close(os.open(file, os.O_CREAT | os.O_EXCL))
                return
            except FileExistsError:
                time.sleep(agent.draw.random() * sleep)
                sleep = min(2 * sleep, 2 * agent.longest)

    def release(self, agent: Agent, path: str) -> None:
        (self.where / f"{path}.lock").unlink()


class Gitcoord(Arm):
    def acquire(self, agent: Agent, path: str) -> None:
        agent.git("claim", "-q", "--wait", "1h", path)

    def release(self, agent: Agent, path: str) -> None:
        agent.git("claim", "release", "-q", path)


ARMS: dict[str, type[Arm]] = {"free": Arm, "lock": Lock, "gitcoord": Gitcoord}


class Agent:
    """One agent in a work tree of its own."""

    def __init__(self, arm: Arm, number: int, tasks: Sequence[Task], longest: float) -> None:
        self.arm = arm
        self.name = f"agent{number}"
        self.longest = longest
        self.draw = random.Random(_SEED + number)
        self._tree = arm.where / self.name
        self._tasks = tasks
        self._env = {**arm.place.env, "GITCOORD_AGENT": self.name}
        arm.place.run(arm.where / "repo", "git", "worktree", "add", "-q", "--detach", str(self._tree), "main")

    def git(self, *words: str, ok: bool = True) -> bool:
        done = subprocess.run(
            ["git", *words], cwd=self._tree, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode and ok:
            raise Failed(f"{self.name}: git {' '.join(words)}: exit {done.returncode}: {done.stderr.strip()}")
        return not done.returncode

    def run(self, start: threading.Barrier) -> Spent:
        start.wait()
        redone = waited = 0.0
        for number, task in enumerate(self._tasks):
            time.sleep(task.think)
            asked = time.monotonic()
            self.arm.acquire(self, task.path)
            waited += time.monotonic() - asked
            self._work(task, number)
            while not self.arm.land(self):
                redone += task.work
                self._work(task, number)
            self.arm.release(self, task.path)
        return Spent(redone, waited)

    def _work(self, task: Task, number: int) -> None:
        self.git("reset", "-q", "--hard", "main")
        time.sleep(task.hold)
        with open(self._tree / task.path, "a") as file:
            file.write(f"{self.name} {number}\n")
        self.git("commit", "-q", "-a", "-m", f"{self.name} {number}")
        time.sleep(task.test)


class Run(NamedTuple):
    makespan: float
    redone: float  # of all agents, against the work that had to be done
    waited: float


def _tasks(agents: int, each: int, files: int, longest: float) -> list[list[Task]]:
    draw = random.Random(_SEED)

    def seconds() -> float:
        return draw.uniform(longest / 5, longest)

    return [
        [Task(f"file{draw.randrange(files)}.txt", seconds(), seconds(), seconds()) for _ in range(each)]
        for _ in range(agents)
    ]


def _run(place: Place, name: str, made: type[Arm], work: list[list[Task]], longest: float) -> Run:
    where = place.directory / f"fleet-{name}"
    repo = place.repository(f"fleet-{name}/repo", [f"file{n}.txt" for n in range(_SPREAD)])
    place.run(repo, "git", "checkout", "-q", "--detach")
    arm = made(place, where)
    agents = [Agent(arm, number, tasks, longest) for number, tasks in enumerate(work)]
    start = threading.Barrier(len(agents) + 1)
    with ThreadPoolExecutor(len(agents)) as pool:
        running = [pool.submit(agent.run, start) for agent in agents]
        start.wait()
        began = time.monotonic()
        spent = [each.result() for each in running]
        makespan = time.monotonic() - began
    landed = int(place.run(repo, "git", "rev-list", "--count", "main").strip()) - 1
    if landed != sum(map(len, work)):
        raise Failed(f"fleet {name}: {landed} of {sum(map(len, work))} tasks are on trunk")
    useful = sum(task.work for tasks in work for task in tasks)
    return Run(makespan, sum(each.redone for each in spent) / useful, sum(each.waited for each in spent) / useful)


def fleet(place: Place, plan: Plan) -> list[Result]:
    results = []
    for agents, each in plan.sizes:
        for shape, files in (("hot", _HOT), ("spread", _SPREAD)):
            work = _tasks(agents, each, files, plan.longest)
            runs = {
                name: _run(place, f"{agents}-{shape}-{name}", arm, work, plan.longest) for name, arm in ARMS.items()
            }
            results += _rows(agents, shape, files, runs)
    return results


def _rows(agents: int, shape: str, files: int, runs: dict[str, Run]) -> list[Result]:
    figures: dict[str, Any] = {f"{name} s": round(run.makespan, 1) for name, run in runs.items()}
    figures |= {f"{name} done again": f"{run.redone:.0%}" for name, run in runs.items() if run.redone}
    figures |= {f"{name} waited": f"{run.waited:.0%}" for name, run in runs.items() if name != "free"}
    what = f"{agents} agents on {files} files: until all work is on trunk, gitcoord"
    ours = runs["gitcoord"].makespan
    name = f"fleet-{agents}-{shape}"
    return [
        Result(name, f"{what} / a lock file with retry", ours / runs["lock"].makespan, Target(1), figures),
        Result(f"{name}-free", f"{what} / no coordination", ours / runs["free"].makespan, None, {}),
    ]
