"""OpenCode: a plugin that setup puts beside it calls the guard with an event of our own form. Sampled of version 1.18.

    {"opencode": 1, "event": "before", "session": "...", "parent": "...", "cwd": "...", "call": "...", "tool": "edit",
     "args": {...}}

The plugin throws, which denies the action, unless the answer is literally 'allow': a guard that crashes, takes too long or
prints something else allows nothing. Its events are the phases of `validators/tool_event.py`.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.guard.tools import common
from gitcoord.guard.tools.common import PATCH, READ, SEARCH, SHELL, WRITE
from gitcoord.validators.tool_event import ALLOW, BEFORE, DENY, OTHER, PHASES, Answer, Reply, ToolEvent

NAME = "opencode"

_FILE = ("filePath", "path")
ACTIONS = common.actions(
    ("write edit multiedit", WRITE, *_FILE),
    ("patch apply_patch", PATCH, "patchText", "patch"),
    ("read", READ, *_FILE),
    ("list grep glob", SEARCH, "path"),
    ("bash", SHELL, "command", "workdir"),
)


def read(data: Record) -> ToolEvent:
    if data.get("opencode") != 1:
        raise ValueError("the plugin of OpenCode is of another version: git coord setup")
    phase = common.required(data, "event")
    if phase not in PHASES:
        raise ValueError(f"'{phase}' is an event that gitcoord does not know")
    parent, session = common.text(data, "parent"), common.text(data, "session")
    action = common.text(data, "tool")
    event = ToolEvent(
        NAME,
        phase,
        parent or session,
        session if parent else "",  # a subagent is a conversation of its own below its parent's
        common.text(data, "cwd"),
        action or phase,
        spent=common.sum_counts(data.get("tokens")),
        name=phase,
        id=common.text(data, "call"),
        final=data.get("final") is True,
    )
    failed = data.get("failed") is True
    return common.with_effects(event, ACTIONS, action, data.get("args"), failed=failed, spent=event.spent)


def answer(event: ToolEvent, answer: Answer) -> Reply:
    reply: Record = {"decision": ALLOW if answer.decision == ALLOW else DENY}
    if answer.decision != ALLOW:
        reply["reason"] = common.reason(answer.reason)
    if answer.context.strip():
        reply["context"] = common.without_surrogates(answer.context)
    return common.json_reply(reply)


def fail(message: str, data: Record) -> Reply:
    """Closed before an action and where it is not known what is asked."""
    phase = common.text(data, "event") if data.get("opencode") == 1 else ""
    harmless = phase in PHASES and phase not in (BEFORE, OTHER)
    return common.warn_reply(message) if harmless else common.deny_reply(message)
