"""What agent tools really said: conversations recorded from the tools themselves, and what is read out of each event.

Each file of `recorded/` begins with the tool and its version. The tools ran in a project that `git coord setup` had set up, with a
local server in place of a model that asked for one action after the other; their hooks called the guard. Paths were renamed, texts
of more than 300 characters cut off, repeated events left out. What the guard answered was obeyed, so an action that it denied has
no event afterwards.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gitcoord.core.toolevents import AFTER, BEFORE, START, STOP, SUBAGENT_START, SUBAGENT_STOP, ToolEvent
from gitcoord.hot import tools

FILES = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))
# With other models Copilot edits by patches, and Codex has subagents; and the end of a conversation.
CONVERSATIONS = {"copilot": 2, "codex": 3}
_LEFT_OUT = ("input", "cwd", "id")


def _rows(path: Path) -> tuple[dict[str, str], list[dict[str, Any]]]:
    head, *rows = (json.loads(line) for line in path.read_text().splitlines())
    return head, rows


def _told(event: ToolEvent) -> dict[str, Any]:
    blank = ToolEvent("", "")._asdict()
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in event._asdict().items()}
    return {name: value for name, value in told.items() if value not in (blank[name], []) and name not in _LEFT_OUT}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded(path: Path) -> None:
    head, rows = _rows(path)
    assert head["tool"] == path.stem
    for row in rows:
        tool = tools.detect(row["said"])
        assert path.stem == tool.NAME
        assert head["version"].rpartition(".")[0] == tool.SAMPLED
        event = tool.read(row["said"])
        assert _told(event) == row["read"], row["said"]
        assert event.cwd.startswith("/home/ana/shop")
        assert bool(event.id) or event.phase not in (BEFORE, AFTER)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_conversation_is_one_agent_and_its_subagents_are_below_it(path: Path) -> None:
    rows = [row["read"] for row in _rows(path)[1]]
    assert len({row["conversation"] for row in rows}) == CONVERSATIONS.get(path.stem, 1)
    phases = {row["phase"] for row in rows}
    assert {START, BEFORE, AFTER, STOP} <= phases
    assert {row["phase"] for row in rows if row.get("subagent")} >= (phases & {SUBAGENT_START, SUBAGENT_STOP})
    assert any(row.get("failed") for row in rows) or path.stem == "codex"  # which does not tell


def test_the_two_forms_of_one_event_are_one_action() -> None:
    """Copilot runs its own hooks and those of Claude Code's settings."""
    path = next(path for path in FILES if path.stem == "copilot")
    events = [tools.detect(row["said"]).read(row["said"]) for row in _rows(path)[1]]
    acts = [event for event in events if event.phase in (BEFORE, AFTER)]
    pairs = [(a, b) for a, b in pairwise(acts) if a.id == b.id and a.phase == b.phase]
    assert len(pairs) > 8
    for own, other in pairs:
        assert (own.writes, own.reads, own.command, own.input) == (
            other.writes,
            other.reads,
            other.command,
            other.input,
        )
        assert (own.conversation, own.subagent, own.failed) == (other.conversation, other.subagent, other.failed)
