"""Runs tests on a copy of the tree until one fails. Each run is a fork of this process, which has pytest loaded already."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
from pathlib import Path

import hypothesis  # noqa: F401  for the forks
import pytest

_QUICK = 3.0  # seconds of tests that are tried together, quickest first, before the others
_OPTIONS = [
    "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--durations=0", "-W", "ignore::pytest.PytestAssertRewriteWarning",
]  # fmt: skip
_PASSED, _FAILED, _BROKEN = 10, 11, 12  # a run that ends in another way says nothing
_REMEMBERED = 12
# The tests that failed last, the latest first: what is next to a clause is often missed by the same one.
_last: list[str] = []


def fails(copy: Path, tests: list[tuple[str, float]], most: float) -> bool:
    """Does one of these (test, seconds) fail, among the quickest that take so many seconds together?"""
    total, batches = 0.0, ([], [], [])  # type: tuple[float, tuple[list[str], list[str], list[str]]]
    for test, seconds in tests:
        total += seconds
        if total <= most:
            batches[0 if test in _last else 1 if total <= _QUICK else 2].append(test)
    batches[0].sort(key=_last.index)
    for batch in batches:
        failed = _failing(copy, batch, 3 * total + 60) if batch else None
        if failed is not None:
            _last[:] = [failed, *(test for test in _last if test != failed)][:_REMEMBERED]
            return True
    return False


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
    if run.exitcode not in (_PASSED, _FAILED, _BROKEN):
        raise RuntimeError(f"the tests could not be run:\n{said}")
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
    return (found[1] if found else "") if run.exitcode != _PASSED else None


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
