"""Sequences of the project's settings: where their numbers begin, how wide they are written, which files use them.

[sequence "migrations"]
    pattern = migrations/[0-9]*_*.sql
    start = 1
    width = 4
"""

from __future__ import annotations

from gitcoord.base.codec import MAX_DIGITS
from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import CONFIG, printable
from gitcoord.effects.events.number import LAST
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

_LONGEST = 1000


class Sequence(NamedTuple):
    name: str
    patterns: tuple[str, ...] = ()
    start: int = 1
    width: int = 0
    declared: bool = False

    @property
    def directory(self) -> str | None:
        """The directory of all its files, '' for the top; None where they are in several, or in any of some name."""
        found = {pattern.rpartition("/")[0] for pattern in self.patterns}
        one = found.pop() if len(found) == 1 else None
        return None if one is None or set(one) & set("*?[\\") else one

    def written(self, number: int) -> str:
        return str(number).rjust(self.width, "0")


def sequences(pairs: Iterable[tuple[str, str]]) -> dict[str, Sequence]:
    """The `[sequence "name"]` sections. CouldNotJudge for an invalid value."""
    found: dict[str, Sequence] = {}
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "sequence" and name:
            found[name] = _with(found.get(name, Sequence(name, declared=True)), setting, value)
    return found


def _with(sequence: Sequence, setting: str, value: str) -> Sequence:
    if setting == "pattern":
        wrong = wrong_pattern(value)
        if wrong:
            raise _invalid(sequence.name, f"the pattern '{printable(value[:200])}' {wrong}")
        return sequence._replace(patterns=(*sequence.patterns, value))
    if setting == "start":
        return sequence._replace(start=_number(sequence.name, setting, value, 1, LAST))
    if setting == "width":
        return sequence._replace(width=_number(sequence.name, setting, value, 0, MAX_DIGITS))
    return sequence


def _number(name: str, setting: str, value: str, least: int, most: int) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) <= MAX_DIGITS and least <= int(value) <= most):
        raise _invalid(name, f"{setting} is '{printable(value[:40])}', not a number from {least} to {most}")
    return int(value)


def _invalid(name: str, what: str) -> CouldNotJudge:
    return CouldNotJudge(
        f'{CONFIG}: sequence "{printable(name[:80])}": {what}',
        hints=("fix it on the trunk, for example: pattern = migrations/[0-9]*_*.sql",),
    )


def wrong_pattern(pattern: str) -> str:
    """The reason why no file can match the pattern, or ''. An unnoticed floor of zero would give numbers that are in use."""
    if not pattern:
        return "is empty"
    if len(pattern) > _LONGEST or not pattern.isprintable():
        return "is too long, or cannot be printed"
    if pattern.startswith(("/", ":")):
        return "must be a path below the top of the repository"
    if pattern.endswith(("/", "\\")):
        return "names no file"
    if any(part in ("", ".", "..") for part in pattern.split("/")):
        return "has a component that no path has ('', '.' or '..')"
    if not _is_closed(pattern):
        return "has a '[' without its ']'"
    return ""


def _is_closed(pattern: str) -> bool:
    index = 0
    while index < len(pattern):
        if pattern[index] == "\\":
            index += 1
        elif pattern[index] == "[":
            index += 1
            index += pattern[index : index + 1] in ("!", "^")
            end = pattern.find("]", index + 1)  # a ']' that comes first stands for itself
            if end < 0:
                return False
            index = end
        index += 1
    return True


def number_in(path: str) -> int:
    """The first run of digits in a file's name; 0 where there is none, or none that could ever be given."""
    digits = ""
    for char in path.rpartition("/")[2]:
        if char in "0123456789":
            digits += char
        elif digits:
            break
    digits = digits.lstrip("0")
    return int(digits) if 0 < len(digits) <= MAX_DIGITS else 0


def around_number(path: str) -> tuple[str, str, str]:
    """The path up to the first digit of the file's name, the digits, and the rest."""
    directory, slash, name = path.rpartition("/")
    begin = next((index for index, char in enumerate(name) if char in "0123456789"), len(name))
    end = next((index for index in range(begin, len(name)) if name[index] not in "0123456789"), len(name))
    return directory + slash + name[:begin], name[begin:end], name[end:]


def with_number(path: str, number: int, width: int) -> str:
    """The path with another number in the file's name, at least as wide as it was."""
    before, digits, after = around_number(path)
    return f"{before}{str(number).rjust(max(width, len(digits)), '0')}{after}"


def differ_in_number(one: str, other: str) -> bool:
    """Are these names of one file with two numbers?"""
    mine, theirs = around_number(one), around_number(other)
    return (mine[0], mine[2]) == (theirs[0], theirs[2]) and bool(mine[1] and theirs[1])


def stem(path: str) -> str:
    """The file's name up to its first dot: files that differ in the rest belong together."""
    return path.rpartition("/")[2].partition(".")[0]


def added_to(sequence: Sequence, trunk: set[str], there: set[str]) -> dict[str, str]:
    """The files of a sequence that a branch adds, each with its name on trunk: the numbers after trunk's highest, in the order of their own. Files with one number
    keep having one. A renamed file of trunk, and one that belongs to a file of trunk, keep their numbers. `there`: the files of trunk and branch together."""
    gone, known = {number_in(path) for path in trunk - there}, {(path.rpartition("/")[0], stem(path)) for path in trunk}
    added = [
        path
        for path in sorted(there - trunk)
        if number_in(path) and number_in(path) not in gone and (path.rpartition("/")[0], stem(path)) not in known
    ]
    last = max([sequence.start - 1, *map(number_in, trunk)])
    numbers = {number: last + at for at, number in enumerate(sorted({number_in(path) for path in added}), 1)}
    return {path: with_number(path, numbers[number_in(path)], sequence.width) for path in added}
