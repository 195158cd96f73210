"""Repositories for the faults. What keeps the outside out stands in the conftest above."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.world import Mirror, World, make_world


def _held(top: Path) -> World:
    made = make_world(top)
    assert made.claim("src/app.py", agent="alice").code == 0
    return made


@pytest.fixture(scope="module")
def _stage(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Mirror]:
    place = tmp_path_factory.mktemp("stage")
    made = _held(place / "repo")
    return made, Mirror(made, place / "mirror")


@pytest.fixture
def world(_stage: tuple[World, Mirror], tmp_path: Path) -> Iterator[World]:
    """A repository with a ledger in which alice holds src/app.py. The same for all tests of a file, put back each time."""
    made, mirror = _stage
    mirror.restore()
    made.environ, made.cwd, made.scrap = {}, made.top, tmp_path
    yield made


@pytest.fixture
def own(tmp_path: Path) -> World:
    """The same, for a test that moves it or gives it away."""
    return _held(tmp_path / "repo")


@pytest.fixture
def plain(tmp_path: Path) -> World:
    """A repository in which gitcoord was never set up."""
    return make_world(tmp_path / "repo", ledger=False)
