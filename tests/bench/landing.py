"""Landing: agents in clones of their own bring branches onto one trunk, by `git coord land` and by the loop that they would write themselves.

A third of the branches change one common file, each its own line. Both arms run the same check; its runs are counted.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import NamedTuple

from tests.bench.measure import Failed, Result, Target, compare, interleave
from tests.bench.place import Place

# Fetch, rebase, check, push; again, after a random pause, where somebody was quicker.
_LOOP = """
while :; do
    git fetch -q && git rebase -q origin/main || exit 1
    sh -c "$CHECK" || exit 1
    git push -q origin HEAD:main 2>/dev/null && exit 0
    echo rejected >>"$REJECTED"
    sleep "0.$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')"
done
"""


class Plan(NamedTuple):
    agents: tuple[int, ...] = (8, 32)
    seconds: float = 1.0  # of the check


class Arm(NamedTuple):
    per_minute: float
    checks: int
    rejected: int


def landing(place: Place, rounds: int, plan: Plan) -> list[Result]:
    results = _uncontended(place, rounds)
    for count in plan.agents:
        naive, ours = (_arm(place, count, plan.seconds, lands=lands) for lands in (False, True))
        figures = {
            "landings/min": round(ours.per_minute, 1), "by the loop": round(naive.per_minute, 1), "checks": ours.checks,
            "checks of the loop": naive.checks, "rejected pushes of the loop": naive.rejected,
        }  # fmt: skip
        what = f"{count} agents land a branch each, check of {plan.seconds:g} s, one lane"
        results += [
            Result(f"land-{count}", f"{what}: landings a minute / by a loop of one's own", ours.per_minute / naive.per_minute, Target(1.0, at_most=False), figures),
            Result(f"land-checks-{count}", f"{what}: checks / by a loop of one's own", ours.checks / naive.checks, Target(0.25), figures),
        ]  # fmt: skip
    return results


def _uncontended(place: Place, rounds: int) -> list[Result]:
    """One commit on its own, without a check, over a path."""
    _, (tree,) = _clones(place, "land-one", 1, lands=True)

    def step(name: str, number: int) -> float:
        os.chdir(tree)
        place.run(tree, "git", "fetch", "-q")
        place.run(tree, "git", "switch", "-q", "-C", "topic", "origin/main")
        (tree / "file").write_text(f"{name} {number}\n")
        place.run(tree, "git", "commit", "-qam", "work")
        return place.timed(
            *(("git", "coord", "land") if name == "land" else ("git", "push", "-q", "origin", "HEAD:main"))
        )

    steps = {name: partial(step, name) for name in ("land", "push")}
    samples = interleave(rounds, steps)
    what = "git coord land of one commit, no check / git push of it, over a path"
    return [compare("land-path", what, samples, "land", "push", Target(4.0))]


def _clones(place: Place, name: str, count: int, *, lands: bool) -> tuple[Path, list[Path]]:
    """A bare repository with a file of many lines, and clones that have joined its ledger where they land."""
    bare = place.directory / f"{name}.git"
    first = place.repository(f"{name}-first", ["file", "common"])
    (first / "common").write_text("".join(f"line {n}\n\n\n\n" for n in range(64)))
    place.run(first, "git", "commit", "-qam", "lines")
    place.run(first, "git", "clone", "-q", "--bare", "--single-branch", "--branch", "main", str(first), str(bare))
    trees = []
    for number in range(count):
        tree = place.directory / f"{name}-{number}"
        place.run(place.directory, "git", "clone", "-q", str(bare), str(tree))
        if lands:
            place.run(tree, "git", "coord", "init", "--remote", "origin")
        trees.append(tree)
    return bare, trees


def _arm(place: Place, count: int, seconds: float, *, lands: bool) -> Arm:
    name = f"land-{count}-{'ours' if lands else 'loop'}"
    bare, trees = _clones(place, name, count, lands=lands)
    ran, rejected = place.directory / f"{name}.checks", place.directory / f"{name}.rejected"
    check = f"echo run >>{ran}; sleep {seconds}"
    for number, tree in enumerate(trees):
        place.run(tree, "git", "switch", "-q", "-c", f"topic{number}")
        if number % 3 == 0:
            common = tree / "common"
            common.write_text(common.read_text().replace(f"line {number}\n", f"line {number} changed\n"))
        (tree / f"own{number}").write_text("x\n")
        place.run(tree, "git", "add", "-A")
        place.run(tree, "git", "commit", "-qm", f"work {number}")
    argv = ["git", "coord", "land", "--rebase", "--wait", "1h", "--check", check] if lands else ["sh", "-c", _LOOP]
    env = {**place.env, "CHECK": check, "REJECTED": str(rejected)}
    start = time.monotonic()
    running = [
        Popen(argv, cwd=tree, env={**env, "GITCOORD_AGENT": f"agent{n}"}, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
        for n, tree in enumerate(trees)
    ]
    for process in running:
        _, err = process.communicate()
        if process.returncode:
            raise Failed(f"{name}: exit {process.returncode}: {err.decode(errors='replace')[-500:]}")
    took = time.monotonic() - start
    there = place.run(bare, "git", "ls-tree", "--name-only", "main").split()
    if any(f"own{number}" not in there for number in range(count)):
        raise Failed(f"{name}: work was lost")
    lost = len(rejected.read_text().split()) if rejected.exists() else 0
    return Arm(count * 60 / took, len(ran.read_text().split()), lost)
