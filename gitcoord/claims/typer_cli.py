"""Commands of `git coord` that only look: status, agents, log, fsck, resources."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gitcoord.base.durations import format_duration
from gitcoord.base.errors import UsageError
from gitcoord.base.names import fold, printable, shown
from gitcoord.claims import pathspec as paths
from gitcoord.cli.typer_call import Json, act, not_set_up
from gitcoord.ledger.kinds import KINDS
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import ago


def status(json: Json = False) -> int:
    """Claims, agents and liveness at a glance."""

    def body(call: Call) -> int:
        from gitcoord.views.status import status as app_status

        age = call.recent()
        result = {**app_status(call.ctx, call.onlooker()), **age}
        call.screen.answer(result)
        if not_set_up(call, result):
            return 0
        call.screen.note(*(f"warning: {printable(warning)}" for warning in result["warnings"]))  # type: ignore[attr-defined]
        halt: Any = result["halted"]
        if halt:
            why = f": {printable(halt['reason'])}" if halt["reason"] else ""
            call.screen.say(call.screen.paint(f"HALTED by {halt['by']} {ago(halt['at'])}{why}", "red"))
        claims: list[Any] = result["claims"]  # type: ignore[assignment]
        call.screen.say(f"claims: {len(claims) or 'none'}", *("  " + line for line in call.screen.claim_lines(claims)))
        call.screen.say(*("  " + line for line in call.screen.server_lines(result)))
        agents: list[Any] = [a for a in result["agents"] if a["state"] != "ended"]  # type: ignore[attr-defined]
        call.screen.say(f"agents: {len(agents) or 'none'}", *("  " + line for line in _agent_lines(call, agents)))
        call.screen.say(f"ledger: {result['seq']} events")
        return 0

    return act(body, json=json)


def _agent_lines(call: Call, agents: list[Any]) -> list[str]:
    rows = []
    for agent in agents:
        heard = agent["silent_seconds"]
        if agent["state"] != "open":
            life = agent["state"]
        elif not agent["live"]:
            life = "silent"
        else:
            life = f"heard {format_duration(heard)} ago" if heard else "alive"
        of = f"of {agent['parent']}" if agent["parent"] else ""
        rows.append([agent["agent"], f"session {agent['session']}", life, f"since {ago(agent['since'])}", of])
    return call.screen.table(rows, ["cyan", "", "yellow", "dim", "dim"])


def agents(json: Json = False) -> int:
    """Every agent known here, and whether it is heard of."""

    def body(call: Call) -> int:
        from gitcoord.views.status import known_agents

        age = call.recent()
        result = {**known_agents(call.ctx), **age}
        call.screen.answer(result)
        if not not_set_up(call, result):
            call.screen.say(*_agent_lines(call, result["agents"]))  # type: ignore[arg-type]
        return 0

    return act(body, json=json)


def log(
    path: Annotated[str, typer.Option("--path", help="Only events that touch this path.")] = "",
    agent: Annotated[str, typer.Option("--agent", help="Only events by or about this agent.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="Only events of this kind.")] = "",
    number: Annotated[int, typer.Option("-n", "--number", min=0, help="At most so many; 0 for all.")] = 50,
    since: Annotated[int, typer.Option("--since", min=0, metavar="SEQ", help="Only from this event on.")] = 0,
    json: Json = False,
) -> int:
    """The ledger, newest first."""

    def body(call: Call) -> int:
        from gitcoord.base.errors import NotInitialised
        from gitcoord.ledger.log import events

        if kind and kind not in KINDS:
            raise UsageError(f"'{printable(kind)}' is not a kind of event", hints=(", ".join(KINDS),))
        wanted = _shown_key(call, path) if path else ""
        age = call.recent()
        try:
            rows = list(events(call.ctx, path=wanted, agent=agent, kind=kind, since=since, limit=number))
        except NotInitialised:
            not_set_up(call, {"initialised": False})
            call.screen.answer({"initialised": False, "events": []})
            return 0
        call.screen.answer({"initialised": True, "events": rows, **age})
        call.screen.say(*call.screen.table([_log_row(row) for row in rows], ["dim", "yellow", ""]))
        return 0

    return act(body, json=json, writing=False)


def _shown_key(call: Call, word: str) -> str:
    item = paths.one(call.ctx.repo, word)
    return shown(fold(item.name, case=False), item.space)


def _log_row(row: dict[str, Any]) -> list[str]:
    if "error" in row:
        return ["?", "", f"commit {row['commit'][:12]}: {printable(row['error'])}"]
    event = row["event"]
    words = printable(row["subject"])
    for name in ("reason", "cause"):
        if event.get(name):
            words += f": {printable(event[name])}" if event[name] not in row["subject"] else ""
    refused = event["refused"]
    if refused:
        words += f"  [refused before: {', '.join(printable(r['path']) + ' x' + str(r['count']) for r in refused[:3])}]"
    return [str(row["seq"]), ago(row["at"]), words]


def fsck(
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is found.")] = False, json: Json = False
) -> int:
    """Replay the whole ledger and name every difference between its events and what is there."""

    def body(call: Call) -> int:
        from gitcoord.ledger.typer_cli import run_fsck

        return run_fsck(call, repair=repair)

    return act(body, json=json)


def resources(json: Json = False) -> int:
    """Resources that are no files: capacity, who may read and write, who holds them."""

    def body(call: Call) -> int:
        from gitcoord.views.status import resources as app_resources

        age = call.recent()
        result = {**app_resources(call.ctx), **age}
        call.screen.answer(result)
        if not_set_up(call, result):
            return 0
        rows: list[Any] = result["resources"]  # type: ignore[assignment]
        lines = []
        for row in rows:
            used = sum(h["units"] for h in row["held"])
            who = ", ".join(f"{h['agent']} x{h['units']}" for h in row["held"])
            readers, writers = (printable(", ".join(row[key])) or "anybody" for key in ("readers", "writers"))
            lines.append(
                [
                    printable(row["resource"]),
                    f"{used} of {row['capacity']}",
                    f"write: {writers}",
                    f"read: {readers}",
                    who,
                ]
            )
        call.screen.say(*call.screen.table(lines, ["bold", "yellow", "", "", "cyan"]))
        if not lines and not json:
            call.screen.hint('declare one in .gitcoord/config: [resource "gpu"] capacity = 2')
        return 0

    return act(body, json=json, writing=False)
