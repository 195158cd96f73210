"""One small file for each agent tool: its words into a ToolEvent, an Answer into the exact bytes that it understands.

Each says in its first line the newest version of which events are in `tests/guard/samples/` or `recorded/`. It has NAME; `read(data)`, which
raises ValueError where a thing that must be judged has a shape that it does not know; `answer(event, answer)`; and `fail(message,
data)`, which says that gitcoord itself could not judge. They are pure, and on the quick path: ADR 23.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.guard.tools import common
from gitcoord.validators.tool_event import Answer, Reply, ToolEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Tool(Protocol):
        NAME: str

        def read(self, data: Record, /) -> ToolEvent: ...
        def answer(self, event: ToolEvent, answer: Answer, /) -> Reply: ...
        def fail(self, message: str, data: Record, /) -> Reply: ...


NAMES = ("claude", "codex", "gemini", "cursor", "copilot", "windsurf", "opencode")
LIMIT = 10  # seconds that setup gives the guard in each tool's settings; its own deadline must be below

parse = common.parse  # JSON as tools send it
fail = common.deny_reply  # for input of an unknown tool: every tool takes it for a denial


def detect(data: object) -> Tool:
    """The tool that sent an event, known by the event's fields alone: tools set each other's environment variables."""
    if not isinstance(data, dict):
        raise ValueError("the event is no JSON object")
    return load(_name(data))


def load(name: str) -> Tool:
    """The file of one tool; the others are not loaded."""
    tool: Tool = __import__(f"gitcoord.guard.tools.{name}", fromlist=("read",))
    return tool


def _name(data: Record) -> str:
    if "cursor_version" in data or ("conversation_id" in data and "workspace_roots" in data):
        return "cursor"
    if "agent_action_name" in data:
        return "windsurf"
    if "toolName" in data or "sessionId" in data:
        return "copilot"
    if "opencode" in data:
        return "opencode"
    if common.text(data, "hook_event_name").startswith(("Before", "After", "PreCompress")):
        return "gemini"
    if "turn_id" in data:
        return "codex"
    return _alike(data)


def _alike(data: Record) -> str:
    """Starts and ends are alike in four tools; all events of a conversation must come out as the same one."""
    transcript = common.text(data, "transcript_path")
    if "/.codex/" in transcript or transcript.rpartition("/")[2].startswith("rollout-"):
        return "codex"
    if "timestamp" not in data:
        return "claude"
    # Claude Code and Codex tell no time. Gemini always names the transcript, Copilot's command line does not; its editor
    # extension does, and calls every start 'new' and its tools' events as Claude Code does.
    own = data.get("hook_event_name") in ("SessionStart", "SessionEnd", "Notification") and data.get("source") != "new"
    return "gemini" if own and "transcript_path" in data else "copilot"
