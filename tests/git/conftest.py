"""Storage is tested in repositories that another library made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_git import GitRepo


@pytest.fixture
def git_repo() -> Iterator[Path]:
    """A repository without a commit, made by pytest-git: storage must not depend on how the other tests' template was made."""
    with GitRepo() as repo:
        yield Path(repo.workspace)
