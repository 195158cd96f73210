"""A repository for work that conflicts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.radar.support import TEXT
from tests.support import git


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A repository with a file of forty lines, in a directory of its own, since work trees come beside it."""
    git(tmp_path, "init", "-q", "proj")
    world = World(tmp_path / "proj")
    world.commit({"f": TEXT, "other": TEXT})
    return world.init()


@pytest.fixture(autouse=True)
def _dates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits are made now: an old branch is nobody's work."""
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, f"@{int(time.time())} +0000")
