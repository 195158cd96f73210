"""`git handoff`: not in this version; it says so."""

import sys

TEXT = """git handoff arrives with a later version of gitcoord.

Until then: release what you hold with the commit that carries your work (git claim release <path>), and say in its
message what remains to be done.
"""


def main(words: list[str]) -> int:
    asked = not words or words[0] in ("-h", "--help")
    print(TEXT, end="", file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2
