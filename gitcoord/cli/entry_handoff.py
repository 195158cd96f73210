"""The entry of `git handoff`, like that of `git coord`."""

from __future__ import annotations

import sys

from gitcoord.cli.entry import call_verb, full_python, leave
from gitcoord.cli.table import HANDOFF
from gitcoord.terminal.parser import NotQuick, parse_verb


def main(argv: list[str]) -> int:
    try:
        name, values, words = parse_verb(HANDOFF, argv or ["list"])
    except NotQuick:
        full_python("handoff", argv)
        from gitcoord.cli.typer_handoff import main as full

        return full(argv)
    return call_verb(name, HANDOFF[name], values, words)


def entry() -> None:
    leave(main(sys.argv[1:]))
