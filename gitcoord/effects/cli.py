"""`git coord number`: print the next numbers of a sequence, one a line."""

from __future__ import annotations

from fnmatch import fnmatchcase

from gitcoord.base.errors import UsageError
from gitcoord.base.names import CONFIG, printable, quote, shell_word
from gitcoord.claims import pathspec as paths
from gitcoord.claims.facts import project_settings
from gitcoord.cli.meant import is_misspelt
from gitcoord.effects import service as numbers
from gitcoord.effects.sequences import Sequence, sequences
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal import call as verbs
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values

_SHOWN = 5


def number(call: Call, values: Values, words: list[str]) -> int:
    count = verbs.number(values, "count", 1)
    declared = sequences(project_settings(call.ctx, read_snapshot(call.ctx)))
    _require_no_mistake(words[0], declared)
    if values.get("peek"):
        if "count" in values:
            raise UsageError("--peek goes without --count: it shows one number")
        call.recent()
        result = numbers.peek(call.ctx, words[0])
    else:
        result = numbers.reserve(
            call.ctx,
            call.actor(),
            words[0],
            count,
            _file(call, str(values["file"]) if "file" in values else None, declared.get(words[0])),
        )
    call.screen.answer(result)
    call.screen.say(*result["numbers"])  # type: ignore[misc]
    call.screen.note(*_gap(result, declared.get(words[0])))
    if "claimed" in result:
        call.screen.note(f"claimed {call.typed(str(result['claimed']))}")
        call.screen.note(*_unlike(call, declared.get(words[0]), str(result["claimed"])))
    if not result["declared"] and result["first"] == 1:
        call.screen.note(f"note: {CONFIG} has no sequence '{words[0]}', so no files were looked at")
    return 0


def _gap(result: dict[str, object], sequence: Sequence | None) -> list[str]:
    """A line about the numbers between the highest one of a file and this one: they were reserved before."""
    low, high = int(str(result["floor"])) + 1, int(str(result["first"])) - 1
    if sequence is None or not sequence.patterns or low > high:
        return []
    which = f"{low} is" if low == high else f"{low} to {high} are"
    return [f"note: {which} reserved too, and no file here has that number yet"]


def _require_no_mistake(name: str, declared: dict[str, Sequence]) -> None:
    """UsageError for a path or a misspelt name, where the project has sequences. Any other new name begins a sequence of its own."""
    if name not in declared and ("/" in name and declared or any(_is_like(name, each) for each in declared.values())):
        known = [f"git coord number {shell_word(each)}{_files(declared[each])}" for each in declared]
        raise UsageError(f"{quote(name[:80])} is no sequence of {CONFIG}", hints=tuple(known[:_SHOWN]))


def _is_like(name: str, sequence: Sequence) -> bool:
    """Is this most likely meant for the sequence: misspelt, in other letters, with a word more, or one of its directories?"""
    other, places = (
        sequence.name.casefold(),
        {part for pattern in sequence.patterns for part in pattern.split("/")[:-1]},
    )
    words = name.casefold().replace("-", "_").replace(".", "_").split("_")
    return is_misspelt(name, sequence.name) or name.casefold() == other or other in words or name in places


def _files(sequence: Sequence) -> str:
    return f"  ({printable(', '.join(sequence.patterns))})" if sequence.patterns else ""


def _unlike(call: Call, sequence: Sequence | None, path: str) -> list[str]:
    """A line about a claimed file that the sequence's patterns do not match: its number would not be seen in the tree."""
    patterns = sequence.patterns if sequence is not None else ()
    if not patterns or any("\\" in pattern or fnmatchcase(path, pattern) for pattern in patterns):
        return []
    shown = printable(", ".join(patterns))
    return [
        f"note: {printable(path)} does not match {shown}; to give a slip back: git claim release {call.typed(path)}"
    ]


def _file(call: Call, pattern: str | None, sequence: Sequence | None) -> str:
    """The path to claim, from the top of the repository; '{n}' in its name stands for the number."""
    if pattern is None:
        return ""
    if pattern.rpartition("/")[2].count("{n}") != 1 or pattern.count("{n}") != 1:
        raise UsageError(
            "--file needs {n} once, in the file's name", hints=("--file 'db/migrations/{n}_add_user.sql'",)
        )
    (item,) = paths.items(call.ctx.repo, [pattern])
    if item.space != "path":
        raise UsageError("--file names a file, not a resource")
    place = sequence.directory if sequence is not None else None
    if sequence is not None and "/" not in pattern and place not in (None, item.name.rpartition("/")[0]):
        name = f"{place}/".lstrip("/") + item.name.rpartition("/")[2]
        raise UsageError(
            f"files of '{printable(sequence.name)}' are in {printable(place) or 'the top directory'}",
            hints=(f"--file {call.typed(name)}",),
        )
    return item.name
