"""The verbs of `git coord` that show what is going on: status, agents, resources."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import printable
from gitcoord.git.host import isatty, terminal_height, terminal_width
from gitcoord.startup.annotations import Any
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, Screen, ago
from gitcoord.views import status as views

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.views.render import Line


_MOST = (20, 10, 5)  # rows of each list at a terminal: as many as leave the first line in sight
EMPTY: Row = {
    "claims": [], "agents": [], "halted": None, "unguarded": [], "warnings": [], "missing_gates": [], "needs_you": [], "needs_person": [],
    "early_warnings": [], "contention": [],
    "landing": {"trunk": "", "check_seconds": 0, "landing": [], "open": [], "waiting": []}, "tasks": [], "approvals": [], "deploys": [],
}  # fmt: skip


def status(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.views.overview import overview

    age = call.recent(warns=False)  # the warnings below say it
    result = call.show(lambda: {**overview(call.ctx, call.actor_or_none()), **age}, None, **EMPTY)
    if result is None or call.screen.json:
        return 0
    from gitcoord.views.render import render

    call.screen.note(*(f"warning: {printable(warning)}" for warning in result["warnings"]))
    lines = _as_high_as_the_terminal(result) if isatty(1) else render(result)
    call.screen.say(*(painted(call.screen, line) for line in lines))
    return 0


def _as_high_as_the_terminal(model: Row) -> list[Line]:
    from gitcoord.views.render import plain, render

    height, many = terminal_height(1), len(model["needs_you"])
    lines: list[Line] = []
    for most in _MOST:
        lines = render(model, terminal_width(1), most)
        if not height or len(lines) < height:
            return lines
    return [*lines, plain(f"needs you: {many}, at the top", "red")] if many else lines


def painted(screen: Screen, line: Line) -> str:
    return "".join(screen.paint(text, colour) for text, colour in line.cells)


def gates_line(events: list[str]) -> str:
    return f"gates: {', '.join(events)} not in place here, so that changes are not judged: git coord setup"


def _agent_lines(call: Call, agents: list[Any]) -> list[str]:
    rows = []
    for agent in agents:
        heard = agent["silent_seconds"]
        if agent["state"] != "open":
            life = agent["state"]
        elif not agent["live"]:
            life = "no heartbeat"
        else:
            life = f"last seen {format_duration(heard)} ago" if heard else "alive"
        of = f"of {agent['parent']}" if agent["parent"] else ""
        rows.append([agent["agent"], f"session {agent['session']}", life, f"since {ago(agent['since'])}", of])
    return call.screen.table(rows, ["cyan", "", "yellow", "dim", "dim"])


def agents(call: Call, values: Values, words: list[str]) -> int:
    result = call.show(lambda: views.known_agents(call.ctx), agents=[])
    if result is not None:
        call.screen.say(*_agent_lines(call, result["agents"]))
    return 0


def resources(call: Call, values: Values, words: list[str]) -> int:
    result = call.show(lambda: views.resources(call.ctx), resources=[])
    if result is None:
        return 0
    lines = []
    for row in result["resources"]:
        used = sum(held["units"] for held in row["held"])
        who = ", ".join(f"{held['agent']} x{held['units']}" for held in row["held"])
        readers, writers = (printable(", ".join(row[key])) or "anybody" for key in ("readers", "writers"))
        name = printable(row["resource"])
        lines.append([name, f"{used} of {row['capacity']}", f"write: {writers}", f"read: {readers}", who])
    call.screen.say(*call.screen.table(lines, ["bold", "yellow", "", "", "cyan"]))
    if not lines and not call.screen.json:
        call.screen.note("no resources are declared")
        call.screen.hint('declare one in .gitcoord/config: [resource "gpu"] capacity = 2')
    return 0
