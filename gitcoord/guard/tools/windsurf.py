"""Windsurf: one form for all events; exit code 2 with a reason on stderr denies an action. Sampled of version 1.13.

It has no time limit for hooks, asks no person, and takes no text for the agent's context: a question becomes a denial, and the text is
in the project's rules. A hook that crashes otherwise allows the action.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.guard.tools import common
from gitcoord.guard.tools.common import READ, SHELL, WRITE
from gitcoord.validators.tool_event import AFTER, ALLOW, BEFORE, Answer, Reply, ToolEvent

NAME = "windsurf"

EVENTS = common.events(
    before="pre_write_code pre_read_code pre_run_command pre_mcp_tool_use",
    after="post_write_code post_read_code post_run_command post_mcp_tool_use",
    stop="post_cascade_response",
    other="pre_user_prompt post_cascade_response_with_transcript post_setup_worktree",
)
ACTIONS = common.actions(
    ("write_code", WRITE, "file_path"),
    ("read_code", READ, "file_path"),
    ("run_command", SHELL, "command_line", "cwd"),
)


def read(data: Record) -> ToolEvent:
    name = common.required(data, "agent_action_name")
    info = common.arguments(data.get("tool_info"))
    action = name.partition("_")[2]
    args: object = info
    if action == "mcp_tool_use":
        action = f"mcp__{common.text(info, 'mcp_server_name')}__{common.text(info, 'mcp_tool_name')}"
        args = info.get("mcp_tool_arguments")
    phase = common.phase_of(EVENTS, name, about=name.startswith("pre"))
    event = ToolEvent(
        NAME,
        phase,
        common.text(data, "trajectory_id"),
        cwd=common.text(info, "cwd") or common.text(data, "cwd"),
        action=action if phase in (BEFORE, AFTER) else name,
        name=name,
        id=common.text(data, "timestamp"),
    )
    event = common.with_effects(event, ACTIONS, action, args, failed=common.is_failure(info))
    # The event has neither the exit code of a command nor its output.
    return event._replace(failed=None) if phase == AFTER and event.command and not event.failed else event


def answer(event: ToolEvent, answer: Answer) -> Reply:
    if answer.decision != ALLOW:
        if event.phase == BEFORE:
            return common.deny_reply(answer.reason)
        return Reply(err=(common.reason(answer.reason) + "\n").encode())
    text = common.without_surrogates(answer.context).strip()
    return Reply(err=f"{text}\n".encode()) if text else Reply()


def fail(message: str, data: Record) -> Reply:
    name = common.text(data, "agent_action_name")
    return common.failure_reply(EVENTS, name, message, about=name.startswith("pre"))
