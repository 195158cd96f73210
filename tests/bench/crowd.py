"""Many processes at once, each claiming and releasing a path of its own: throughput, failures, fairness.

Time with one process and time with all of them take turns. Twice: with `git claim` itself, a new process for every
command as agents do it, and with long-lived processes that use the library.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import NamedTuple

from tests.bench.measure import Result, Target, read_text, spawn
from tests.bench.place import ROOT, Place

_PROGRESS = 0.8
_FAIR = 0.5


class Plan(NamedTuple):
    lanes: int
    turns: int
    alone_seconds: float
    seconds: float


class Turn(NamedTuple):
    """The grants and failures of one measured interval."""

    per_second: float
    grants: dict[int, int]
    failures: list[str]


def _file(lane: int) -> str:
    return f"src/part{lane % 8}/file{lane}.txt"


def _results(name: str, what: str, plan: Plan, alone: list[Turn], crowd: list[Turn]) -> list[Result]:
    one = statistics.median(turn.per_second for turn in alone)
    many = statistics.median(turn.per_second for turn in crowd)
    grants = {lane: sum(turn.grants[lane] for turn in crowd) for lane in range(plan.lanes)}
    failures = [words for turn in (*alone, *crowd) for words in turn.failures]
    most, least = max(grants.values()), min(grants.values())
    figures = {
        "turns": plan.turns,
        "one process pairs/s": round(one, 1),
        f"{plan.lanes} processes pairs/s": round(many, 1),
    }
    fairness = {"fewest grants": least, "most grants": most, "seconds": plan.seconds * plan.turns}
    note = failures[-1] if failures else ""
    return [
        Result(
            name,
            f"{plan.lanes} {what}: throughput / that of one",
            many / one,
            Target(_PROGRESS, at_most=False),
            figures,
        ),
        Result(f"{name}-failures", f"{plan.lanes} {what}: spurious failures", len(failures), Target(0), {}, note),
        Result(
            f"{name}-fairness",
            f"{plan.lanes} {what}: fewest / most grants",
            least / max(1, most),
            Target(_FAIR, at_most=False),
            fairness,
        ),
    ]


# --- through the installed command --------------------------------------------------------------------------------


def commands(place: Place, plan: Plan) -> list[Result]:
    where = place.repository("crowd", [_file(lane) for lane in range(plan.lanes)])
    os.chdir(where)
    lanes = [Lane(place, number) for number in range(plan.lanes)]
    _drive(lanes, 0)  # everybody's session is open
    alone, crowd = [], []
    for _ in range(plan.turns):
        alone.append(_drive(lanes[:1], plan.alone_seconds))
        crowd.append(_drive(lanes, plan.seconds))
    return _results("crowd", "`git claim` processes", plan, alone, crowd)


class Lane:
    """One agent: claim, release, claim, ... each a process of its own."""

    def __init__(self, place: Place, number: int) -> None:
        self.number = number
        self._env = {**place.env, "GITCOORD_AGENT": f"lane{number}"}
        self._errors = f"{place.errors}.{number}"
        self.holds = False

    def start(self) -> int:
        words = ("git", "claim", "release") if self.holds else ("git", "claim")
        return spawn((*words, _file(self.number)), self._env, self._errors)

    def ended(self, status: int) -> str:
        """'' where the command worked, else what it said."""
        if status:
            return f"lane {self.number}: exit {os.waitstatus_to_exitcode(status)}: {read_text(self._errors)}"
        self.holds = not self.holds
        return ""


def _drive(lanes: Sequence[Lane], seconds: float) -> Turn:
    """All lanes until the time is over; then everybody finishes its pair, uncounted. This process has no other children."""
    start = time.monotonic()
    running = {lane.start(): lane for lane in lanes}
    grants = {lane.number: 0 for lane in lanes}
    commands = 0
    failures: list[str] = []
    while running:
        pid, status = os.waitpid(-1, 0)
        lane = running.pop(pid)
        words = lane.ended(status)
        # On a busy machine a short time may end before the first command does: one counts in any case.
        in_time = time.monotonic() - start < seconds or (seconds > 0 and not commands and len(failures) < 100)
        if words:
            failures.append(words)
        elif in_time:
            commands += 1
            grants[lane.number] += lane.holds
        if in_time or (lane.holds and len(failures) < 100):
            running[lane.start()] = lane
    return Turn(commands / 2 / seconds if seconds else 0.0, grants, failures)


# --- through the library ------------------------------------------------------------------------------------------


def library(place: Place, plan: Plan) -> list[Result]:
    where = place.repository("crowd-library", [_file(lane) for lane in range(plan.lanes)])
    alone, crowd = [], []
    with _workers(place, where, plan.lanes) as workers:
        for _ in range(plan.turns):
            alone.append(_turn(workers[:1], plan.alone_seconds))
            crowd.append(_turn(workers, plan.seconds))
    return _results("crowd-library", "long-lived processes with the library", plan, alone, crowd)


@contextmanager
def _workers(place: Place, where: Path, lanes: int) -> Iterator[list[Popen[str]]]:
    env = {**place.env, "PYTHONPATH": str(ROOT)}
    with ExitStack() as stack:
        workers = []
        for lane in range(lanes):
            argv = [sys.executable, "-m", "tests.bench.worker", str(where), f"lane{lane}", _file(lane)]
            workers.append(stack.enter_context(Popen(argv, env=env, cwd=where, stdin=PIPE, stdout=PIPE, text=True)))
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        yield workers


def _turn(workers: Sequence[Popen[str]], seconds: float) -> Turn:
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{seconds}\n")
        worker.stdin.flush()
    answers = []
    for worker in workers:
        assert worker.stdout is not None
        answers.append(json.loads(worker.stdout.readline()))
    failures = [answer["words"] for answer in answers for _ in range(answer["failed"])]
    done = sum(answer["done"] for answer in answers)
    return Turn(done / seconds, {lane: answer["done"] for lane, answer in enumerate(answers)}, failures)
