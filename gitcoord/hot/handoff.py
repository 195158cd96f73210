"""The entry of `git handoff`, like that of `git coord`."""

from __future__ import annotations

import sys

from gitcoord.hot.main import call_verb, full_python, leave
from gitcoord.hot.options import NotQuick, parse_verb
from gitcoord.hot.verbtable import HANDOFF


def main(argv: list[str]) -> int:
    try:
        name, values, words = parse_verb(HANDOFF, argv or ["list"])
    except NotQuick:
        full_python("handoff", argv)
        from gitcoord.adapters.cli.handoff import main as full

        return full(argv)
    return call_verb(name, HANDOFF[name], values, words)


def entry() -> None:
    leave(main(sys.argv[1:]))
