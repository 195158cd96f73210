"""Landing: agents in clones of their own bring branches onto one trunk, by `git coord land` and by the loop that they would write themselves.

A third of the branches change one common file, each its own line. Both arms run the same check; its runs are counted.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import NamedTuple

from tests.bench.measure import Failed, Result, Target, compare, interleave
from tests.bench.place import Place
from tests.server.servers import serving

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
    lanes: int = 4


class Arm(NamedTuple):
    per_minute: float
    checks: int
    rejected: int
    overtaken: int  # requests in the queue, by all its grants together


def landing(place: Place, rounds: int, plan: Plan) -> list[Result]:
    results = [_uncontended(place, rounds, "file", 4.0), _uncontended(place, rounds, "ssh", 2.5)]
    for count in plan.agents:
        naive = _arm(place, count, plan.seconds, lanes=0)
        for lanes in (1, plan.lanes):
            results += _compared(count, plan.seconds, lanes, _arm(place, count, plan.seconds, lanes=lanes), naive)
    return results


def _compared(count: int, seconds: float, lanes: int, ours: Arm, naive: Arm) -> list[Result]:
    figures = {
        "landings/min": round(ours.per_minute, 1), "by the loop": round(naive.per_minute, 1), "checks": ours.checks,
        "checks of the loop": naive.checks, "rejected pushes of the loop": naive.rejected,
        "rejected pushes": ours.rejected, "overtaken": ours.overtaken,
    }  # fmt: skip
    if ours.rejected or ours.overtaken:
        raise Failed(f"{count} agents, {lanes} lanes: {ours.rejected} rejected pushes, {ours.overtaken} overtaken")
    how, name = ("one lane", f"land-{count}") if lanes == 1 else (f"{lanes} lanes", f"land-{count}-lanes")
    what = f"{count} agents land a branch each, check of {seconds:g} s, {how}"
    rate, checks = ours.per_minute / naive.per_minute, ours.checks / naive.checks
    target = Target(1.0 if lanes == 1 else 2.0, at_most=False)
    found = [Result(name, f"{what}: landings a minute / by a loop of one's own", rate, target, figures)]
    if lanes == 1:
        found += [
            Result(f"land-checks-{count}", f"{what}: checks / by a loop of one's own", checks, Target(0.25), figures)
        ]
    return found


def _uncontended(place: Place, rounds: int, kind: str, target: float) -> Result:
    """One commit on its own, without a check."""
    with serving(kind) as server:
        client = server.create("land").by("alice")
        env = {**place.env, **client.env, "PATH": place.env["PATH"]}
        tree = place.repository(f"land-{kind}", ["file"], ledger=False)
        place.run(tree, "git", "remote", "add", "origin", client.url, env=env)
        place.run(tree, "git", "push", "-q", "origin", "HEAD:main", env=env)
        place.run(tree, "git", "coord", "init", "--remote", "origin", env=env)

        def step(name: str, number: int) -> float:
            os.chdir(tree)
            place.run(tree, "git", "fetch", "-q", env=env)
            place.run(tree, "git", "switch", "-q", "-C", "topic", "origin/main")
            (tree / "file").write_text(f"{name} {number}\n")
            place.run(tree, "git", "commit", "-qam", "work")
            words = ("git", "coord", "land") if name == "land" else ("git", "push", "-q", "origin", "HEAD:main")
            return place.timed(*words, env=env)

        samples = interleave(rounds, {name: partial(step, name) for name in ("land", "push")})
    where = "a path" if kind == "file" else kind
    what = f"git coord land of one commit, no check / git push of it, over {where}"
    return compare("land-path" if kind == "file" else f"land-{kind}", what, samples, "land", "push", Target(target))


def _clones(place: Place, name: str, count: int, *, lanes: int) -> tuple[Path, list[Path]]:
    """A bare repository with a file of many lines, and clones that have joined its ledger where they land. `lanes`: 0 where they do not."""
    bare = place.directory / f"{name}.git"
    first = place.repository(f"{name}-first", ["file", "common"])
    (first / "common").write_text("".join(f"line {n}\n\n\n\n" for n in range(64)))
    if lanes > 1:
        (first / ".gitcoord").mkdir()
        (first / ".gitcoord/config").write_text(f"[land]\n\tlanes = {lanes}\n")
    place.run(first, "git", "add", "-A")
    place.run(first, "git", "commit", "-qm", "lines")
    place.run(first, "git", "clone", "-q", "--bare", "--single-branch", "--branch", "main", str(first), str(bare))
    trees = []
    for number in range(count):
        tree = place.directory / f"{name}-{number}"
        place.run(place.directory, "git", "clone", "-q", str(bare), str(tree))
        if lanes:
            place.run(tree, "git", "coord", "init", "--remote", "origin")
        trees.append(tree)
    return bare, trees


def _arm(place: Place, count: int, seconds: float, *, lanes: int) -> Arm:
    name = f"land-{count}-{lanes or 'loop'}"
    bare, trees = _clones(place, name, count, lanes=lanes)
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
    argv = ["git", "coord", "land", "--rebase", "--wait", "1h", "--check", check] if lanes else ["sh", "-c", _LOOP]
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
    found = json.loads(place.run(trees[0], "git", "coord", "contention", "--json")) if lanes else {"agents": []}
    overtaken = sum(row["overtaken"] for row in found["agents"])
    return Arm(count * 60 / took, len(ran.read_text().split()), lost, overtaken)
