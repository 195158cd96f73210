"""Two agents in one work tree edit the same files at the same time: without the guard edits are lost, with it none.

The quick form takes seconds; with GITCOORD_SOAK every pair of tools is driven for minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.guard.support import Project
from tests.support import ROOT

SOAK = bool(os.environ.get("GITCOORD_SOAK"))
CYCLES = 200
FILES = ("free/x", "shared/a")
PAIRS = (("claude", "codex"), ("gemini", "cursor"), ("copilot", "opencode"), ("windsurf", "claude"))


def drill(
    project: Project, tools: tuple[str, str], cycles: int, *, guarded: bool
) -> tuple[list[str], list[dict[str, Any]]]:
    """Lines that an agent was allowed to write and that are gone, or there twice; and what each agent told."""
    start = [sys.executable, "-m", "tests.guard.agent"]
    rest = [str(project.top), str(cycles), "on" if guarded else "off", *FILES]
    agents = [
        subprocess.Popen([*start, tool, f"agent{i}", *rest], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for i, tool in enumerate(tools)
    ]
    told = [json.loads(agent.communicate(timeout=1800 if SOAK else 100)[0]) for agent in agents]
    texts = {name: (project.top / name).read_text().splitlines(keepends=True) for name in FILES}
    lines = [(name, line) for one in told for name, line in one["lines"]]
    assert len(lines) == 2 * cycles
    return [line for name, line in lines if texts[name].count(line) != 1], told


def test_without_the_guard_edits_are_lost(project: Project) -> None:
    lost, _ = drill(project, ("claude", "codex"), 25, guarded=False)
    assert lost


@pytest.mark.parametrize("tools", PAIRS, ids="-".join)
def test_with_it_none(project: Project, tools: tuple[str, str]) -> None:
    lost, told = drill(project, tools, 5, guarded=True)
    assert not lost
    words = [reason for one in told for reason in one["refused"]]
    rules = ("[held]", "[changed]", "[uncommitted]")
    assert all(any(rule in reason for rule in rules) for reason in words), words
    assert project.world.coord("fsck", "--json").json["ok"]


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not SOAK, reason="it takes minutes: GITCOORD_SOAK=1")
@pytest.mark.parametrize("tools", PAIRS, ids="-".join)
def test_for_minutes(tmp_path: Path, tools: tuple[str, str]) -> None:
    unguarded, _ = drill(Project(tmp_path / "without"), tools, CYCLES, guarded=False)
    lost, told = drill(Project(tmp_path / "with"), tools, CYCLES, guarded=True)
    assert unguarded and not lost
    assert any(one["refused"] for one in told)  # they did meet
