"""Recorded conversations of the agent tools themselves, and what gitcoord reads in each event.

Each file of `recorded/` begins with the tool and its version. The tools ran in a project that `git coord setup` had set up, with a
local server in place of a model that asked for one action after the other; their hooks called the guard. Paths were renamed, texts
of more than 300 characters cut off, repeated events left out. What the guard answered was obeyed, so an action that it denied has
no event afterwards.

Cursor and Windsurf could not be run. What they said was recorded by others, who published it: `source` tells where, for Cursor by the
version that each event carries. Keys, their order, types, ids and numbers are as published; paths, names, texts and commands are
ours, what the recorder itself had added is left out, and so is every event that was published only in part.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gitcoord.guard import tools
from gitcoord.validators.tool_event import AFTER, BEFORE, START, STOP, SUBAGENT_START, SUBAGENT_STOP, ToolEvent

FILES = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))
# With other models Copilot edits by patches, and Codex has subagents; and the end of a conversation. Of Cursor there are pieces of
# many, and each of its subagents is one, too.
CONVERSATIONS = {"copilot": 2, "codex": 4, "gemini": 2, "cursor": 13}
_FLAT = (
    "beforeShellExecution",
    "afterShellExecution",
    "beforeReadFile",
    "afterFileEdit",
)  # setup does not ask for these
_LEFT_OUT = ("input", "cwd", "id", "transcript")


def _rows(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
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
        # Windsurf tells no version, and the directory only of commands: its hooks run in the project's.
        sampled = f"Sampled of version {head['version'].rpartition('.')[0]}."
        assert sampled in str(tool.__doc__) or path.stem == "windsurf"
        event = tool.read(row["said"])
        assert _told(event) == row["read"], row["said"]
        assert event.cwd.startswith("/home/ana/shop") or (path.stem == "windsurf" and not event.command)
        assert bool(event.id) or event.phase not in (BEFORE, AFTER) or event.name in _FLAT


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_conversation_is_one_agent_and_its_subagents_are_below_it(path: Path) -> None:
    rows = [row["read"] for row in _rows(path)[1]]
    assert len({row["conversation"] for row in rows}) == CONVERSATIONS.get(path.stem, 1)
    phases = {row["phase"] for row in rows}
    assert {BEFORE, AFTER, STOP} <= phases
    assert START in phases or path.stem == "windsurf"  # which knows none
    assert {row["phase"] for row in rows if row.get("subagent")} >= (phases & {SUBAGENT_START, SUBAGENT_STOP})
    assert any(row.get("failed") for row in rows) or path.stem in ("codex", "windsurf")  # which do not tell


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


def test_what_others_published_says_where() -> None:
    for path in FILES:
        head, rows = _rows(path)
        versions = {row["said"].get("cursor_version", "") for row in rows}
        if path.stem == "cursor":
            assert set(head["source"]) == versions and head["version"] in versions
        elif path.stem == "windsurf":
            assert head["source"] and head["date"]
        else:
            assert "source" not in head


def test_a_search_of_cursor_reads_what_it_names() -> None:
    """Its documentation calls that place 'path'; Cursor itself does not."""
    rows = [row for path in FILES if path.stem == "cursor" for row in _rows(path)[1]]
    searches = [row for row in rows if row["said"].get("tool_name") == "Grep"]
    assert len(searches) > 3
    for row in searches:
        assert row["read"]["reads"] == [row["said"]["tool_input"]["file_path"]]


def test_a_subagent_of_cursor_does_not_say_whose_it_is() -> None:
    """The events at its start and end name the parent's conversation; its actions come in a conversation of its own.

    A change of that should fail here: docs/guard.md says what follows from it.
    """
    rows = [row for path in FILES if path.stem == "cursor" for row in _rows(path)[1]]
    named = [row for row in rows if "subagent_id" in row["said"] or "parent_conversation_id" in row["said"]]
    assert {row["said"]["hook_event_name"] for row in named} == {"subagentStart", "subagentStop"}


def test_a_subagent_of_gemini_does_not_say_that_it_acts() -> None:
    """The call of a subagent is an event before and after, and names it; the events in between do not say who acts."""
    rows = [row["said"] for path in FILES if path.stem == "gemini" for row in _rows(path)[1]]
    base = {"session_id", "transcript_path", "cwd", "hook_event_name", "timestamp", "tool_name", "tool_input"}
    assert any(said.get("tool_name") == "invoke_agent" for said in rows)
    for said in rows:
        if said["hook_event_name"] in ("BeforeTool", "AfterTool"):
            assert set(said) - {"tool_response"} == base
