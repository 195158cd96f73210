"""Many askers of one work queue: `git coord task next` and `task complete`, each a process of its own.

One asker and all of them take turns, until every task was handed out: each exactly once, or the benchmark fails.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from tests.bench.measure import Failed, Result, Target, read_text, spawn
from tests.bench.place import Place


class Plan(NamedTuple):
    askers: int = 32
    tasks: int = 1000
    turns: int = 4


class Asker:
    """next, complete, next, ... under a name of its own."""

    def __init__(self, place: Place, number: int, given: list[str]) -> None:
        self._env = {**place.env, "GITCOORD_AGENT": f"asker{number}"}
        self._out, self._errors = (f"{place.errors}.{kind}.{number}" for kind in ("out", "err"))
        self._given = given
        self._id = ""

    def start(self) -> int:
        words = ("task", "complete", self._id, "-m", "x", "--not-done", "none") if self._id else ("task", "next")
        return spawn(("git", "coord", *words, "--json"), self._env, self._errors, self._out)

    def ended(self, status: int) -> bool:
        """Was a task handed out?"""
        if status:
            raise Failed(f"exit {os.waitstatus_to_exitcode(status)}: {read_text(self._errors)} {read_text(self._out)}")
        if self._id:
            self._id = ""
            return False
        self._id = json.loads(read_text(self._out))["task"]["id"]
        self._given.append(self._id)
        return True

    @property
    def busy(self) -> bool:
        return bool(self._id)


def _drive(askers: Sequence[Asker], count: int) -> float:
    """Tasks handed out in a second, while all of them ask until so many are; then everybody finishes what it has."""
    begun = time.monotonic()
    running = {asker.start(): asker for asker in askers[:count]}
    started, done, end = len(running), 0, 0.0
    while running:
        pid, status = os.waitpid(-1, 0)
        asker = running.pop(pid)
        if asker.ended(status):
            done += 1
            end = time.monotonic() - begun if done == count else end
        if asker.busy or started < count:
            started += not asker.busy
            running[asker.start()] = asker
    return count / end


def next_task(place: Place, plan: Plan) -> list[Result]:
    where = place.repository("tasks", ["README"])
    os.chdir(where)
    rows = [{"title": f"task {number}"} for number in range(plan.tasks)]
    (where / "tasks.json").write_text(json.dumps(rows))
    place.run(
        where, "git", "coord", "task", "add", "-q", "--from", "tasks.json", env={**place.env, "GITCOORD_AGENT": "boss"}
    )
    given: list[str] = []
    askers = [Asker(place, number, given) for number in range(plan.askers)]
    # The crowd gets four tasks for each one of the asker alone.
    part = plan.tasks // (plan.turns * 5)
    alone, crowd = [], []
    for turn in range(plan.turns):
        alone.append(_drive(askers[:1], part))
        left = plan.tasks - len(given)
        crowd.append(_drive(askers, left if turn == plan.turns - 1 else part * 4))
    if sorted(given, key=lambda id: int(id[1:])) != [f"t{number + 2}" for number in range(plan.tasks)]:
        raise Failed("a task was handed out twice, or not at all")
    one, many = sum(alone) / len(alone), sum(crowd) / len(crowd)
    figures = {"turns": plan.turns, "one asker tasks/s": round(one, 1), f"{plan.askers} askers tasks/s": round(many, 1)}
    what = f"task next, {plan.askers} askers and {plan.tasks:,} tasks, each handed out once: throughput / that of one asker"
    return [Result("tasks", what, many / one, Target(0.5, at_most=False), figures)]
