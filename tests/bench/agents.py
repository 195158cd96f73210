"""A fleet of scripted agents in work trees of one repository: how long all their work takes, and how much of it is done twice.

Each task is: think, then add a line to one file (hold), test, commit, and bring it to trunk. Times and files are drawn from a seed, the
same for each arm. Each arm runs as often as the others, in turning order. The arms differ in what an agent does about the others:

- `free`: nothing. A push that is rejected is rebased; where the file was changed meanwhile, the work is done again.
- `merge`: the same, but where the file was changed meanwhile it takes both lines, and does not test again.
- `lock`: a lock file for each path, tried again after a random time that grows with each try.
- `gitcoord`: `git claim --wait` before the work and `git claim release` after it has landed.
- `landing`: no claim before; the files are marked `gitcoord-claim=landing`, and `git coord land` brings the work to trunk. A conflict is
  resolved in its turn by taking both lines, without another test, as in `merge`.
"""

from __future__ import annotations

import os
import random
import shutil
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
_MARKERS = ("<<<<<<<", "=======", ">>>>>>>")


class Plan(NamedTuple):
    sizes: tuple[tuple[int, int], ...] = ((4, 3), (20, 2), (64, 1))  # agents, tasks of each
    rounds: int = 2
    longest: float = 3.0  # seconds of thinking, holding and testing, each from a fifth of this on
    files: tuple[int, ...] = (_HOT, _SPREAD)
    arms: tuple[str, ...] = ("free", "merge", "lock", "gitcoord", "landing")


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

    attributes = ""

    def __init__(self, place: Place, where: Path) -> None:
        self.place = place
        self.where = where
        self.resolved = 0  # conflicts, by taking both sides

    def acquire(self, agent: Agent, path: str) -> None:
        """Before the work on a path."""

    def land(self, agent: Agent, path: str) -> bool:
        """Bring the work onto trunk; False where others changed the same lines, so that it has to be done again."""
        while not agent.git("push", "-q", ".", "HEAD:refs/heads/main", ok=False):
            if not agent.git("rebase", "-q", "main", ok=False) and not self.resolve(agent, path):
                return False
        return True

    def resolve(self, agent: Agent, path: str) -> bool:
        """A rebase stands there with a conflict."""
        agent.git("rebase", "--abort")
        return False

    def release(self, agent: Agent, path: str) -> None:
        """After it has landed."""


class Merge(Arm):
    def resolve(self, agent: Agent, path: str) -> bool:
        agent.take_both(path)
        agent.git("-c", "core.editor=true", "rebase", "--continue")
        return True


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


class Landing(Arm):
    attributes = "*.txt gitcoord-claim=landing\n"

    def land(self, agent: Agent, path: str) -> bool:
        words = ["--rebase", "--wait", "1h"]
        while not agent.git("coord", "land", *words, ok=False):
            if path not in agent.read("diff", "--name-only", "--diff-filter=U"):
                agent.git("coord", "land", *words)  # no conflict: it fails as it failed
                break
            agent.take_both(path)
            words = ["--continue"]
        return True


ARMS: dict[str, type[Arm]] = {"free": Arm, "merge": Merge, "lock": Lock, "gitcoord": Gitcoord, "landing": Landing}


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
        arm.place.run(arm.where / "repo", "git", "worktree", "add", "-q", "-b", self.name, str(self._tree), "main")

    def git(self, *words: str, ok: bool = True) -> bool:
        done = subprocess.run(
            ["git", *words], cwd=self._tree, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode and ok:
            raise Failed(f"{self.name}: git {' '.join(words)}: exit {done.returncode}: {done.stderr.strip()}")
        return not done.returncode

    def read(self, *words: str) -> list[str]:
        return self.arm.place.run(self._tree, "git", *words, env=self._env).split()

    def take_both(self, path: str) -> None:
        """Resolve a conflict in this file: the lines of both sides stay."""
        file = self._tree / path
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if not line.startswith(_MARKERS)))
        self.git("add", path)
        self.arm.resolved += 1

    def run(self, start: threading.Barrier) -> Spent:
        start.wait()
        redone = waited = 0.0
        for number, task in enumerate(self._tasks):
            time.sleep(task.think)
            asked = time.monotonic()
            self.arm.acquire(self, task.path)
            waited += time.monotonic() - asked
            self._work(task, number)
            while not self.arm.land(self, task.path):
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
    resolved: int


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
    (repo / ".gitattributes").write_text(made.attributes)
    place.run(repo, "git", "add", ".gitattributes")
    place.run(repo, "git", "commit", "-q", "-m", "attributes")
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
    lines = [f"agent{agent} {number}" for agent, tasks in enumerate(work) for number in range(len(tasks))]
    there = place.run(repo, "git", "grep", "-h", "^agent", "main").splitlines()
    if sorted(there) != sorted(lines):
        raise Failed(f"fleet {name}: {len(there)} of {len(lines)} tasks are on trunk, or some twice")
    useful = sum(task.work for tasks in work for task in tasks)
    redone, waited = (sum(getattr(each, key) for each in spent) / useful for key in Spent._fields)
    shutil.rmtree(where)
    return Run(makespan, redone, waited, arm.resolved)


def fleet(place: Place, plan: Plan) -> list[Result]:
    results = []
    for agents, each in plan.sizes:
        for files in plan.files:
            shape = "hot" if files == _HOT else "spread"
            work = _tasks(agents, each, files, plan.longest)
            runs: dict[str, list[Run]] = {name: [] for name in plan.arms}
            for number in range(plan.rounds):
                turn = number % len(plan.arms)
                names = plan.arms[turn:] + plan.arms[:turn]
                for name in names if number % 2 else reversed(names):
                    where = f"{agents}-{shape}-{name}-{number}"
                    runs[name].append(_run(place, where, ARMS[name], work, plan.longest))
            results += _rows(agents, shape, files, runs)
    return results


def _rows(agents: int, shape: str, files: int, runs: dict[str, list[Run]]) -> list[Result]:
    mean = {name: sum(run.makespan for run in some) / len(some) for name, some in runs.items()}
    figures: dict[str, Any] = {f"{name} s": round(seconds, 1) for name, seconds in mean.items()}
    figures |= {f"{name} done again": f"{some[0].redone:.0%}" for name, some in runs.items() if some[0].redone}
    figures |= {f"{name} waited": f"{runs[name][0].waited:.0%}" for name in ("lock", "gitcoord") if name in runs}
    figures |= {f"{name} conflicts": some[0].resolved for name, some in runs.items() if some[0].resolved}
    what = f"{agents} agents on {files} files: until all work is on trunk"
    name = f"fleet-{agents}-{shape}"

    hot = Target(1) if files == _HOT else None
    compared: list[tuple[str, str, str, str, Target | None]] = [
        ("", "gitcoord / a lock file with retry", "gitcoord", "lock", Target(1)),
        ("-free", "gitcoord / no coordination", "gitcoord", "free", None),
        ("-landing", "claimed when it lands / no coordination", "landing", "free", hot),
        ("-merge", "claimed when it lands / no coordination, both lines taken", "landing", "merge", None),
    ]
    return [
        Result(name + suffix, f"{what}, {words}", mean[one] / mean[other], target, figures)
        for suffix, words, one, other, target in compared
        if one in mean and other in mean
    ]
