"""Runs tests on a copy of the tree until one fails. Each run is a fork of this process, which has pytest loaded already."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
from itertools import groupby
from pathlib import Path

import hypothesis  # noqa: F401  for the forks
import pytest

_QUICK = 3.0  # seconds of tests that are tried together, quickest first, before the others
_OPTIONS = [
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "--no-header",
    "--durations=0",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]
_PASSED, _FAILED = 10, 11  # a run that ends in another way says nothing
_last: list[str] = []  # the files whose tests failed lately, the last one first: what is next to it may fail there too


def fails(copy: Path, tests: list[tuple[str, float]], most: float) -> bool:
    """Does one of these (test, seconds) fail, among the quickest that take so many seconds together?"""
    total, chosen = 0.0, []
    for test, seconds in tests:
        total += seconds
        if total <= most:
            chosen.append((_rank(test, total), test))
    for _, batch in groupby(sorted(chosen, key=lambda pair: pair[0]), key=lambda pair: pair[0]):
        failed = _failing(copy, [test for _, test in batch], 3 * total + 60)
        if failed is not None:
            file = failed.partition("::")[0]
            _last[:] = [file, *(name for name in _last if name != file)]
            return True
    return False


def _rank(test: str, total: float) -> int:
    """In which batch it is run."""
    file = test.partition("::")[0]
    if total > _QUICK:
        return 2
    return 0 if file in _last[:2] else 1


def _failing(copy: Path, tests: list[str], seconds: float) -> str | None:
    """The test that fails, '' where they take too long."""
    out = copy.parent / "out"
    run = multiprocessing.get_context("fork").Process(target=_run, args=(copy, tests, out))
    run.start()
    run.join(seconds)
    if run.exitcode is None:
        assert run.pid is not None
        os.killpg(run.pid, signal.SIGKILL)
        return ""
    said = out.read_text(errors="replace")
    if run.exitcode not in (_PASSED, _FAILED):
        raise RuntimeError(f"the tests could not be run:\n{said}")
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return (found[1] if found else "") if run.exitcode == _FAILED else None


def _run(copy: Path, tests: list[str], out: Path) -> None:
    os.setsid()
    os.chdir(copy)
    with open(out, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # Neither the tests nor the code may be those of this process.
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "gitcoord")]:
        del sys.modules[name]
    sys.path[0] = str(copy)
    code = pytest.main([*_OPTIONS, *tests])
    sys.stdout.flush()
    os._exit(_PASSED + code)
