"""`git coord number`: print the next numbers of a sequence, one a line."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import CONFIG
from gitcoord.claims import pathspec as paths
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
        result = numbers.reserve(call.ctx, call.actor(), words[0], count, _file(call, str(values.get("file", ""))))
    call.screen.answer(result)
    call.screen.say(*result["numbers"])  # type: ignore[misc]
    if "claimed" in result:
        call.screen.note(f"claimed {call.typed(str(result['claimed']))}")
    if not result["declared"] and result["first"] == 1:
        call.screen.note(f"note: {CONFIG} has no sequence '{words[0]}', so no files were looked at")
    return 0


def _file(call: Call, pattern: str) -> str:
    """The path to claim, from the top of the repository; '{n}' in its name stands for the number."""
    if not pattern:
        return ""
    if pattern.rpartition("/")[2].count("{n}") != 1 or pattern.count("{n}") != 1:
        raise UsageError(
            "--file needs {n} once, in the file's name", hints=("--file 'db/migrations/{n}_add_user.sql'",)
        )
    (item,) = paths.items(call.ctx.repo, [pattern])
    if item.space != "path":
        raise UsageError("--file names a file, not a resource")
    return item.name
