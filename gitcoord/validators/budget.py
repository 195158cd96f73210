"""budget: limits on the tool calls, bytes, seconds and tokens of a session, as far as the tool reports them."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.validators import BLOCK, WARN, Result, Validator
from gitcoord.validators.tally import Tally
from gitcoord.validators.tool_event import ToolEvent

_SOON = 80  # percent from which on it warns
_LAST = ("git add ", "git commit", "git status", "git diff", "git push", "git handoff", "git claim", "git coord")
_HINTS = ("bring it to an end: commit, release, hand over (git handoff new), git coord stop",)


def judge(validator: Validator, tally: Tally, event: ToolEvent, now: int) -> list[Result]:
    """Judge a tool call before it runs. When the budget is used up, commits, releases and handoffs are still allowed."""
    limits = (
        ("calls", tally.calls, validator.number("calls"), "tool calls"),
        ("bytes", tally.bytes, validator.number("bytes"), "bytes"),
        ("tokens", tally.tokens, validator.number("tokens"), "tokens"),
        ("time", now - tally.since, validator.duration("time"), ""),
    )
    results = []
    for key, used, limit, what in limits:
        if not limit or used * 100 < limit * _SOON:
            continue
        words = f"{used} of {limit} {what}" if key != "time" else f"{format_duration(used)} of {format_duration(limit)}"
        spent = used >= limit
        last = spent and is_last_word(event)
        outcome = BLOCK if spent and not last else WARN
        results.append(validator.result(outcome, f"{words} of this session are used", _HINTS))
    return results


def is_last_word(event: ToolEvent) -> bool:
    """Return whether this is one plain command that finishes work."""
    command = event.command.strip()
    return command.startswith(_LAST) and not any(mark in command for mark in (";", "&", "|", "`", "$("))
