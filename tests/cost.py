"""Cost of a command, counted and never timed: calls inside gitcoord's own processes, and processes they start."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support import ROOT

# As the installed commands start; what was called is noted when they leave.
_COUNTED = """
import cProfile, posix, sys
sys.path.insert(0, {root!r})
sys.path.append({libraries!r})
profile, leave = cProfile.Profile(), posix._exit

def note(code):
    profile.disable()
    rows = profile.getstats()
    started = sum(row.callcount for row in rows if "posix_spawn" in str(row.code))
    with open({log!r}, "a") as file:
        file.write("%d %d\\n" % (sum(row.callcount for row in rows), started))
    leave(code)

posix._exit = note
from gitcoord.cli.entry import {function} as entry
profile.runcall(entry)
"""
# What is said in a handoff.
SECTIONS = ("--state", "half done", "--changed", "the parser", "--remaining", "the tests", "--next", "write them")
SIZES = (20, 40, 80)  # more than the number of paths from which on many are read at once


class Cost(NamedTuple):
    calls: int
    children: int


class Counter:
    """Commands that write down what they cost."""

    def __init__(self, place: Path) -> None:
        self._log = place / "costs"

    def argv(self, command: str) -> list[str]:
        known = {"root": str(ROOT), "libraries": sysconfig.get_path("purelib"), "log": str(self._log)}
        return [sys.executable, "-I", "-S", "-c", _COUNTED.format(**known, function=command.removeprefix("git-"))]

    def program(self, path: Path) -> None:
        """A `git-claim` that is counted, for hooks."""
        path.write_text(f'#!/bin/sh\nexec {shlex.join(self.argv("git-claim"))} "$@"\n')
        path.chmod(0o755)

    def taken(self) -> Cost:
        """Return the cost of all commands since the last call."""
        rows = [line.split() for line in self._log.read_text().splitlines()]
        self._log.unlink()
        assert rows, "nothing was counted"
        return Cost(sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows))


def assert_linear(costs: list[Cost], what: str) -> None:
    """Assert that of three sizes, each twice the one before, the second step costs about twice the first.

    The processes that are started do not depend on the size at all.
    """
    small, middle, large = (cost.calls for cost in costs)
    assert large - middle < 2.3 * (middle - small), f"{what}: {costs}"
    assert costs[2].children <= costs[0].children + 3, f"{what}: {costs}"


def assert_each_is_linear(
    place: Path, run: Callable[[Path, int], dict[str, Cost]], sizes: tuple[int, int, int] = SIZES
) -> None:
    """Assert that the cost of `run` is linear in the number of paths, each in a directory of its own."""
    found = []
    for size in sizes:
        (place / str(size)).mkdir()
        found.append(run(place / str(size), size))
    for name in found[0]:
        assert_linear([costs[name] for costs in found], name)
