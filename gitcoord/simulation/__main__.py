"""Run as `python -m gitcoord.simulation`."""

from __future__ import annotations

import sys

from gitcoord.simulation.cli import main

sys.exit(main(sys.argv[1:]))
