"""A test that needs a newer git is skipped, or fails where one is required."""

from __future__ import annotations

import pytest

from tests.newer_git import VERSION, is_newer, need_newer_git


@pytest.mark.parametrize("version", ["2.54.0", "2.55.0.rc1", "3.0.0"])
def test_a_newer_git_runs_it(version: str) -> None:
    need_newer_git(version, {"GITCOORD_REQUIRE_GIT": "1"})


def test_an_older_git_skips_it_or_fails_it_where_required() -> None:
    for value in ("", "0"):
        with pytest.raises(pytest.skip.Exception, match=r"git 2\.39\.5"):
            need_newer_git("2.39.5", {"GITCOORD_REQUIRE_GIT": value})
    with pytest.raises(pytest.fail.Exception, match=r"git 2\.39\.5"):
        need_newer_git("2.39.5", {"GITCOORD_REQUIRE_GIT": "1"})


@pytest.mark.newer_git
def test_the_marker_asks_for_it() -> None:
    """This test fails with an older git if the marker is not checked."""
    assert is_newer(VERSION)
