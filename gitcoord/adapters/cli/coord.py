"""`git coord`: everything besides claiming. Each command parses, calls one app function and renders."""

from typing import Annotated, Any

import typer

from gitcoord import __version__
from gitcoord.adapters.cli.shared import Json, act, new_app, not_set_up, run_app
from gitcoord.app import sessions
from gitcoord.core.durations import format_duration
from gitcoord.core.kinds import KINDS
from gitcoord.errors import UsageError
from gitcoord.hot import paths
from gitcoord.hot.render import ago
from gitcoord.hot.verbs import Call, text
from gitcoord.names import check_agent, fold, printable

app = new_app("coord", "Coordinate the writers of one repository: sessions, kill switch, ledger.")

Reason = Annotated[str, typer.Option("--reason", "-m", help="Why, for the record.")]
Agent = Annotated[str, typer.Argument(metavar="AGENT", show_default=False)]


@app.command()
def init(
    policy: Annotated[bool, typer.Option("--policy", help="Also write a commented starter policy.")] = False,
    sync: Annotated[
        str, typer.Option("--sync", metavar="BRANCH", help="The branch that everybody's work lands on.")
    ] = "",
    fold_case: Annotated[
        bool | None, typer.Option("--fold-case/--no-fold-case", help="Paths that differ in case only conflict.")
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Make the ledger of a copied repository this one's own.")
    ] = False,
    json: Json = False,
) -> int:
    """Make the ledger. Running it again changes nothing."""

    def body(call: Call) -> int:
        from gitcoord.adapters.cli.policy import write_starter
        from gitcoord.app.init import init as app_init

        result = app_init(call.ctx, _initialiser(call), sync=sync, fold=fold_case, adopt=adopt)
        if policy:
            result["policy"] = write_starter(call.ctx.repo, str(result["root"]), call.ctx.settings.get("user.email"))
        call.screen.answer(result)
        if result["created"]:
            call.screen.say(f"gitcoord is set up; work lands on '{printable(str(result['sync']))}'")
            call.screen.hint(
                "claim a path: git claim <path>", "launch an agent: git coord run --as <name> -- <command>"
            )
        elif result.get("adopted"):
            call.screen.say("this copy is an authority of its own now")
        else:
            call.screen.say("gitcoord is already set up here")
        written: list[str] = result.get("policy", [])  # type: ignore[assignment]
        call.screen.say(*(f"wrote {name}" for name in written))
        if written:
            call.screen.hint("look at these files, then commit them")
        return 0

    return act(body, json=json)


def _initialiser(call: Call) -> Any:
    """Setting up asks for no agent: whoever has no name yet is 'init'."""
    from gitcoord.core.sessions import Actor

    try:
        return call.actor()
    except UsageError:
        return Actor("init")


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", show_default=False)],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="The agent's name; made up unless given.")] = "",
) -> int:
    """Launch an agent: its identity set, its heartbeat kept, its claims released at the end, ended when it is killed."""

    def body(call: Call) -> int:
        from gitcoord.adapters.cli.run import launch

        return launch(call, command, name)

    return act(body, json=False)


@app.command()
def start(
    join: Annotated[
        bool, typer.Option("--join", help="Join a session that another process of this name has open.")
    ] = False,
    json: Json = False,
) -> int:
    """Open your session, or go on with it."""

    def body(call: Call) -> int:
        result = sessions.start(call.ctx, call.actor()._replace(join=join))
        call.screen.answer(result)
        verb = "opened" if result["opened"] else "goes on"
        call.screen.say(f"session {result['session']} of {result['agent']} {verb}")
        claims: list[Any] = result["claims"]  # type: ignore[assignment]
        if claims:
            call.screen.say("you hold:", *("  " + line for line in call.screen.claim_lines(claims)))
        for entry in result.get("lost", ()):  # type: ignore[attr-defined]
            call.screen.say(
                f"you lost {printable(entry['path'])} to {entry['by']}; if it is free: git claim {printable(entry['path'])}"
            )
        return 0

    return act(body, json=json)


@app.command()
def stop(
    keep: Annotated[bool, typer.Option("--keep", help="Leave claims with uncommitted work to their ttl.")] = False,
    json: Json = False,
) -> int:
    """End your session and release what it holds."""

    def body(call: Call) -> int:
        result = sessions.stop(call.ctx, call.actor(), keep=keep)
        call.screen.answer(result)
        call.screen.say(
            f"session of {result['agent']} ended" if result["stopped"] else f"{result['agent']} has no open session"
        )
        for verb in ("released", "kept"):
            call.screen.say(*(f"{verb} {printable(path)}" for path in result[verb]))  # type: ignore[attr-defined]
        return 0

    return act(body, json=json)


@app.command()
def status(json: Json = False) -> int:
    """Claims, agents and liveness at a glance."""

    def body(call: Call) -> int:
        from gitcoord.app.status import status as app_status

        result = app_status(call.ctx, call.onlooker())
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


@app.command()
def agents(json: Json = False) -> int:
    """Every agent known here, and whether it is heard of."""

    def body(call: Call) -> int:
        from gitcoord.app.status import known_agents

        result = known_agents(call.ctx)
        call.screen.answer(result)
        if not not_set_up(call, result):
            call.screen.say(*_agent_lines(call, result["agents"]))  # type: ignore[arg-type]
        return 0

    return act(body, json=json)


@app.command()
def kill(agent: Agent, reason: Reason = "", json: Json = False) -> int:
    """Stop an agent for good: nothing of it gets through any more."""

    def body(call: Call) -> int:
        from gitcoord.adapters.cli.run import wake

        result = sessions.kill(call.ctx, call.actor(), check_agent(agent), text({"reason": reason}, "reason"))
        wake(call.ctx, agent)
        call.screen.answer(result)
        freed: list[Any] = result["freed"]  # type: ignore[assignment]
        call.screen.say(f"killed {agent}" if result["killed"] else f"{agent} was killed before")
        call.screen.say(*(f"freed {printable(claim['path'])}" for claim in freed))
        call.screen.hint(f"to allow the name again: git coord revive {agent}")
        return 0

    return act(body, json=json)


@app.command()
def revive(agent: Agent, json: Json = False) -> int:
    """Let a killed agent's name open sessions again."""

    def body(call: Call) -> int:
        result = sessions.revive(call.ctx, call.actor(), check_agent(agent))
        call.screen.answer(result)
        call.screen.say(f"'{agent}' may start again" if result["revived"] else f"'{agent}' was not killed")
        return 0

    return act(body, json=json)


@app.command()
def halt(reason: Reason = "", json: Json = False) -> int:
    """Grant nothing to anybody until unhalt. Releases still work; nobody expires."""

    def body(call: Call) -> int:
        result = sessions.halt(call.ctx, call.actor(), text({"reason": reason}, "reason"))
        call.screen.answer(result)
        call.screen.say("halted" if result["changed"] else "already halted")
        call.screen.hint("go on with: git coord unhalt")
        return 0

    return act(body, json=json)


@app.command()
def unhalt(json: Json = False) -> int:
    """Go on after a halt."""

    def body(call: Call) -> int:
        result = sessions.unhalt(call.ctx, call.actor())
        call.screen.answer(result)
        call.screen.say("going on" if result["changed"] else "nothing was halted")
        return 0

    return act(body, json=json)


@app.command()
def sweep(json: Json = False) -> int:
    """Expire the claims of agents that have been silent too long."""

    def body(call: Call) -> int:
        result = sessions.sweep(call.ctx, call.actor())
        call.screen.answer(result)
        expired: list[Any] = result["expired"]  # type: ignore[assignment]
        call.screen.say(*(f"expired {printable(c['path'])} of {c['agent']}" for c in expired))
        if not expired:
            call.screen.say("nothing to expire")
        return 0

    return act(body, json=json)


@app.command()
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
        from gitcoord.app.log import events
        from gitcoord.errors import NotInitialised

        if kind and kind not in KINDS:
            raise UsageError(f"'{printable(kind)}' is not a kind of event", hints=(", ".join(KINDS),))
        wanted = fold(paths.one(call.ctx.repo, path).name, case=False) if path else ""
        try:
            rows = list(events(call.ctx, path=wanted, agent=agent, kind=kind, since=since, limit=number))
        except NotInitialised:
            not_set_up(call, {"initialised": False})
            call.screen.answer({"initialised": False, "events": []})
            return 0
        call.screen.answer({"initialised": True, "events": rows})
        call.screen.say(*call.screen.table([_log_row(row) for row in rows], ["dim", "yellow", ""]))
        return 0

    return act(body, json=json, writing=False)


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


@app.command()
def fsck(
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is found.")] = False, json: Json = False
) -> int:
    """Replay the whole ledger and name every difference between its events and what is there."""

    def body(call: Call) -> int:
        from gitcoord.adapters.cli.fsck import run_fsck

        return run_fsck(call, repair=repair)

    return act(body, json=json)


@app.command()
def resources(json: Json = False) -> int:
    """Resources that are no files: capacity, who may read and write, who holds them."""

    def body(call: Call) -> int:
        from gitcoord.app.status import resources as app_resources

        result = app_resources(call.ctx)
        call.screen.answer(result)
        if not_set_up(call, result):
            return 0
        rows: list[Any] = result["resources"]  # type: ignore[assignment]
        lines = []
        for row in rows:
            used = sum(h["units"] for h in row["held"])
            who = ", ".join(f"{h['agent']} x{h['units']}" for h in row["held"])
            readers, writers = (", ".join(row[key]) or "anybody" for key in ("readers", "writers"))
            lines.append(
                [row["resource"], f"{used} of {row['capacity']}", f"write: {writers}", f"read: {readers}", who]
            )
        call.screen.say(*call.screen.table(lines, ["bold", "yellow", "", "", "cyan"]))
        if not lines and not json:
            call.screen.hint('declare one in .gitcoord/config: [resource "gpu"] capacity = 2')
        return 0

    return act(body, json=json, writing=False)


@app.command()
def demo() -> int:
    """Show what gitcoord does, in a throw-away repository."""
    from gitcoord.adapters.cli.demo import main as show

    return show()


@app.command()
def version(json: Json = False) -> int:
    """The version of gitcoord."""
    print(f'{{"ok":true,"version":"{__version__}"}}' if json else f"gitcoord {__version__}")
    return 0


def main(words: list[str]) -> int:
    return run_app(app, "coord", words)
