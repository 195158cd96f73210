"""Fixtures of the race tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.races.support import Housekeeping, Project, housekeeping


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def loops(project: Project) -> Iterator[Housekeeping]:
    """pack-refs and gc run all the while, with gitcoord's hooks."""
    done = project.coord("install-hooks")
    assert done.code == 0, done
    with housekeeping(project) as found:
        yield found
