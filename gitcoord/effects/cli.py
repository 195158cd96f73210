"""`git coord number`: print the next numbers of a sequence, one a line."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import CONFIG
from gitcoord.effects import service as numbers
from gitcoord.terminal import call as verbs
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


def number(call: Call, values: Values, words: list[str]) -> int:
    count = verbs.number(values, "count", 1)
    if values.get("peek"):
        if "count" in values:
            raise UsageError("--peek goes without --count: it shows one number")
        call.recent()
        result = numbers.peek(call.ctx, words[0])
    else:
        result = numbers.reserve(call.ctx, call.actor(), words[0], count)
    call.screen.answer(result)
    call.screen.say(*result["numbers"])  # type: ignore[misc]
    if not result["declared"] and result["first"] == 1:
        call.screen.note(f"note: {CONFIG} has no sequence '{words[0]}', so no files were looked at")
    return 0
