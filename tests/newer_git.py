"""Tests marked `newer_git` need a newer git than this machine may have. `install.sh --test` runs them with one of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

import pytest

NEEDED = (2, 54)  # for hooks from its settings; reftable came with 2.45
VERSION = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout.split()[2]


def is_newer(version: str) -> bool:
    return tuple(int(number) for number in version.split(".")[:2]) >= NEEDED


def need_newer_git(version: str, environ: Mapping[str, str]) -> None:
    """Skip a test for which this git is too old. Where GITCOORD_REQUIRE_GIT is set, fail it."""
    if is_newer(version):
        return
    reason = f"git {version} takes no hooks from its settings, or knows no reftable"
    if environ.get("GITCOORD_REQUIRE_GIT", "") not in ("", "0"):
        pytest.fail(f"skipped, but GITCOORD_REQUIRE_GIT is set: {reason}", pytrace=False)
    pytest.skip(reason)
