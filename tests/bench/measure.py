"""Timing whole processes and reporting ratios. Compared commands are interleaved in one run."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Samples = dict[str, list[float]]
Timed = Callable[[int], float]


class Failed(Exception):
    """A measured command did not do its work."""


def run_timed(argv: Sequence[str], env: Mapping[str, str], errors: str) -> float:
    """Seconds from spawn to end of one process in the current directory. Its exit code must be 0."""
    start = time.perf_counter()
    pid = spawn(argv, env, errors)
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise Failed(f"{' '.join(argv)}: exit {os.waitstatus_to_exitcode(status)}: {read_text(errors)}")
    return seconds


def spawn(argv: Sequence[str], env: Mapping[str, str], errors: str, out: str = os.devnull) -> int:
    """Start a process with nothing around it that would count: no shell, no pipes."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    return os.posix_spawnp(argv[0], list(argv), env, file_actions=actions)


def read_text(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read().strip()


def interleave(rounds: int, *phases: Mapping[str, Timed], warm: int = 1) -> Samples:
    """Run each step once a round, phase after phase, the order within a phase turning with the round (ABC, BCA, ...)."""
    samples: Samples = {name: [] for phase in phases for name in phase}
    os.sync()  # what was written to prepare it is not measured beside it
    for number in range(-warm if rounds > 1 else 0, rounds):  # one round times nothing
        for phase in phases:
            names = list(phase)
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                seconds = phase[name](number)
                if number >= 0:
                    samples[name].append(seconds)
    return samples


def p50(values: Sequence[float]) -> float:
    return statistics.median(values)


class Target(NamedTuple):
    """`at_most` or at least `value`."""

    value: float
    at_most: bool = True

    def met(self, ratio: float) -> bool:
        return ratio <= self.value if self.at_most else ratio >= self.value

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.value:g}"


class Result(NamedTuple):
    """One line of the report. `figures` are what the ratio was made of, with their unit in the name."""

    name: str
    what: str
    ratio: float
    target: Target | None
    figures: dict[str, Any]
    note: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.target.met(self.ratio)

    def as_json(self) -> dict[str, Any]:
        target = None if self.target is None else str(self.target)
        return {
            "name": self.name, "what": self.what, "ratio": round(self.ratio, 3), "target": target, "met": self.met,
            "figures": self.figures, "note": self.note,
        }  # fmt: skip


def compare(
    name: str,
    what: str,
    samples: Samples,
    one: str,
    other: str,
    target: Target | None,
    note: str = "",
) -> Result:
    """p50 of one against p50 of the other."""
    figures: dict[str, Any] = {"rounds": len(samples[one])}
    for key in (one, other):
        ordered = sorted(samples[key])
        figures[f"{key} p50 ms"] = round(p50(ordered) * 1000, 2)
        figures[f"{key} p10 ms"] = round(ordered[len(ordered) // 10] * 1000, 2)
        figures[f"{key} p90 ms"] = round(ordered[int(len(ordered) * 0.9)] * 1000, 2)
    return Result(name, what, p50(samples[one]) / p50(samples[other]), target, figures, note)
