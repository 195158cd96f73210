"""`git coord demo`: every scene goes as it should."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import COORD


def test_the_demo_plays_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run([*COORD, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "did not go" not in done.stdout, done.stdout
    said = [line.strip() for line in done.stdout.splitlines()]
    order = [
        line for line in said if line.startswith(("src/app.py goes to", "nora: error", "error: nobody could go on"))
    ]
    assert [line.split(":")[0].split(",")[0] for line in order] == [
        "nora", "src/app.py goes to pat", "src/app.py goes to omar", "error",
    ]  # fmt: skip
    assert any(line.startswith("hot: src/app.py") for line in said)
