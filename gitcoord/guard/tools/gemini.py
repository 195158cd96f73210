"""Gemini CLI: events on stdin, answers as JSON; any other text on stdout allows the action. Sampled of version 0.61.

A hook that crashes or takes too long (its limit is in milliseconds) only warns: the action goes on. Exit code 2 denies it.
"""

from __future__ import annotations

from gitcoord.guard.tools import common as words
from gitcoord.guard.tools.common import READ, SEARCH, SHELL, WRITE
from gitcoord.validators.tool_event import AFTER, ALLOW, BEFORE, OTHER, START, STOP, Reply, ToolEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.codec import Record
    from gitcoord.validators.tool_event import Answer

NAME = "gemini"
SAMPLED = "0.61"

EVENTS = {
    "BeforeTool": BEFORE,
    "AfterTool": AFTER,
    "SessionStart": START,
    "AfterAgent": STOP,
    "SessionEnd": STOP,
    "BeforeAgent": OTHER,
    "BeforeModel": OTHER,
    "AfterModel": OTHER,
    "BeforeToolSelection": OTHER,
    "PreCompress": OTHER,
}
ACTIONS: words.Table = {
    "write_file": (WRITE, "file_path"),
    "replace": (WRITE, "file_path"),
    "edit": (WRITE, "file_path"),
    "read_file": (READ, "file_path", "absolute_path"),
    "read_many_files": (READ, "include", "paths"),
    "list_directory": (SEARCH, "dir_path", "path"),
    "glob": (SEARCH, "dir_path", "path"),
    "grep_search": (SEARCH, "dir_path", "path"),
    "search_file_content": (SEARCH, "dir_path", "path"),
    "run_shell_command": (SHELL, "command", "dir_path", "directory"),
}


def read(data: Record) -> ToolEvent:
    name = words.need(data, "hook_event_name")
    action = words.text(data, "tool_name")
    event = ToolEvent(
        NAME,
        words.phase(EVENTS, name, about="tool_name" in data),
        words.text(data, "session_id"),
        cwd=words.text(data, "cwd"),
        action=action or name,
        name=name,
        again=data.get("stop_hook_active") is True,
        id=words.text(data, "timestamp"),
        final=name == "SessionEnd",
    )
    failed = _failed(data.get("tool_response"))
    return words.acting(event, ACTIONS, action, data.get("tool_input"), failed=failed)


def _failed(result: object) -> bool:
    """A command that ran and failed is told in words alone."""
    told = result.get("llmContent") if isinstance(result, dict) else None
    return words.unlucky(result) or words.exit_code(told, "\nExit Code: ") != 0


def answer(event: ToolEvent, answer: Answer) -> Reply:
    if answer.decision != ALLOW and (event.phase == BEFORE or (event.phase == STOP and not event.final)):
        return words.said({"decision": "deny", "reason": words.reason(answer.reason)})
    # A denial afterwards would hide the action's result from the agent: it is told beside it.
    context = words.context(event, answer, AFTER)
    if context and event.phase in (START, AFTER):
        return words.said({"hookSpecificOutput": {"additionalContext": context, "hookEventName": event.name}})
    return Reply()


def fail(message: str, data: Record | None = None) -> Reply:
    name = words.text(data, "hook_event_name") if data else ""
    return words.failing(EVENTS, name, message, about="tool_name" in (data or {}))
