"""`python -m gitcoord.simulation`: run seeds, replay one, try the mutants, draw the curve."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

from gitcoord.simulation.mutants import MUTANTS, mutated
from gitcoord.simulation.report import AGENTS, GOALS, failure, history, point, svg, table
from gitcoord.simulation.run import simulate, simulate_crowd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

_CURVE = (10, 100, 1_000, 10_000)
_MOST_FAILURES = 5


def _parser() -> ArgumentParser:
    parser = ArgumentParser("python -m gitcoord.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds to run (default: 300)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--seed", type=int, help="run this one seed and print its history")
    parser.add_argument(
        "--agents", type=int, help=f"agents in a run (default: {AGENTS}); from 50 on one run without faults"
    )
    parser.add_argument("--goals", type=int, default=GOALS, help=f"pieces of work for each agent (default: {GOALS})")
    parser.add_argument("--mutant", default="", choices=("", *MUTANTS), help="a deliberate fault of the protocol")
    parser.add_argument("--mutants", action="store_true", help="each mutant, until a seed catches it")
    parser.add_argument(
        "--check-queue",
        action="store_true",
        help="also the invariants of the queue in a crowd of more than 1,000 agents",
    )
    parser.add_argument("--curve", type=int, metavar="AGENTS", help="the curve up to so many agents")
    parser.add_argument("--svg", type=Path, help="write the curve there as SVG")
    return parser


def main(words: list[str]) -> int:
    """The exit code. 0: all held. 1: an invariant was violated, or a mutant was not caught."""
    given = _parser().parse_args(words)
    if given.mutants:
        return _try_mutants(given)
    if given.curve:
        return _draw(given)
    with mutated(given.mutant):
        if given.seed is not None:
            return _replay(given)
        if given.agents is not None and given.agents >= 50:
            return _crowd(given)
        return _run(given)


def _run(given: Namespace) -> int:
    agents = given.agents or AGENTS
    total: Counter[str] = Counter()
    failed = 0
    for seed in range(given.first, given.first + given.seeds):
        outcome = simulate(seed, agents, given.goals)
        total.update(outcome.figures)
        if outcome.violation:
            print(failure(seed, agents, given.goals, given.mutant))
            failed += 1
        if failed >= _MOST_FAILURES:
            break
    figures = ", ".join(f"{count:,} {name}" for name, count in total.items())
    print(f"{given.seeds:,} seeds, {failed} failed: {figures}")
    return 1 if failed else 0


def _replay(given: Namespace) -> int:
    outcome = simulate(given.seed, given.agents or AGENTS, given.goals)
    print("\n".join(history(outcome)))
    print(outcome.violation or "all invariants held")
    return 1 if outcome.violation else 0


def _crowd(given: Namespace) -> int:
    outcome = simulate_crowd(given.first, given.agents, checks_queue=given.check_queue)
    print(table([point(given.agents, outcome)]))
    print(outcome.violation or "all invariants held")
    return 1 if outcome.violation else 0


def _draw(given: Namespace) -> int:
    points = []
    for agents in (*(count for count in _CURVE if count < given.curve), given.curve):
        outcome = simulate_crowd(given.first, agents, checks_queue=given.check_queue)
        if outcome.violation:
            print(f"{agents} agents: {outcome.violation}")
            return 1
        points.append(point(agents, outcome))
    print(table(points))
    if given.svg is not None:
        given.svg.write_text(svg(points))
    return 0


def _try_mutants(given: Namespace) -> int:
    missed = 0
    for name in MUTANTS:
        with mutated(name):
            seeds = range(given.first, given.first + given.seeds)
            found = next((o for seed in seeds if (o := simulate(seed)).violation), None)
        missed += found is None
        print(f"{name:28} " + (f"seed {found.seed}: {found.violation}" if found is not None else "NOT CAUGHT"))
    return 1 if missed else 0
