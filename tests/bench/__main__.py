"""`python -m tests.bench`: run the benchmarks, print ratios with their targets, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.bench import (
    agents,
    crowd,
    gates,
    guard,
    handing,
    landing,
    oneshot,
    page,
    remote,
    report,
    server,
    size,
    tasks,
    waiting,
    watch,
)
from tests.bench.build import Views
from tests.bench.measure import Failed, Result
from tests.bench.place import Place, has_lfs


class Scale(NamedTuple):
    rounds: int = 41
    plan: crowd.Plan = crowd.Plan(64, 3, 4, 16)
    claims: int = 10_000
    shown: Views = Views(5_000, 200, 2_000, 50_000)
    page: Views = Views(10_000, 200, 100, 100_000)
    events: int = 100_000
    commits: int = 2000
    fleet: remote.Plan = remote.Plan()
    queue: tasks.Plan = tasks.Plan()
    idle: float = 30.0
    handed: int = 400
    waits: waiting.Plan = waiting.Plan()
    landings: landing.Plan = landing.Plan()
    scripted: agents.Plan = agents.Plan()
    transports: tuple[str, ...] = remote.KINDS


QUICK = Scale(
    rounds=1,
    plan=crowd.Plan(3, 1, 0.2, 0.4),
    claims=40,
    shown=Views(80, 20, 20, 120),
    page=Views(80, 20, 20, 120),
    events=60,
    commits=8,
    fleet=remote.Plan(2, 2, 0.5, 1, 0.5),
    queue=tasks.Plan(3, 12, 1),
    idle=0.2,
    handed=16,
    scripted=agents.Plan(((3, 1),), 1, 0.05),
    landings=landing.Plan((3,), 0.1),
    waits=waiting.Plan(lanes=2, grants=1, seconds=0.4, clients=2, idle=1.0, waiters=8),
)
Bench = Callable[[Place, Path, Scale], list[Result]]

BENCHES: dict[str, Bench] = {
    "claim": lambda place, cache, scale: oneshot.claim_and_release(place, scale.rounds),
    "list": lambda place, cache, scale: oneshot.listing(place, scale.rounds),
    "check": lambda place, cache, scale: oneshot.check(place, scale.rounds),
    "views": lambda place, cache, scale: [
        *oneshot.views(place, scale.rounds),
        *oneshot.start(place, scale.rounds),
        *size.overview(place, cache, scale.rounds),
        *size.views(place, cache, scale.rounds, scale.shown),
    ],
    "checks": lambda place, cache, scale: size.checks(place, cache, scale.rounds, scale.commits * 10),
    "hooks": lambda place, cache, scale: gates.hooks(
        place, scale.rounds, commits=scale.commits, paths=scale.commits * 10
    ),
    "guard": lambda place, cache, scale: [
        *guard.judged(place, scale.rounds),
        *guard.looked(place, scale.rounds),
    ],
    "server": lambda place, cache, scale: server.gate(place, scale.rounds, commits=scale.commits * 10),
    "remote": lambda place, cache, scale: remote.costs(place, scale.rounds, scale.transports),
    "remote-crowd": lambda place, cache, scale: remote.crowd(place, scale.fleet),
    "remote-beats": lambda place, cache, scale: remote.beats(place, scale.fleet),
    "crowd": lambda place, cache, scale: crowd.commands(place, scale.plan),
    "crowd-library": lambda place, cache, scale: crowd.library(place, scale.plan),
    "spread": lambda place, cache, scale: size.spread(place, cache, scale.rounds, scale.claims),
    "flat": lambda place, cache, scale: size.flat(place, cache, scale.rounds, scale.claims),
    "events": lambda place, cache, scale: size.events(place, cache, scale.rounds, scale.events),
    "why": lambda place, cache, scale: [
        *size.why(place, cache, scale.rounds, scale.events),
        *size.contention(place, cache, scale.rounds, scale.events),
    ],
    "handing": lambda place, cache, scale: handing.handing(place, scale.rounds, scale.handed),
    "watch": lambda place, cache, scale: watch.follow(place, scale.rounds, scale.idle),
    "page": lambda place, cache, scale: page.page(place, cache, scale.rounds, scale.page, scale.idle),
    "journal": lambda place, cache, scale: size.journal(place, cache, scale.rounds, scale.events),
    "tasks": lambda place, cache, scale: tasks.next_task(place, scale.queue),
    "queue": lambda place, cache, scale: waiting.queue(place, cache, scale.rounds, scale.waits),
    "land": lambda place, cache, scale: landing.landing(place, min(scale.rounds, 15), scale.landings),
    "fleet": lambda place, cache, scale: agents.fleet(place, scale.scripted),
}
NEED_LFS = ("claim", "list")
NEED_BROWSER = ("page",)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a few rounds of small sizes: proves that it works, times nothing"
    )
    parser.add_argument("--only", metavar="NAME,...", default="", help=f"some of: {', '.join(BENCHES)}")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of what is interleaved")
    parser.add_argument("--over", metavar="KIND,...", help=f"of `remote` only these: {', '.join(remote.KINDS)}")
    parser.add_argument("--agents", metavar="N,...", default="", help="of `fleet` only so many agents: 4, 20, 64")
    parser.add_argument("--files", metavar="N,...", default="", help="of `fleet` only so many files: 3, 60")
    parser.add_argument(
        "--longest", type=float, metavar="S", help="of `fleet`: seconds of thinking, holding and testing at most"
    )
    parser.add_argument(
        "--arms", metavar="NAME,...", default="", help=f"of `fleet` only these: {', '.join(agents.ARMS)}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/benchmarks.md at the end")
    parser.add_argument(
        "--command-dir", type=Path, metavar="DIR", help="where git-claim and git-coord are; else they are installed"
    )
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep the large repositories there for the next run")
    given = parser.parse_args()
    given.names = given.only.split(",") if given.only else list(BENCHES)
    unknown = [name for name in given.names if name not in BENCHES]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}")
    given.transports = tuple(given.over.split(",")) if given.over else remote.KINDS
    unknown = [kind for kind in given.transports if kind not in remote.KINDS]
    if unknown:
        parser.error(f"no transport is called {', '.join(unknown)}")
    unknown = [name for name in given.arms.split(",") if name and name not in agents.ARMS]
    if unknown:
        parser.error(f"no arm is called {', '.join(unknown)}")
    return given


def _fleet(plan: agents.Plan, given: argparse.Namespace) -> agents.Plan:
    """The part of the plan that was asked for; its rounds are those of `--rounds`, if given."""
    sizes = tuple(size for size in plan.sizes if not given.agents or str(size[0]) in given.agents.split(","))
    files = tuple(files for files in plan.files if not given.files or str(files) in given.files.split(","))
    arms = tuple(given.arms.split(",")) if given.arms else plan.arms
    longest, rounds = given.longest or plan.longest, given.rounds or plan.rounds
    return plan._replace(sizes=sizes, files=files, arms=arms, longest=longest, rounds=rounds)


def main() -> int:
    given = arguments()
    scale = QUICK if given.quick else Scale()
    if given.rounds:
        scale = scale._replace(rounds=given.rounds)
    scale = scale._replace(transports=given.transports, scripted=_fleet(scale.scripted, given))
    home = Path.cwd()
    for name in ("json", "cache", "command_dir"):
        if getattr(given, name) is not None:
            setattr(given, name, home / getattr(given, name))
    with tempfile.TemporaryDirectory(prefix="gitcoord-bench-", ignore_cleanup_errors=True) as directory:
        try:
            print(f"in {tempfile.gettempdir()}; ", end="")
            return _run(given, scale, Path(directory).resolve())
        finally:
            os.chdir(home)


def _run(given: argparse.Namespace, scale: Scale, directory: Path) -> int:
    place = Place(directory, given.command_dir)
    facts = report.machine(place)
    cache = given.cache or directory / "cache"
    results: list[Result] = []
    skipped: dict[str, str] = {}
    failed = False
    print(f"commands from {place.source}; {', '.join(f'{key}: {value}' for key, value in facts.items())}")
    for name in given.names:
        if name in NEED_LFS and not has_lfs():
            skipped[name] = "git-lfs is not installed"
            report.warn(f"{name}: skipped, {skipped[name]}")
            continue
        if name in NEED_BROWSER and not page.has_browser():
            skipped[name] = "chromium or its driver is not installed"
            report.warn(f"{name}: skipped, {skipped[name]}")
            continue
        try:
            found = BENCHES[name](place, cache, scale)
        except Failed as error:
            failed = True
            skipped[name] = f"failed: {error}"
            report.warn(f"{name}: {error}")
            continue
        report.print_rows(found)
        results += found
    data = report.as_json(place, facts, results, skipped, quick=given.quick)
    if given.json:
        given.json.write_text(json.dumps(data, indent=2) + "\n")
    if given.markdown:
        print("\n" + report.markdown(data))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
