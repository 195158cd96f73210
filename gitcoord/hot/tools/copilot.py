"""Copilot CLI and agent: events without a name, told apart by what they carry. Sampled of version 1.0.

Arguments may be a text of JSON. A hook that fails denies the action, one that takes too long allows it. Copilot also runs the hooks
of Claude Code's settings and then speaks as that tool does (as its editor extension always does): the answer is said in both forms,
and a second event for one action is answered as the first.
"""

from gitcoord.core.toolevents import (
    AFTER,
    ALLOW,
    ASK,
    BEFORE,
    OTHER,
    START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    Reply,
    ToolEvent,
)
from gitcoord.hot.tools import claude, words
from gitcoord.hot.tools.words import PATCH, READ, SEARCH, SHELL, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.toolevents import Answer

NAME = "copilot"
SAMPLED = "1.0"

_FILE = ("path", "filePath", "file_path")
ACTIONS: "words.Table" = {
    **claude.ACTIONS,
    "create": (WRITE, *_FILE),
    "edit": (WRITE, *_FILE),
    "delete": (WRITE, *_FILE),
    "apply_patch": (PATCH, "patch", "input", "command"),
    "view": (READ, *_FILE),
    "grep": (SEARCH, "path", "paths"),
    "rg": (SEARCH, "path", "paths"),
    "glob": (SEARCH, "path"),
    "bash": (SHELL, "command", "cwd"),
    "powershell": (SHELL, "command", "cwd"),
    "write_bash": (SHELL, "input"),
    "write_powershell": (SHELL, "input"),
    "Write": (WRITE, *_FILE),
    "Edit": (WRITE, *_FILE),
    "Read": (READ, *_FILE),
    # the editor extension's own
    "create_file": (WRITE, *_FILE),
    "create_directory": (WRITE, "dirPath"),
    "editFiles": (WRITE, *_FILE),
    "insert_edit_into_file": (WRITE, *_FILE),
    "replace_string_in_file": (WRITE, *_FILE),
    "multi_replace_string_in_file": (WRITE, *_FILE),
    "edit_notebook_file": (WRITE, *_FILE),
    "create_new_jupyter_notebook": (WRITE, *_FILE),
    "read_file": (READ, *_FILE),
    "run_in_terminal": (SHELL, "command"),
}


def read(data: "Record") -> ToolEvent:
    if words.text(data, "hook_event_name", "hookEventName") and "toolName" not in data:
        return _as_claude(data)
    phase, name = _phase(data)
    given, action = data.get("toolArgs"), words.text(data, "toolName")
    event = ToolEvent(
        NAME,
        phase,
        words.text(data, "sessionId"),
        words.text(data, "agentId", "agentName"),
        words.text(data, "cwd"),
        action or name,
        name=name,
        again=data.get("stop_hook_active") is True,
        final=name == "sessionEnd",
    )
    if phase not in (BEFORE, AFTER):
        return event
    if phase == BEFORE:
        words.need(data, "toolName")
    args = words.arguments(given)
    look = words.deed if phase == BEFORE else words.done
    deed = look(_table(action, args), action, args, given if isinstance(given, str) and not args else "")
    result = data.get("toolResult")
    kind = result.get("resultType", "success") if isinstance(result, dict) else "success"
    return event._replace(
        writes=deed.writes,
        reads=deed.reads,
        command=deed.command,
        cwd=words.inside(event.cwd, deed.place) if deed.command else event.cwd,
        failed=phase == AFTER and (name == "postToolUseFailure" or kind != "success"),
        input=args,
    )


def _as_claude(data: "Record") -> ToolEvent:
    """The same event in the words of Claude Code, and in those of the editor's extension."""
    session = words.text(data, "session_id", "sessionId")
    name = words.text(data, "hook_event_name", "hookEventName")
    action, args = words.text(data, "tool_name"), words.arguments(data.get("tool_input"))
    data = {**data, "session_id": session, "hook_event_name": name}
    if action == "Edit" and not words.text(args, *_FILE):
        action = data["tool_name"] = "apply_patch"  # it calls all its ways to edit by that one name
    event = claude.read_as(NAME, _table(action, args), data)
    result = data.get("tool_result")
    kind = result.get("result_type", "success") if isinstance(result, dict) else "success"
    return event._replace(failed=event.failed or (event.phase == AFTER and kind != "success"))


def _table(action: str, args: "Record") -> "words.Table":
    if action == "str_replace_editor":
        return {action: (READ if args.get("command") == "view" else WRITE, *_FILE)}
    return ACTIONS


def _phase(data: "Record") -> tuple[str, str]:
    """Which event it is; each has fields that no other has."""
    if "toolName" in data or "toolArgs" in data:
        if "toolResult" in data:
            return AFTER, "postToolUse"
        if "error" in data:
            return AFTER, "postToolUseFailure"
        return BEFORE, "preToolUse"
    if "agentName" in data or "agentId" in data:
        return (SUBAGENT_STOP, "subagentStop") if "stopReason" in data else (SUBAGENT_START, "subagentStart")
    if "stopReason" in data:
        return STOP, "agentStop"
    if "source" in data:
        return START, "sessionStart"
    if "reason" in data:
        return STOP, "sessionEnd"
    return OTHER, "other"


def answer(event: ToolEvent, answer: "Answer") -> Reply:
    told: Record = {}
    denied = answer.decision != ALLOW
    context = words.context(event, answer, AFTER)
    if denied and event.phase == BEFORE:
        told["permissionDecision"] = "ask" if answer.decision == ASK else "deny"
        told["permissionDecisionReason"] = words.reason(answer.reason)
    elif denied and event.phase in (STOP, SUBAGENT_STOP) and not event.final:
        told |= {"decision": "block", "reason": words.reason(answer.reason)}
    if context and event.phase in (START, SUBAGENT_START, AFTER):
        told["additionalContext"] = context
    if told and event.name in claude.EVENTS and "decision" not in told:
        told["hookSpecificOutput"] = {"hookEventName": event.name, **told}
    return words.said(told) if told else Reply()


def fail(message: str, data: "Record | None" = None) -> Reply:
    """Closed before an action and where it is not known what is asked."""
    if data and words.text(data, "hook_event_name", "hookEventName") and "toolName" not in data:
        return claude.fail(message, {**data, "hook_event_name": words.text(data, "hook_event_name", "hookEventName")})
    phase = _phase(data)[0] if data and "sessionId" in data else BEFORE
    return words.blocked(message) if phase == BEFORE else words.noted(message)
