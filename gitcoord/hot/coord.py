"""The entry of `git coord`: the quick verbs at once, everything else through the full command line."""

import sys

from gitcoord.hot.main import call_verb, full_python, leave
from gitcoord.hot.options import NotQuick, parse_verb


def main(argv: list[str]) -> int:
    if argv == ["guard"]:
        from gitcoord.hot.guard import main as guard  # before every deed of every agent: it loads no table of verbs

        return guard([])
    from gitcoord.hot.verbtable import BARE, COORD

    try:
        name, values, words = parse_verb(COORD, BARE.get(" ".join(argv), argv))
    except NotQuick:
        full_python("coord", argv)
        from gitcoord.adapters.cli.coord import main as full

        return full(argv)
    return call_verb(name, COORD[name], values, words)


def entry() -> None:
    leave(main(sys.argv[1:]))
