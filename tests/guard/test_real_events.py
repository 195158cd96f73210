"""A whole conversation of each agent tool, replayed through the guard with the bytes that the tool itself sent.

`python -m tests.guard.real --record` runs the tools and writes the files: a free file written, a held one denied, one overwritten by a
program, the end. What an action did is done here before its event comes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitcoord.guard import tools
from gitcoord.validators.tool_event import AFTER, BEFORE, START, STOP
from tests.guard.protocol import context, reason, understood
from tests.guard.support import Project

FILES = sorted((Path(__file__).parent / "recorded/real").glob("*.jsonl"))
HELD, SHARED = "free/x", "shared/a"


def _events(project: Project, path: Path) -> list[dict[str, Any]]:
    text = path.read_text().replace("/home/ana/shop", str(project.top))
    return [json.loads(line) for line in text.splitlines()[1:]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_replayed(project: Project, path: Path) -> None:
    project.claim("-m", "new login", HELD, agent="bob")
    project.world.write(HELD, "x\nof bob\n")
    told, asked, denied = [], [], []
    for said in _events(project, path):
        tool = tools.detect(said)
        event = tool.read(said)
        assert path.stem.partition("-")[0] == tool.NAME
        if event.phase == AFTER and event.writes:
            project.world.write(SHARED, "mine\n")
        if event.phase == AFTER and "fmt.py" in event.command:
            project.world.write(HELD, "gone")
        answer = project.send(said)
        if event.phase == BEFORE and understood(tool.NAME, answer) == "deny":
            denied.append((event.writes, reason(tool.NAME, answer)))
        elif event.phase in (START, AFTER) and context(answer):
            told.append((event.phase, context(answer)))
        elif event.phase == STOP and reason(tool.NAME, answer):
            asked.append(reason(tool.NAME, answer))
    ((writes, why),) = denied
    assert [Path(one).relative_to(project.top) for one in writes] == [Path(HELD)]
    assert "bob" in why and f"git claim --wait 10m {HELD}" in why
    assert [phase for phase, _ in told] == [START, AFTER], told
    assert f"bob holds {HELD}: new login" in told[0][1]
    assert "refs/gitcoord/kept/" in told[1][1]
    assert len(asked) == 1 and f"-- {SHARED}\n" in asked[0], asked
    assert project.held()[SHARED].startswith(tool.NAME)


def test_every_tool_that_npm_has_was_recorded() -> None:
    assert {path.stem.partition("-")[0] for path in FILES} == {"claude", "codex", "gemini", "opencode", "copilot"}
