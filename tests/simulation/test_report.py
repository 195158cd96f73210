"""The table of the curve in the documentation and its picture say the same."""

from __future__ import annotations

from gitcoord.simulation.report import Point, svg, table
from tests.support import ROOT


def test_the_picture_is_made_of_the_figures_in_the_table() -> None:
    docs = (ROOT / "docs/simulation.md").read_text()
    rows = [
        line.strip("| ").split(" | ") for line in docs.splitlines() if line.startswith("|") and line.endswith(" s |")
    ]
    points = [
        Point(
            *(int(cell.replace(",", "")) for cell in counts),
            *(round(float(cell.removesuffix(" s")) * 1000) for cell in waits),
        )
        for counts, waits in ((row[:5], row[5:]) for row in rows)
    ]
    assert len(points) == 4 and table(points) in docs
    assert svg(points) == (ROOT / "docs/simulation.svg").read_text(), "python -m gitcoord.simulation --curve makes both"
