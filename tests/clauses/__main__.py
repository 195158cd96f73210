"""`python -m tests.clauses`: disables each clause of the judgement alone, and tells which of them no test misses.

The answer is 0 where every clause is missed by a test or listed in `equal.py`, else 1.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
import time
from pathlib import Path

from tests.clauses.equal import EQUAL
from tests.clauses.mutants import Mutant, mutants
from tests.clauses.reach import ROOT, Reach, copy_of_the_tree
from tests.clauses.running import fails

SOURCES = (
    "gitcoord/core/judge.py", "gitcoord/core/lineage.py", "gitcoord/core/roles.py", "gitcoord/app/ancestry.py",
    "gitcoord/app/judging.py", "gitcoord/app/gate.py",
)  # fmt: skip
TESTS = ("tests/core", "tests/hooks", "tests/cli/test_commit.py", "tests/server/test_code_push.py")
# How hooks get in place, not what they say.
OTHERS = ("tests/hooks/test_install_hooks.py", "tests/hooks/test_setup.py", "tests/hooks/test_hook_scripts.py")
_SAMPLE = 20.0  # seconds of tests that must pass first, with every clause in place


def main() -> int:
    options = _options()
    chosen = [mutant for name in SOURCES for mutant in mutants(name, (ROOT / name).read_text())]
    chosen = [mutant for mutant in chosen if _is_wanted(mutant, options.only)]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.file}:{mutant.line} {mutant.where}: {mutant.what}")
        return 0
    reach = Reach(options.map)
    for test in reach.update(SOURCES, TESTS, OTHERS, anew=options.map_anew):
        print(f"does not count, since it did not pass as it is: {test}")
    outcomes: dict[str, list[str]] = {"killed": [], "equal": [], "survived": [], "not reached": []}
    with copy_of_the_tree() as copy:
        for name in SOURCES:
            (copy / name).write_text(ast.unparse(ast.parse((copy / name).read_text())))
        reached = dict(pair for mutant in chosen for pair in reach.tests(mutant.statement))
        if fails(copy, sorted(reached.items(), key=lambda pair: pair[1]), min(options.seconds, _SAMPLE)):
            raise SystemExit("a test fails with no clause disabled")
        for number, mutant in enumerate(chosen):
            begun = time.monotonic()
            outcome = "equal" if mutant.name in EQUAL else _outcome(copy, mutant, reach, number, options.seconds)
            outcomes[outcome].append(mutant.name)
            took = time.monotonic() - begun
            print(f"{outcome:11} {took:5.1f}s {mutant.file}:{mutant.line} {mutant.where}: {mutant.what}", flush=True)
    print(", ".join(f"{len(names)} {outcome}" for outcome, names in outcomes.items()))
    unknown = sorted(set(EQUAL) - set(outcomes["equal"])) if not options.only else []
    for name in unknown:
        print(f"listed as equal, but there is no such clause: {name}")
    if options.json:
        options.json.write_text(json.dumps(outcomes, indent=1) + "\n")
    return 1 if outcomes["survived"] or outcomes["not reached"] or unknown else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clauses", description=__doc__)
    parser.add_argument("--only", metavar="FILE[:LINE],...", default="", help="only the clauses there")
    parser.add_argument("--list", action="store_true", help="list the clauses and run nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome there")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="of tests at most for a clause; the quickest go first"
    )
    parser.add_argument("--map-anew", action="store_true", help="find out again which tests reach which line")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument("--map", type=Path, metavar="FILE", default=cache / "gitcoord/clauses.json", help="kept there")
    return parser.parse_args()


def _is_wanted(mutant: Mutant, only: str) -> bool:
    return not only or any(
        mutant.file.endswith(file) and (not line or mutant.line == int(line))
        for file, _, line in (word.partition(":") for word in only.split(","))
    )


def _outcome(copy: Path, mutant: Mutant, reach: Reach, number: int, most: float) -> str:
    tests = reach.tests(mutant.statement)
    if not tests:
        return "not reached"
    file = copy / mutant.file
    whole = file.read_bytes()
    file.write_text(mutant.source)
    # Compiled files are told apart by size and second: no two versions may have the same.
    os.utime(file, (number + 1, number + 1))
    try:
        return "killed" if fails(copy, tests, most) else "survived"
    finally:
        file.write_bytes(whole)


if __name__ == "__main__":
    sys.exit(main())
