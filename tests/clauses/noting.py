"""A plugin of pytest: notes how each test ended and how long it took, for the map."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_notes = os.environ.get("CLAUSES_NOTES", "")
_seconds: dict[str, float] = {}
_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:  # nor skipped: it tells nothing
        _failed.add(report.nodeid)


def pytest_unconfigure() -> None:
    if _notes:
        Path(_notes).write_text(json.dumps({"seconds": _seconds, "failed": sorted(_failed)}))
