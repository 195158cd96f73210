"""The verbs of `git coord` that show what is going on: status, agents, resources."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import printable
from gitcoord.claims.cli_views import waiting_lines
from gitcoord.startup.annotations import Any
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago, counted
from gitcoord.views import status as views


def status(call: Call, values: Values, words: list[str]) -> int:
    age = call.recent(warns=False)  # the warnings below say it
    empty: Row = {"claims": [], "agents": [], "halted": None, "unguarded": [], "warnings": [], "missing_gates": []}
    result = call.show(lambda: {**views.status(call.ctx, call.actor_or_none()), **age}, None, **empty)
    if result is None:
        return 0
    call.screen.note(*(f"warning: {printable(warning)}" for warning in result["warnings"]))
    halt = result["halted"]
    if halt:
        why = f": {printable(halt['reason'])}" if halt["reason"] else ""
        call.screen.say(call.screen.paint(f"HALTED by {halt['by']} {ago(halt['at'])}{why}", "red"))
    claims = result["claims"]
    call.screen.say(f"claims: {len(claims) or 'none'}", *("  " + line for line in call.screen.claim_lines(claims)))
    call.screen.say(*("  " + line for line in call.screen.server_lines(result)))
    if result.get("waits"):
        call.screen.say(f"waiting: {len(result['waits'])}", *("  " + line for line in waiting_lines(result)))
    known = [agent for agent in result["agents"] if agent["state"] != "ended"]
    call.screen.say(f"agents: {len(known) or 'none'}", *("  " + line for line in _agent_lines(call, known)))
    for row in result["unguarded"]:
        line = f"guard: {row['tool']} does not run it for {row['agent']}; what it needs: {row['needs']}"
        call.screen.say(call.screen.paint(line, "yellow"))
    call.screen.say(f"ledger: {counted(result['seq'], 'event')}")
    if result["missing_gates"]:
        call.screen.say(call.screen.paint(gates_line(result["missing_gates"]), "yellow"))
    return 0


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
        call.screen.hint('declare one in .gitcoord/config: [resource "gpu"] capacity = 2')
    return 0
