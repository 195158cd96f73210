"""Copilot CLI and agent: events without a name, recognised by their fields. Sampled of version 1.0.

Arguments may be a text of JSON. A hook that fails denies the action, one that takes too long allows it. Copilot also runs the hooks
of Claude Code's settings and then speaks as that tool does (as its editor extension always does): the answer is said in both forms,
and a second event for one action is answered as the first.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.guard.tools import claude, common
from gitcoord.guard.tools.common import PATCH, READ, SEARCH, SHELL, WRITE
from gitcoord.validators.tool_event import (
    AFTER,
    ALLOW,
    ASK,
    BEFORE,
    DENY,
    OTHER,
    START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    Answer,
    Reply,
    ToolEvent,
)

NAME = "copilot"

_FILE = ("path", "filePath", "file_path")
# What a subagent does comes under an id of its own, with that of the conversation that started it beside it.
_SESSION = ("parentAgentId", "parent_agent_id", "sessionId", "session_id")
_SUBAGENT = ("agentId", "agent_id", "agentName")
ACTIONS = {
    **claude.ACTIONS,
    **common.actions(
        ("Write Edit create edit delete", WRITE, *_FILE),
        ("apply_patch", PATCH, "patch", "input", "command"),
        ("Read view", READ, *_FILE),
        ("grep rg", SEARCH, "path", "paths"),
        ("glob", SEARCH, "path"),
        ("bash powershell", SHELL, "command", "cwd"),
        ("write_bash write_powershell", SHELL, "input"),
        # the editor extension's own
        ("create_file editFiles insert_edit_into_file replace_string_in_file", WRITE, *_FILE),
        ("multi_replace_string_in_file edit_notebook_file create_new_jupyter_notebook", WRITE, *_FILE),
        ("create_directory", WRITE, "dirPath"),
        ("read_file", READ, *_FILE),
        ("run_in_terminal", SHELL, "command"),
    ),
}


def read(data: Record) -> ToolEvent:
    if common.text(data, "hook_event_name", "hookEventName") and "toolName" not in data:
        return _as_claude(data)
    phase, name = _phase(data)
    given, action = data.get("toolArgs"), common.text(data, "toolName")
    event = ToolEvent(
        NAME,
        phase,
        common.text(data, *_SESSION),
        common.text(data, *_SUBAGENT),
        common.text(data, "cwd"),
        action or name,
        name=name,
        again=data.get("stop_hook_active") is True,
        id=_time(data),
        final=name == "sessionEnd",
    )
    failed = name == "postToolUseFailure" or _failed(data.get("toolResult"), "resultType", "textResultForLlm")
    return common.with_effects(event, _table(action, common.arguments(given)), action, given, failed=failed)


def _as_claude(data: Record) -> ToolEvent:
    """The same event in the words of Claude Code, and in those of the editor's extension."""
    session = common.text(data, *_SESSION)
    name = common.text(data, "hook_event_name", "hookEventName")
    action, args = common.text(data, "tool_name"), common.arguments(data.get("tool_input"))
    data = {**data, "session_id": session, "hook_event_name": name}
    if action == "Edit" and not common.text(args, *_FILE):
        action = data["tool_name"] = "apply_patch"  # it calls all its ways to edit by that one name
    event = claude.read_as(NAME, _table(action, args), data)
    failed = event.phase == AFTER and _failed(data.get("tool_result"), "result_type", "text_result_for_llm")
    return event._replace(failed=event.failed or failed, id=event.id or _time(data))


def _failed(result: object, kind: str, text: str) -> bool:
    """Copilot calls a command that ran and failed a success; only its text has the exit code."""
    if not isinstance(result, dict):
        return False
    return result.get(kind, "success") != "success" or common.exit_code(result.get(text), " with exit code ") != 0


def _time(data: Record) -> str:
    """The time of day: the one form of an event has milliseconds since 1970, the other a date."""
    time = data.get("timestamp")
    if type(time) is int:
        seconds, rest = divmod(time, 1000)
        return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"
    return time[11:23] if isinstance(time, str) else ""


def _table(action: str, args: Record) -> common.Table:
    if action == "str_replace_editor":
        return {action: (READ if args.get("command") == "view" else WRITE, *_FILE)}
    return ACTIONS


def _phase(data: Record) -> tuple[str, str]:
    """The name of the event; each has fields that no other has."""
    if "toolName" in data or "toolArgs" in data:
        if "toolResult" in data:
            return AFTER, "postToolUse"
        if "error" in data:
            return AFTER, "postToolUseFailure"
        return BEFORE, "preToolUse"
    if "agentName" in data:
        return (SUBAGENT_STOP, "subagentStop") if "stopReason" in data else (SUBAGENT_START, "subagentStart")
    if "stopReason" in data:
        return STOP, "agentStop"
    if "source" in data:
        return START, "sessionStart"
    if "reason" in data:
        return STOP, "sessionEnd"
    return OTHER, "other"


def answer(event: ToolEvent, answer: Answer) -> Reply:
    reply: Record = {}
    denied = answer.decision != ALLOW
    context = common.context(event, answer, AFTER)
    if denied and event.phase == BEFORE:
        reply["permissionDecision"] = "ask" if answer.decision == ASK else "deny"
        reply["permissionDecisionReason"] = common.reason(answer.reason)
    elif denied and event.phase in (STOP, SUBAGENT_STOP) and not event.final:
        reply |= {"decision": "block", "reason": common.reason(answer.reason)}
    if context and event.phase in (START, SUBAGENT_START, AFTER):
        reply["additionalContext"] = context
    if reply and event.name in claude.EVENTS and "decision" not in reply:
        reply["hookSpecificOutput"] = {"hookEventName": event.name, **reply}
    return common.json_reply(reply) if reply else Reply()


def fail(message: str, data: Record) -> Reply:
    """Closed before an action and where it is not known what is asked. Of a hook that fails Copilot does not show the reason."""
    name = common.text(data, "hook_event_name", "hookEventName")
    if name and "toolName" not in data:
        phase = claude.EVENTS.get(name, BEFORE if "tool_name" in data else OTHER)
    else:
        phase = _phase(data)[0] if "sessionId" in data else BEFORE
    if phase != BEFORE:
        return common.warn_reply(message)
    if not name and "toolName" not in data and "sessionId" not in data:
        return common.deny_reply(message)  # it may be another tool's
    return answer(ToolEvent(NAME, BEFORE, name=name), Answer(DENY, message))
