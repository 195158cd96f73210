"""`python -m gitcoord.cli <claim|coord|handoff> ...`: the commands on the interpreter that has all libraries."""

from __future__ import annotations

import sys

from gitcoord.cli.entry import leave, main
from gitcoord.cli.table import COMMANDS

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in COMMANDS:
        leave(main(sys.argv[1], sys.argv[2:]))
    print(f"usage: python -m gitcoord.cli {'|'.join(COMMANDS)} ...", file=sys.stderr)
    leave(2)
