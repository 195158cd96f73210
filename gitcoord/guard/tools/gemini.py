"""Gemini CLI: events on stdin, answers as JSON; any other text on stdout allows the action. Sampled of version 0.61.

A hook that crashes or takes too long (its limit is in milliseconds) only warns: the action goes on. Exit code 2 denies it.
"""

from __future__ import annotations

from gitcoord.base.agent_tools import HOOKS_ON
from gitcoord.base.codec import Record
from gitcoord.guard.tools import common
from gitcoord.guard.tools.common import READ, SEARCH, SHELL, WRITE
from gitcoord.validators.tool_event import AFTER, ALLOW, BEFORE, START, STOP, Answer, Reply, ToolEvent

NAME = "gemini"

EVENTS = common.events(
    before="BeforeTool",
    after="AfterTool",
    start="SessionStart",
    stop="AfterAgent SessionEnd",
    other="BeforeAgent BeforeModel AfterModel BeforeToolSelection PreCompress",
)
ACTIONS = common.actions(
    ("write_file replace edit", WRITE, "file_path"),
    ("read_file", READ, "file_path", "absolute_path"),
    ("read_many_files", READ, "include", "paths"),
    ("list_directory glob grep_search search_file_content", SEARCH, "dir_path", "path"),
    ("run_shell_command", SHELL, "command", "dir_path", "directory"),
)


_SUBAGENT = "invoke_agent"  # its subagents report no start; what is added to their prompt reaches them


def read(data: Record) -> ToolEvent:
    name = common.required(data, "hook_event_name")
    action = common.text(data, "tool_name")
    event = ToolEvent(
        NAME,
        common.phase_of(EVENTS, name, about="tool_name" in data),
        common.text(data, "session_id"),
        cwd=common.text(data, "cwd"),
        action=action or name,
        name=name,
        again=data.get("stop_hook_active") is True,
        id=common.text(data, "timestamp"),
        final=name == "SessionEnd",
        cleared=data.get("source") == "clear",
    )
    failed = _failed(data.get("tool_response"))
    event = event._replace(starts_subagent=event.phase == BEFORE and action == _SUBAGENT)
    return common.with_effects(event, ACTIONS, action, data.get("tool_input"), failed=failed)


def _failed(result: object) -> bool:
    """Only the text of the result has the exit code of a command that ran and failed."""
    text = result.get("llmContent") if isinstance(result, dict) else None
    return common.is_failure(result) or common.exit_code(text, "\nExit Code: ") != 0


def _usable(text: str) -> str:
    """The text with commits as they work in its shell, which hides the user's name from git."""
    return text.replace(": git coord commit ", f": {HOOKS_ON}git coord commit ")


def answer(event: ToolEvent, answer: Answer) -> Reply:
    answer = answer._replace(reason=_usable(answer.reason), context=_usable(answer.context))
    if answer.decision != ALLOW and (event.phase == BEFORE or (event.phase == STOP and not event.final)):
        return common.json_reply({"decision": "deny", "reason": common.reason(answer.reason)})
    prompt = event.input.get("prompt")
    if event.phase == BEFORE and event.starts_subagent and answer.context and isinstance(prompt, str):
        given = {**event.input, "prompt": f"{prompt}\n\n{common.without_surrogates(answer.context)}"}
        return common.json_reply({"hookSpecificOutput": {"hookEventName": event.name, "tool_input": given}})
    # A denial afterwards would hide the action's result from the agent, so the reason is added to it.
    context = common.context(event, answer, AFTER)
    if context and event.phase in (START, AFTER):
        return common.json_reply({"hookSpecificOutput": {"additionalContext": context, "hookEventName": event.name}})
    return Reply()


def fail(message: str, data: Record) -> Reply:
    return common.failure_reply(EVENTS, common.text(data, "hook_event_name"), message, about="tool_name" in data)
