"""The entry of `git coord`: the quick verbs at once, everything else through the full command line."""

from __future__ import annotations

import sys

from gitcoord.cli.entry import call_verb, full_python, leave
from gitcoord.terminal.parser import NotQuick, parse_verb


def main(argv: list[str]) -> int:
    if argv == ["guard"]:
        from gitcoord.guard.hook import main as guard  # before every deed of every agent: it loads no table of verbs

        return guard([])
    from gitcoord.cli.table import BARE, COORD

    try:
        name, values, words = parse_verb(COORD, _whole(argv, BARE))
    except NotQuick:
        argv = _whole(argv, BARE)
        full_python("coord", argv)
        from gitcoord.cli.typer_coord import main as full

        return full(argv)
    return call_verb(name, COORD[name], values, words)


def _whole(argv: list[str], bare: dict[str, list[str]]) -> list[str]:
    """A group's name alone, or with options only, stands for its everyday verb."""
    known = bare.get(" ".join(argv))
    if known is not None or len(argv) < 2 or argv[0] not in bare or argv[1][0:1] != "-" or argv[1] in ("-h", "--help"):
        return known or argv
    return [*bare[argv[0]], *argv[1:]]


def entry() -> None:
    leave(main(sys.argv[1:]))
