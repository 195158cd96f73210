"""Cursor: many events of one flat form, answered as JSON; 'allow' is said, not left out. Sampled of version 3.18.

With `failClosed` in its settings a hook that crashes, takes too long or prints no JSON denies the action, so silence would too.
'ask' is accepted and not enforced before an action: it becomes a denial. Cursor also runs the hooks of Claude Code's settings, with
the same event as its own, so nothing tells which of them asks: an action is denied in both forms.

Its subagents act in conversations of their own. The events for their start and end come from the parent's conversation, with an
id that no other event has; so they are ignored, and each such conversation is an agent of its own unless its events name the parent.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.guard.tools import claude, common
from gitcoord.guard.tools.common import PATCH, READ, SEARCH, SHELL, WRITE
from gitcoord.validators.tool_event import AFTER, ALLOW, BEFORE, START, STOP, Answer, Reply, ToolEvent

NAME = "cursor"

EVENTS = {
    **claude.EVENTS,
    **common.events(
        before="preToolUse beforeShellExecution beforeMCPExecution beforeReadFile beforeTabFileRead",
        after="postToolUse postToolUseFailure afterShellExecution afterMCPExecution afterFileEdit afterTabFileEdit",
        start="sessionStart",
        stop="sessionEnd stop",
        other="beforeSubmitPrompt subagentStart SubagentStart subagentStop SubagentStop",
    ),
}
_FILE = ("file_path", "path", "target_file", "filePath")
_PLACE = ("file_path", "path", "target_directory")  # a search, too, calls the directory 'file_path'
ACTIONS = common.actions(
    ("Write StrReplace Edit MultiEdit TabWrite Delete", WRITE, *_FILE),
    ("EditNotebook NotebookEdit", WRITE, "target_notebook", "notebook_path", *_FILE),
    ("ApplyPatch", PATCH, "patch", "input", "command"),
    ("Read TabRead", READ, *_FILE),
    ("Grep Glob LS", SEARCH, *_PLACE),
    ("Shell Bash", SHELL, "command", "working_directory"),
)
# Events that are about one kind of action and carry its arguments themselves.
_FLAT = common.actions(
    ("beforeShellExecution afterShellExecution", SHELL, "command"),
    ("beforeReadFile beforeTabFileRead", READ, "file_path"),
    ("afterFileEdit afterTabFileEdit", WRITE, "file_path"),
)
# What is asked here waits for a yes, and gitcoord never has another answer.
_YES: Record = {
    "beforeSubmitPrompt": {"continue": True},
    "subagentStart": {"permission": "allow"},
    "SubagentStart": {"permission": "allow"},
}


def read(data: Record) -> ToolEvent:
    name = common.required(data, "hook_event_name")
    roots = data.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    loops = data.get("loop_count")
    action = common.text(data, "tool_name")
    parent, own = common.text(data, "parent_conversation_id"), common.text(data, "conversation_id", "session_id")
    event = ToolEvent(
        NAME,
        common.phase_of(EVENTS, name, about=_about(name, data)),
        parent or own,
        common.text(data, "subagent_id") or (own if parent and own != parent else ""),
        common.text(data, "cwd") or root,
        action or name,
        spent=common.sum_counts(data.get("input_tokens"), data.get("output_tokens")),
        name=name,
        again=(type(loops) is int and loops > 0) or data.get("stop_hook_active") is True,
        id=common.text(data, "tool_use_id"),
        final=name in ("sessionEnd", "SessionEnd"),
    )
    failed = name in ("postToolUseFailure", "PostToolUseFailure")
    failed = failed or common.is_failure(data.get("tool_output", data.get("tool_response")))
    if name in _FLAT:
        return common.with_effects(event, _FLAT, name, data, failed=failed, spent=event.spent)
    if name in ("beforeMCPExecution", "afterMCPExecution") and action:
        action = f"MCP:{action}"  # a server may call its tool as one of Cursor's own
    return common.with_effects(event, ACTIONS, action, data.get("tool_input"), failed=failed, spent=event.spent)


def _about(name: str, data: Record) -> bool:
    return name.startswith("before") or "tool_name" in data


def answer(event: ToolEvent, answer: Answer) -> Reply:
    denied = answer.decision != ALLOW
    why = common.reason(answer.reason)
    if event.phase == BEFORE:
        reply: Record = {"permission": "deny" if denied else "allow"}
        if denied:
            reply |= {"user_message": why, "agent_message": why}
            if event.name in ("preToolUse", "PreToolUse"):
                specific = {"permissionDecision": "deny", "permissionDecisionReason": why}
                reply["hookSpecificOutput"] = {"hookEventName": "PreToolUse", **specific}
        return common.json_reply(reply)
    if event.phase == STOP:
        return common.json_reply({"followup_message": why}) if denied and not event.final else common.json_reply({})
    if event.phase in (START, AFTER):
        context = common.context(event, answer, AFTER)
        return common.json_reply({"additional_context": context} if context else {})
    return common.json_reply(_YES.get(event.name, {}))


def fail(message: str, data: Record) -> Reply:
    name = common.text(data, "hook_event_name")
    if name in _YES:
        return common.json_reply(_YES[name])._replace(err=common.warn_reply(message).err)
    return common.failure_reply(EVENTS, name, message, about=_about(name, data))
