"""`python -m gitcoord.adapters.cli <claim|coord|handoff> ...`: what the installed commands run."""

import sys


def main() -> int:
    name, words = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if name == "claim":
        from gitcoord.hot.main import main as claim

        return claim(words)
    if name == "coord":
        from gitcoord.adapters.cli.coord import main as coord

        return coord(words)
    if name == "handoff":
        from gitcoord.adapters.cli.handoff import main as handoff

        return handoff(words)
    print("usage: python -m gitcoord.adapters.cli claim|coord|handoff ...", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
