"""Windsurf: one form for all events; exit code 2 with a reason on stderr denies an action. Sampled of version 1.13.

There is no limit of time of its own, no question to a person and no text for the agent's context: what would be asked is denied, and
what would be told stands in the project's rules. A hook that crashes otherwise allows the action.
"""

from gitcoord.core.toolevents import AFTER, ALLOW, BEFORE, OTHER, STOP, Reply, ToolEvent
from gitcoord.hot.tools import words
from gitcoord.hot.tools.words import READ, SHELL, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.toolevents import Answer

NAME = "windsurf"
SAMPLED = "1.13"

EVENTS = {
    "pre_write_code": BEFORE,
    "pre_read_code": BEFORE,
    "pre_run_command": BEFORE,
    "pre_mcp_tool_use": BEFORE,
    "post_write_code": AFTER,
    "post_read_code": AFTER,
    "post_run_command": AFTER,
    "post_mcp_tool_use": AFTER,
    "pre_user_prompt": OTHER,
    "post_cascade_response": STOP,
    "post_cascade_response_with_transcript": OTHER,
    "post_setup_worktree": OTHER,
}
ACTIONS: "words.Table" = {
    "write_code": (WRITE, "file_path"),
    "read_code": (READ, "file_path"),
    "run_command": (SHELL, "command_line", "cwd"),
}


def read(data: "Record") -> ToolEvent:
    name = words.need(data, "agent_action_name")
    phase = EVENTS.get(name)
    if phase is None and name.startswith("pre"):
        raise ValueError(f"'{name}' is an event about an action that gitcoord does not know")
    info = words.arguments(data.get("tool_info"))
    side, _, action = name.partition("_")
    args = info
    if action == "mcp_tool_use":
        action = f"mcp__{words.text(info, 'mcp_server_name')}__{words.text(info, 'mcp_tool_name')}"
        args = words.arguments(info.get("mcp_tool_arguments"))
    judged = phase in (BEFORE, AFTER)
    deed = (words.deed if phase == BEFORE else words.done)(ACTIONS, action, args) if judged else words.NOTHING
    return ToolEvent(
        NAME,
        phase or OTHER,
        words.text(data, "trajectory_id"),
        cwd=words.text(info, "cwd") or words.text(data, "cwd"),
        action=action if judged else name,
        writes=deed.writes,
        reads=deed.reads,
        command=deed.command,
        failed=side == "post" and judged and words.unlucky(info),
        input=args if judged else {},
        name=name,
    )


def answer(event: ToolEvent, answer: "Answer") -> Reply:
    if answer.decision != ALLOW:
        if event.phase == BEFORE:
            return words.blocked(answer.reason)
        return Reply(err=(words.reason(answer.reason) + "\n").encode())
    return Reply(err=(words.plain(answer.context).strip() + "\n").encode()) if answer.context.strip() else Reply()


def fail(message: str, data: "Record | None" = None) -> Reply:
    """Closed before an action and where it is not known what is asked."""
    name = words.text(data, "agent_action_name") if data else ""
    phase = EVENTS.get(name, BEFORE if not name or name.startswith("pre") else OTHER)
    return words.blocked(message) if phase == BEFORE else words.noted(message)
