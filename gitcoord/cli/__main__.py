"""`python -m gitcoord.cli <claim|coord|handoff> ...`: what the installed commands run."""

from __future__ import annotations

import sys

from gitcoord.cli.entry import leave


def main() -> int:
    name, words = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if name == "claim":
        from gitcoord.cli.entry import main as claim

        return claim(words)
    if name == "coord":
        return coord(words)
    if name == "handoff":
        return handoff(words)
    print("usage: python -m gitcoord.cli claim|coord|handoff ...", file=sys.stderr)
    return 2


def coord(words: list[str] | None = None) -> int:
    from gitcoord.cli.entry_coord import main as command

    return command(sys.argv[1:] if words is None else words)


def handoff(words: list[str] | None = None) -> int:
    from gitcoord.cli.entry_handoff import main as command

    return command(sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    leave(main())
