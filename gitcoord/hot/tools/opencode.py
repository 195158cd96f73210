"""OpenCode: a plugin that setup puts beside it calls the guard with an event of our own form. Sampled of version 1.2.

    {"opencode": 1, "event": "before", "session": "...", "parent": "...", "cwd": "...", "tool": "edit", "args": {...}}

The plugin throws, which denies the action, unless it is told 'allow' in so many words: a guard that crashes, takes too long or
prints something else allows nothing. Its events are the phases of `core/toolevents.py`.
"""

from gitcoord.core.toolevents import AFTER, ALLOW, BEFORE, DENY, OTHER, PHASES, Reply, ToolEvent
from gitcoord.hot.tools import words
from gitcoord.hot.tools.words import PATCH, READ, SEARCH, SHELL, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.toolevents import Answer

NAME = "opencode"
SAMPLED = "1.2"

_FILE = ("filePath", "path")
ACTIONS: "words.Table" = {
    "write": (WRITE, *_FILE),
    "edit": (WRITE, *_FILE),
    "multiedit": (WRITE, *_FILE),
    "patch": (PATCH, "patchText", "patch"),
    "apply_patch": (PATCH, "patchText", "patch"),
    "read": (READ, *_FILE),
    "list": (SEARCH, "path"),
    "grep": (SEARCH, "path"),
    "glob": (SEARCH, "path"),
    "bash": (SHELL, "command", "workdir"),
}


def read(data: "Record") -> ToolEvent:
    if data.get("opencode") != 1:
        raise ValueError("the plugin of OpenCode is of another version: run git coord setup again")
    phase = words.need(data, "event")
    if phase not in PHASES:
        raise ValueError(f"'{phase}' is an event that gitcoord does not know")
    parent, session = words.text(data, "parent"), words.text(data, "session")
    action = words.text(data, "tool")
    args = words.arguments(data.get("args"))
    deed = words.NOTHING
    if phase == BEFORE:
        words.need(data, "tool")
        deed = words.deed(ACTIONS, action, args)
    elif phase == AFTER:
        deed = words.done(ACTIONS, action, args)
    cwd = words.text(data, "cwd")
    return ToolEvent(
        NAME,
        phase,
        parent or session,
        session if parent else "",  # a subagent is a conversation of its own below its parent's
        words.inside(cwd, deed.place) if deed.command else cwd,
        action or phase,
        deed.writes,
        deed.reads,
        deed.command,
        phase == AFTER and data.get("failed") is True,
        words.count(data.get("tokens")),
        args,
        name=phase,
        final=data.get("final") is True,
    )


def answer(event: ToolEvent, answer: "Answer") -> Reply:
    told: Record = {"decision": ALLOW if answer.decision == ALLOW else DENY}
    if answer.decision != ALLOW:
        told["reason"] = words.reason(answer.reason)
    if answer.context.strip():
        told["context"] = words.plain(answer.context)
    return words.said(told)


def fail(message: str, data: "Record | None" = None) -> Reply:
    """Closed before an action and where it is not known what is asked."""
    phase = words.text(data, "event") if data and data.get("opencode") == 1 else ""
    harmless = phase in PHASES and phase not in (BEFORE, OTHER)
    return words.noted(message) if harmless else words.blocked(message)
