"""The report of a simulation: a failing seed with its shortened history, and the curve over the number of agents."""

from __future__ import annotations

from gitcoord.simulation.run import Outcome, simulate
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

AGENTS, GOALS = 5, 4
_LAST = 40


def shortened(seed: int, agents: int, goals: int) -> tuple[Outcome, int, int]:
    """The smallest run of a failing seed that fails too, with its number of agents and of goals for each."""
    for fewer in range(2, agents + 1):
        for less in range(1, goals + 1):
            outcome = simulate(seed, fewer, less)
            if outcome.violation:
                return outcome, fewer, less
    return simulate(seed, agents, goals), agents, goals


def failure(seed: int, agents: int, goals: int, mutant: str) -> str:
    """The command that replays a failing seed, and the end of its shortened history."""
    outcome, fewer, less = shortened(seed, agents, goals)
    words = f" --mutant {mutant}" if mutant else ""
    lines = [
        f"seed {seed}: {outcome.violation}",
        f"replay: python -m gitcoord.simulation --seed {seed} --agents {fewer} --goals {less}{words}",
    ]
    if len(outcome.lines) > _LAST:
        lines.append(f"  ... {len(outcome.lines) - _LAST} lines before")
    return "\n".join([*lines, *history(outcome)[-_LAST:]])


def history(outcome: Outcome) -> list[str]:
    return [f"{at / 1000:10.3f} s  {line}" for at, line in outcome.lines]


class Point(NamedTuple):
    """One row of the curve."""

    agents: int
    events: int
    grants: int
    waits: int
    refused: int
    p50: int  # of the waits, in milliseconds of virtual time
    p95: int
    longest: int


def point(agents: int, outcome: Outcome) -> Point:
    waits = sorted(outcome.waits) or [0]
    figures = outcome.figures
    p50, p95 = (waits[min(len(waits) - 1, int(len(waits) * part))] for part in (0.5, 0.95))
    counts = figures["events"], figures["grants"], figures["waits"], figures["refused"]
    return Point(agents, *counts, p50, p95, waits[-1])


def table(points: Sequence[Point]) -> str:
    """The curve as a table in Markdown."""
    rows = [
        "| agents | events | grants | waits | refusals | wait p50 | wait p95 | longest |",
        "| --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for row in points:
        counts = " | ".join(f"{count:,}" for count in (row.agents, row.events, row.grants, row.waits, row.refused))
        times = " | ".join(f"{ms / 1000:.1f} s" for ms in (row.p50, row.p95, row.longest))
        rows.append(f"| {counts} | {times} |")
    return "\n".join(rows)


_WIDE, _HIGH, _LEFT, _LOW = 640, 300, 70, 40
_CURVES = (("events", "#1f6feb"), ("grants", "#2da44e"), ("waits", "#8250df"), ("refused", "#bf8700"))


def svg(points: Sequence[Point]) -> str:
    """Events, grants, waits and refusals over agents, both axes logarithmic."""
    top = max(2, *(getattr(row, name) for row in points for name, _ in _CURVES))
    most = max(row.agents for row in points)
    least = min(row.agents for row in points)

    def place(agents: int, count: int) -> str:
        across = _log(agents / least) / max(_log(most / least), 0.001)
        up = _log(max(count, 1)) / _log(top)
        return f"{_LEFT + across * (_WIDE - _LEFT - 20):.1f},{_HIGH - _LOW - up * (_HIGH - _LOW - 30):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>',
        f'<path d="M{_LEFT},20 V{_HIGH - _LOW} H{_WIDE - 10}" fill="none" stroke="#57606a"/>',
    ]
    for row in points:
        x = place(row.agents, 1).split(",")[0]
        parts.append(f'<text x="{x}" y="{_HIGH - 20}" text-anchor="middle">{row.agents:,}</text>')
    power = 1
    while power <= top:
        y = place(least, power).split(",")[1]
        parts.append(f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end">{power:,}</text>')
        power *= 10
    for index, (name, colour) in enumerate(_CURVES):
        line = " ".join(place(row.agents, getattr(row, name)) for row in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{_LEFT + 20}" y="{34 + 16 * index}" fill="{colour}">{name}</text>')
    parts.append(f'<text x="{_WIDE // 2}" y="{_HIGH - 4}" text-anchor="middle">agents</text></svg>')
    return "\n".join(parts) + "\n"


def _log(value: float) -> float:
    from math import log10

    return log10(value)
