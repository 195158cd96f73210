"""spiral: stops an edit that is repeated, and a command that keeps failing while nothing changes."""

from __future__ import annotations

from gitcoord.validators import BLOCK, Result, Validator
from gitcoord.validators.tally import Tally, fingerprint, times
from gitcoord.validators.tool_event import ToolEvent

REPEATS, FAILURES = 3, 4
_HINTS = (
    "look at what it does, and try another way",
    "or say what you know and let another look: git coord task needs-human <task> --reason '...'; or: git handoff new",
)


def judge(validator: Validator, tally: Tally, event: ToolEvent) -> Result | None:
    """Judge a tool call before it runs; `tally` does not count it yet."""
    key = fingerprint(event)
    if event.command:
        failed = times(tally.failures, key)
        if failed >= validator.number("failures", FAILURES):
            return validator.result(
                BLOCK, f"this command has failed {failed} times, and nothing was changed in between", _HINTS
            )
        return None
    made = times(tally.edits, key) if event.writes else 0
    if made and made >= validator.number("repeats", REPEATS):
        return validator.result(BLOCK, f"this very edit was made {made} times already", _HINTS)
    return None
