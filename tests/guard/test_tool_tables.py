"""Every agent tool stands in every table that must know it."""

from __future__ import annotations

import pytest

from gitcoord.base.agent_tools import TOOLS
from gitcoord.guard.findings import settings_at
from gitcoord.guard.setup.known import KNOWN, Known
from gitcoord.guard.tools import NAMES, load


def test_the_tables_name_the_same_tools() -> None:
    assert sorted(known.name for known in KNOWN) == sorted(NAMES)
    assert sorted(tool.name for tool in TOOLS) == sorted(NAMES)
    assert all(name == load(name).NAME for name in NAMES)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_the_settings_that_call_the_guard_are_protected(known: Known) -> None:
    """In a project and in a home; the file itself and the directories above it."""
    for file in (f"/top/{known.settings}", f"/home/{known.home.below}/{known.own_settings}"):
        assert settings_at(file) == [file]
        assert file in settings_at(file.rpartition("/")[0]), file
