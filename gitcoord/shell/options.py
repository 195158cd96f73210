"""Parses the options and operands of a command, as getopt does."""

from __future__ import annotations

from gitcoord.shell.state import Arg
from gitcoord.startup.namedtuple import NamedTuple


class Given(NamedTuple):
    options: list[tuple[str, Arg | None]]  # '-o', '--output', with its value
    operands: list[Arg]

    def has(self, *names: str) -> bool:
        return any(name in names for name, _ in self.options)

    def values(self, *names: str) -> list[Arg]:
        return [value for name, value in self.options if name in names and value is not None]


def parse(args: list[Arg], valued: str = "", *, mixed: bool = True) -> Given:
    """`valued` lists the options that take a value: '-o --output'. `mixed`: options may follow operands."""
    names = valued.split()
    options: list[tuple[str, Arg | None]] = []
    operands: list[Arg] = []
    i = 0
    while i < len(args):
        arg = args[i]
        i += 1
        text = arg.text
        if arg.known and text == "--":
            operands += args[i:]
            break
        if text[:1] != "-" or text == "-":
            operands.append(arg)
            if not mixed:
                operands += args[i:]
                break
            continue
        # '-out=file' is one option where a program has long ones with one dash.
        name = text.partition("=")[0]
        whole = text[1] == "-" or text in names or len(name) > 2 and name in names
        taken = _long(arg, names) if whole else _short(arg, names)
        options += taken
        name, value = taken[-1]
        if value is None and name in names and i < len(args):
            options[-1] = name, args[i]
            i += 1
    return Given(options, operands)


def _long(arg: Arg, names: list[str]) -> list[tuple[str, Arg | None]]:
    """One option; an abbreviation of one with a value counts as that one."""
    name, equals, value = arg.text.partition("=")
    if name not in names and len(name) > 3:
        fits = [one for one in names if one.startswith(name)]
        name = fits[0] if len(fits) == 1 else name
    return [(name, arg._replace(text=value) if equals else None)]


def _short(arg: Arg, names: list[str]) -> list[tuple[str, Arg | None]]:
    """A bundle: '-xvf' is three options, '-ofile' one with its value."""
    found: list[tuple[str, Arg | None]] = []
    for at in range(1, len(arg.text)):
        name = "-" + arg.text[at]
        rest = arg.text[at + 1 :]
        if name in names and (rest or not arg.known):
            return [*found, (name, arg._replace(text=rest))]
        found.append((name, None))
    return found


def is_assignment(word: str) -> bool:
    """`NAME=value`: a variable, where a program takes those among its operands."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("_", "a").isalnum()
