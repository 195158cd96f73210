"""The report: a table for people, JSON for machines, Markdown for the docs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from tests.bench.measure import Result
from tests.bench.oneshot import fsync_cost
from tests.bench.place import Place


def machine(place: Place) -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "git": _first(["git", "version"]),
        "git-lfs": _first(["git", "lfs", "version"]),
        "python": _first([place.python, "-V"]),
        "fsync ms": round(fsync_cost(place), 2),
    }


def _first(argv: Sequence[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() if not done.returncode else "none"


def as_json(
    place: Place, facts: dict[str, Any], results: list[Result], skipped: dict[str, str], *, quick: bool
) -> dict[str, Any]:
    return {
        "version": 1,
        "date": time.strftime("%Y-%m-%d"),
        "quick": quick,
        "commands": place.source,
        "machine": facts,
        "results": [result.as_json() for result in results],
        "skipped": skipped,
    }


def verdict(met: bool | None) -> str:
    return {True: "met", False: "NOT MET", None: "-"}[met]


def shown(figures: dict[str, Any]) -> str:
    """The result without the tails, which only the JSON has."""
    return ", ".join(f"{key} {value}" for key, value in figures.items() if not key.endswith(("p10 ms", "p90 ms")))


def print_rows(results: Sequence[Result]) -> None:
    for result in results:
        target = str(result.target) if result.target else "reported"
        figures = shown(result.figures)
        print(f"{result.name:24} {round(result.ratio, 3):7.2f}  {target:9} {verdict(result.met):8} {result.what}")
        print(f"{'':53}{figures}{'; ' + result.note if result.note else ''}", flush=True)


def markdown(data: dict[str, Any]) -> str:
    """The table of docs/benchmarks.md."""
    facts = data["machine"]
    head = (
        f"{data['date']}: {facts['system']}, {facts['processors']} processors, {facts['git']}, {facts['git-lfs'].split()[0]}, "
        f"{facts['python']}, one fsync {facts['fsync ms']} ms, load {facts['load']}; commands from {data['commands']}."
    )
    lines = [head, "", "| measured | ratio | target | met | figures |", "| --- | --- | --- | --- | --- |"]
    for row in data["results"]:
        figures = shown(row["figures"])
        ratio = f"{row['ratio']:.2f}"
        lines.append(
            f"| {row['what']} | {ratio} | {row['target'] or 'reported'} | {verdict(row['met']).lower()} | {figures} |"
        )
    lines += [f"| {name} | skipped | | | {why} |" for name, why in data["skipped"].items()]
    return "\n".join(lines)


def warn(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
