"""Claude Code: events on stdin, answers as JSON with exit code 0. Sampled of version 2.1.

Allowing is silence: a printed 'allow' would skip the questions that the tool itself would ask the person. A hook that crashes or
takes too long allows the action, unless its settings say `onFailure: block`.

Devin's own agent runs the hooks of Claude Code's settings too, with other words for its actions (published recordings of its version
3000.6): they are judged as well, and denied by the exit code, the one form that both are known to take.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.guard.tools import common
from gitcoord.guard.tools.common import PATCH, READ, SEARCH, SHELL, WRITE
from gitcoord.validators.tool_event import (
    AFTER,
    ALLOW,
    ASK,
    BEFORE,
    START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    Answer,
    Reply,
    ToolEvent,
)

NAME = "claude"

EVENTS = common.events(
    before="PreToolUse",
    after="PostToolUse PostToolUseFailure",
    start="SessionStart",
    stop="Stop SessionEnd",
    subagent_start="SubagentStart",
    subagent_stop="SubagentStop",
    other="PermissionRequest PermissionDenied",  # the action itself is judged before it runs
)
ACTIONS = common.actions(
    ("Write Edit MultiEdit", WRITE, "file_path"),
    ("NotebookEdit", WRITE, "notebook_path"),
    ("Read", READ, "file_path"),
    ("NotebookRead", READ, "notebook_path"),
    ("Grep Glob LS", SEARCH, "path"),
    ("Bash PowerShell Monitor", SHELL, "command"),
)
_DEVIN = common.actions(
    ("exec", SHELL, "command"),
    ("write edit", WRITE, "file_path"),
    ("notebook_edit", WRITE, "notebook_path"),
    ("apply_patch", PATCH, "patch", "input", "command"),
    ("read", READ, "file_path"),
    ("notebook_read", READ, "notebook_path"),
    ("grep glob", SEARCH, "path"),
)


def read(data: Record) -> ToolEvent:
    return read_as(NAME, {**ACTIONS, **_DEVIN}, data)


def read_as(tool: str, actions: common.Table, data: Record) -> ToolEvent:
    """The event of a tool that speaks as Claude Code does."""
    name = common.required(data, "hook_event_name")
    action, result = common.text(data, "tool_name"), data.get("tool_response")
    event = ToolEvent(
        tool,
        common.phase_of(EVENTS, name, about="tool_name" in data),
        common.text(data, "session_id"),
        common.text(data, "agent_id"),
        common.text(data, "cwd"),
        action or name,
        name=name,
        again=data.get("stop_hook_active") is True,
        id=common.text(data, "tool_use_id"),
        final=name == "SessionEnd",
        cleared=data.get("source") == "clear",
    )
    failed = name == "PostToolUseFailure" or common.is_failure(result)
    spent = common.sum_counts(result.get("totalTokens")) if isinstance(result, dict) else 0
    return common.with_effects(event, actions, action, data.get("tool_input"), failed=failed, spent=spent)


def answer(event: ToolEvent, answer: Answer) -> Reply:
    if event.phase == BEFORE and event.action in _DEVIN and answer.decision != ALLOW:
        return common.deny_reply(answer.reason)
    return answer_as(event, answer, ask=True)


_CONTEXT = (BEFORE, AFTER, START, SUBAGENT_START)  # where the tool takes text for the agent


def answer_as(event: ToolEvent, answer: Answer, *, ask: bool) -> Reply:
    """`ask`: whether the tool asks the person; where it does not, what would be asked is denied."""
    specific: Record = {}
    context = common.context(event, answer)
    if context and event.phase in _CONTEXT:
        specific["additionalContext"] = context
    if answer.decision != ALLOW and event.phase == BEFORE:
        specific["permissionDecision"] = "ask" if ask and answer.decision == ASK else "deny"
        specific["permissionDecisionReason"] = common.reason(answer.reason)
    reply: Record = {}
    if specific:
        reply["hookSpecificOutput"] = {"hookEventName": event.name, **specific}
    # A conversation that is over cannot be asked for anything.
    if answer.decision != ALLOW and event.phase in (AFTER, STOP, SUBAGENT_STOP) and not event.final:
        reply |= {"decision": "block", "reason": common.reason(answer.reason)}
    return common.json_reply(reply) if reply else Reply()


def fail(message: str, data: Record) -> Reply:
    return common.failure_reply(EVENTS, common.text(data, "hook_event_name"), message, about="tool_name" in data)
