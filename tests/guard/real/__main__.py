"""Installs the agent tools from npm into `.tools` and runs them against a scripted model: `python -m tests.guard.real [words for pytest]`.

With `--record` what the tools send is written to `tests/guard/recorded/real/`, from where the ordinary suite replays it.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.guard.real.tools import PACKAGES, PREFIX
from tests.support import ROOT


def main(words: list[str]) -> int:
    if not os.environ.get("GITCOORD_TOOLS_PREFIX"):
        packages = [f"{package}@latest" for package in PACKAGES.values()]
        subprocess.run(["npm", "install", "--prefix", str(PREFIX), "--no-audit", "--no-fund", *packages], check=True)
    env = {**os.environ, "GITCOORD_TOOLS": "1"}
    if "--record" in words:
        words.remove("--record")
        env["GITCOORD_TOOLS_RECORD"] = "1"
    return subprocess.run([sys.executable, "-m", "pytest", "tests/guard/real", *words], cwd=ROOT, env=env).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
