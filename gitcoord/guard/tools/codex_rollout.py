"""Finds how a command of Codex CLI ended, in the rollout file that Codex keeps of a conversation.

The line is there before the event that follows a command. All that hangs on it is a count of failures: whatever cannot be read, or
is not as expected, is not known, and lets nothing pass.
"""

from __future__ import annotations

from gitcoord.git.files import close, fstat, open_to_read, pread
from gitcoord.guard.tools.common import parse
from gitcoord.validators.tool_event import ToolEvent

_TAIL = 1 << 20  # bytes; the line has what the command printed, cut off at 64 KiB, in which each one may take six


def with_outcome(event: ToolEvent) -> ToolEvent:
    """The event with its command's outcome from the rollout file."""
    return event._replace(failed=failed(_tail(event.transcript), event.id)) if event.id else event


def failed(tail: bytes, id: str) -> bool | None:
    """Whether the command of this id did not succeed; None where this end of a record does not say so plainly."""
    mark = id.encode("utf-8", "replace")
    for line in reversed(tail.split(b"\n")):
        item = _item(line) if mark in line else {}
        if item.get("type") == "CommandExecution" and item.get("id") == id:
            code = item.get("exit_code")
            return code != 0 if type(code) is int else None
    return None


def _item(line: bytes) -> dict[str, object]:
    """The completed item that a line records; {} for any other line or an incomplete one."""
    try:
        record = parse(line.decode())
    except ValueError:
        return {}
    payload = record.get("payload") if isinstance(record, dict) and record.get("type") == "event_msg" else None
    item = payload.get("item") if isinstance(payload, dict) and payload.get("type") == "item_completed" else None
    return item if isinstance(item, dict) else {}


def _tail(path: str) -> bytes:
    """The end of a file; nothing of what has none: a pipe, a directory."""
    try:
        fd = open_to_read(path, waits=False)
    except (OSError, ValueError):
        return b""
    try:
        return pread(fd, _TAIL, max(0, fstat(fd).st_size - _TAIL))
    except OSError:
        return b""
    finally:
        close(fd)
