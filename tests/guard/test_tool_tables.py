"""Every agent tool stands in every table that must know it."""

from __future__ import annotations

import pytest

from gitcoord.guard.findings import is_setting, settings_below
from gitcoord.guard.setup.known import KNOWN, Known
from gitcoord.guard.tools import NAMES, load
from gitcoord.sessions.identity import _TOOLS
from gitcoord.shell.bypass import _WHO


def test_the_tables_name_the_same_tools() -> None:
    assert sorted(known.name for known in KNOWN) == sorted(NAMES)
    assert sorted(name for name, _, _ in _TOOLS) == sorted(NAMES)
    assert all(name == load(name).NAME for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_is_known_by_its_variables(name: str) -> None:
    """In a shell they say who acts, so a command that changes one is seen as a way around."""
    ((markers, ids),) = [(markers, ids) for tool, markers, ids in _TOOLS if tool == name]
    assert markers and ids
    assert {variable.decode() for variable in ids} <= set(_WHO)


def test_no_variable_is_watched_that_names_nobody() -> None:
    assert {variable.decode() for _, _, ids in _TOOLS for variable in ids} == set(_WHO)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_the_settings_that_call_the_guard_are_protected(known: Known) -> None:
    """In a project and in a home; the file itself and the directories above it."""
    for file in (f"/top/{known.settings}", f"/home/{known.home.below}/{known.own_settings}"):
        assert is_setting(file), file
        assert file in settings_below(file.rpartition("/")[0]), file
