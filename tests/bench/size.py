"""One claim in a large ledger against one in a small ledger: many live claims, many past events."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.build import (
    Views,
    flat_paths,
    is_fresh,
    settle,
    spread_paths,
    with_claims,
    with_contention,
    with_events,
    with_journal,
    with_views,
)
from tests.bench.measure import Result, Target, compare, interleave, p50
from tests.bench.place import Place, empty_repository

_FEW = 10
_SHORT = 100


def repository(place: Place, cache: Path, name: str, build: Callable[[Path], None]) -> Path:
    where = cache / name
    if not is_fresh(where):
        start = time.monotonic()
        build(where)
        checked = place.run(where, "git", "coord", "fsck")
        print(
            f"  built {name} in {time.monotonic() - start:.0f} s; fsck: {checked.strip()}", file=sys.stderr, flush=True
        )
    settle(place, where)
    return where


def _claims(place: Place, cache: Path, rounds: int, many: int, shape: str, paths: list[str]) -> tuple[Path, Path]:
    small = [paths[n] for n in sorted(random.Random(1).sample(range(len(paths)), _FEW))]
    return (
        repository(place, cache, f"{shape}-{_FEW}", lambda where: with_claims(place, where, small)),
        repository(place, cache, f"{shape}-{many}", lambda where: with_claims(place, where, paths)),
    )


def _measure(place: Place, rounds: int, few: Path, many: Path, directories: list[str]) -> dict[str, list[float]]:
    """A fresh path each round, beside claimed ones; given back untimed."""
    run = int(time.time())
    draw = random.Random(3)
    chosen = [f"{draw.choice(directories)}/new-{run}-{n}" for n in range(rounds + 2)]

    def claim(where: Path, number: int) -> float:
        os.chdir(where)
        seconds = place.timed("git", "claim", "--", chosen[number])
        place.timed("git", "claim", "release", chosen[number])
        return seconds

    return interleave(rounds, {"few": lambda n: claim(few, n), "many": lambda n: claim(many, n)}, warm=2)


def _directories(paths: list[str]) -> list[str]:
    return sorted({path.rpartition("/")[0] for path in paths})


def spread(place: Place, cache: Path, rounds: int, many: int) -> list[Result]:
    paths = spread_paths(many)
    few, lots = _claims(place, cache, rounds, many, "spread", paths)
    samples = _measure(place, rounds, few, lots, _directories(paths))
    what = f"git claim with {many:,} live claims in {len(_directories(paths)):,} directories / with {_FEW}"
    return [compare("spread", what, samples, "many", "few", Target(1.3), "both after git gc")]


def flat(place: Place, cache: Path, rounds: int, many: int) -> list[Result]:
    paths = flat_paths(many)
    few, lots = _claims(place, cache, rounds, many, "flat", paths)
    samples = _measure(place, rounds, few, lots, _directories(paths))
    what = f"git claim with {many:,} live claims in one directory / with {_FEW}"
    return [compare("flat", what, samples, "many", "few", Target(1.5), "both after git gc")]


def events(place: Place, cache: Path, rounds: int, long: int) -> list[Result]:
    few = repository(place, cache, f"events-{_SHORT}", lambda where: with_events(place, where, _SHORT))
    lots = repository(place, cache, f"events-{long}", lambda where: with_events(place, where, long))
    samples = _measure(place, rounds, few, lots, _directories(spread_paths(500)))
    what = f"git claim with {long:,} events in the ledger / with {_SHORT}"
    return [compare("events", what, samples, "many", "few", Target(1.2), "both after git gc")]


def why(place: Place, cache: Path, rounds: int, long: int) -> list[Result]:
    """Time `why` for a path that was claimed once: all other events are about others."""
    few = repository(place, cache, f"events-{_SHORT}", lambda where: with_events(place, where, _SHORT))
    lots = repository(place, cache, f"events-{long}", lambda where: with_events(place, where, long))
    path = spread_paths(500)[0]

    def tell(where: Path) -> float:
        os.chdir(where)
        return place.timed("git", "coord", "why", path)

    def walk(where: Path) -> float:
        os.chdir(where)
        return place.timed("git", "log", "--format=%s", "gitcoord", "--")

    steps = {"few": lambda n: tell(few), "many": lambda n: tell(lots), "log": lambda n: walk(lots)}
    samples = interleave(max(2, rounds // 4), steps)
    what = f"git coord why with {long:,} events about others"
    return [
        compare("why", f"{what} / with {_SHORT}", samples, "many", "few", Target(3), "both after git gc"),
        compare("why-log", f"{what} / git log --format=%s of the ledger", samples, "many", "log", Target(2)),
    ]


def contention(place: Place, cache: Path, rounds: int, events: int) -> list[Result]:
    """Time the figures of contention of a whole ledger: for the first time, and again."""
    where = repository(place, cache, f"contention-{events}", lambda where: with_contention(place, where, events))
    os.chdir(where)

    def count(number: int) -> float:
        return place.timed("git", "coord", "contention", "--since", "1")

    first = count(0)
    slowest = max(interleave(max(2, rounds // 4), {"contention": count})["contention"], default=first)
    what = f"git coord contention of {events:,} events / 3 s"
    figures = {"first s": round(first, 2), "slowest s": round(slowest, 2)}
    return [Result("contention", what, max(first, slowest) / 3, Target(1), figures)]


def journal(place: Place, cache: Path, rounds: int, long: int) -> list[Result]:
    few = repository(place, cache, f"journal-{_SHORT}", lambda where: with_journal(place, where, _SHORT))
    lots = repository(place, cache, f"journal-{long}", lambda where: with_journal(place, where, long))

    def append(where: Path) -> float:
        os.chdir(where)
        return place.timed("git", "coord", "journal", "add", "-q", "-m", "one more entry")

    samples = interleave(rounds, {"few": lambda n: append(few), "many": lambda n: append(lots)}, warm=2)
    what = f"git coord journal add with {long:,} entries / with {_SHORT}"
    return [compare("journal", what, samples, "many", "few", Target(1.2), "both after git gc")]


# The first ones print all that there is, and grow with it; the others print little.
_OF_ALL = ("claim list", "coord status", "coord task list", "coord agents")
_OF_ONE = ("claim list --mine", "coord start", "coord sweep")


def overview(place: Place, cache: Path, rounds: int) -> list[Result]:
    """Time `status` in a ledger of usual size, against a bare interpreter."""
    size = Views(claims=200, agents=50, tasks=100, events=500)
    where = repository(place, cache, f"overview-{size.events}", lambda where: with_views(place, where, size))
    os.chdir(where)
    steps = {"status": lambda _: place.timed("git", "coord", "status"), "python": lambda _: place.bare_python()}
    samples = interleave(rounds, steps, warm=2)
    what = (
        f"git coord status with {size.claims} claims, {size.agents} agents, {size.tasks} tasks / python3 -I -S -c pass"
    )
    return [compare("overview", what, samples, "status", "python", Target(6))]


def views(place: Place, cache: Path, rounds: int, many: Views) -> list[Result]:
    """Time the views in a large ledger, and in one with a tenth of it."""
    few = Views(*(number // 10 for number in many))
    small = repository(place, cache, f"views-{few.events}", lambda where: with_views(place, where, few))
    large = repository(place, cache, f"views-{many.events}", lambda where: with_views(place, where, many))

    def show(where: Path, words: str) -> float:
        os.chdir(where)
        return place.timed("git", *words.split(" "))

    found = []
    for words in (*_OF_ALL, *_OF_ONE):
        steps = {"few": lambda n, w=words: show(small, w), "many": lambda n, w=words: show(large, w)}
        samples = interleave(max(2, rounds // 8), steps, warm=1)
        what = f"git {words} with {many.claims:,} claims of {many.agents} agents, {many.tasks:,} tasks, {many.events:,} events / a tenth"
        target = Target(10) if words in _OF_ALL else Target(3)
        name = f"views-{words.replace(' --', '-').replace(' ', '-')}"
        found.append(compare(name, what, samples, "many", "few", target, "both after git gc"))
    return found


_SECONDS = {"doctor": 1.5, "audit": 5, "setup": 3}


def checks(place: Place, cache: Path, rounds: int, files: int) -> list[Result]:
    """Time `doctor`, `audit` and a repeated `setup`, which ends with doctor's short form, in a project of many files."""
    where = cache / f"files-{files}"
    empty_repository(place, where, ["README"])
    place.run(where, "git", "config", "gc.auto", "0")  # `settle` packs, not a gc beside what is measured
    for path in map(where.joinpath, spread_paths(files)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path}\n")
    place.run(where, "git", "coord", "setup", "--yes", "--no-tools")
    place.run(where, "git", "add", ".")
    place.run(where, "git", "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "policy")
    settle(place, where)
    os.chdir(where)
    steps = {
        "doctor": lambda _: place.timed("git", "coord", "doctor"),
        "audit": lambda _: place.timed("git", "coord", "audit", "--fail-on", "critical"),
        "setup": lambda _: place.timed("git", "coord", "setup", "--yes", "--no-tools"),
    }  # fmt: skip
    samples = interleave(max(2, rounds // 4), steps)
    found = []
    for name, limit in _SECONDS.items():
        figures = {"rounds": len(samples[name]), "p50 ms": round(p50(samples[name]) * 1000)}
        found.append(
            Result(
                f"checks-{name}",
                f"git coord {name} in a project of {files:,} files: seconds",
                p50(samples[name]),
                Target(limit),
                figures,
            )
        )
    return found
