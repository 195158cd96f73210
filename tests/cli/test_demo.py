"""`git coord demo`: every scene goes as it should."""

from __future__ import annotations

import re
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
    titles = {line.removeprefix("--- "): at for at, line in enumerate(said) if line.startswith("--- ")}
    at_once = "Two agents land at once, and both changed the same line: one lands, the other resolves it in its turn"
    sent_back = "A failing check is sent back, and a task is done when its code is on trunk"
    first, second, end = titles[at_once], titles[sent_back], min(at for at in titles.values() if at > titles[sent_back])
    marks = ("landed ", "error: ", "mia: landed", "noah: landed", "mia: error", "noah: error", "t")
    told = [re.sub(r"[0-9a-f]{12}|\bt\d+", "ID", line) for line in said[first:end] if line.startswith(marks)]
    early, late = ("mia", "noah") if "mia: landed mia on main: ID (fast-forward)" in told else ("noah", "mia")
    assert {*told[:2]} == {
        f"{early}: landed {early} on main: ID (fast-forward)",
        f"{late}: error: {late} conflicts with main in menu",
    }
    assert told[2:] == [
        f"landed {late} on main: ID (fast-forward)",
        "ID is yours: Serve tea",
        "error: the check ended with 1 (! grep BURNT menu): nothing has landed",
        "landed olga on main: ID (merge)",
        "ID is done",
        "ID Serve tea",
    ]
    shown = said[second:end]
    assert any(line.startswith("done, normal") for line in shown) and "result by olga: landed olga on main" in shown
