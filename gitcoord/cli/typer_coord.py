"""`git coord`: everything besides claiming. Each command parses, calls one app function and renders."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from gitcoord import __version__
from gitcoord.base.errors import UsageError
from gitcoord.base.names import printable
from gitcoord.cli.table import COORD, GROUPS
from gitcoord.cli.typer_call import Json, act, new_app, run_app
from gitcoord.cli.typer_table import add_verbs
from gitcoord.ledger.sessions import Actor
from gitcoord.terminal.call import Call


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
    remote: Annotated[
        str, typer.Option("--remote", metavar="NAME", help="Let this remote decide: for clones on many machines.")
    ] = "",
    same: Annotated[
        bool, typer.Option("--same", help="With --remote: its address is another one of the ledger's own server.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="With --remote: only look at its ledger, as CI does.")
    ] = False,
    json: Json = False,
) -> int:
    """Make the ledger, here or at a remote. Running it again changes nothing."""

    def body(call: Call) -> int:
        from gitcoord.ledger.remote.join import by_ssh
        from gitcoord.ledger.remote.membership import authority_of, begin
        from gitcoord.policy.starter import write_starter

        where = authority_of(call.ctx, remote)
        who = _initialiser(call)
        result = begin(call.ctx, who, where, sync=sync, fold=fold_case, adopt=adopt, same=same, looks=read_only)
        if policy:
            result["policy"] = write_starter(
                call.ctx.repo, str(result["root"]), call.ctx.settings.get("user.email"), str(result.get("remote", ""))
            )
        call.screen.answer(result)
        if result["created"]:
            call.screen.say(f"gitcoord is set up; work lands on '{printable(str(result['sync']))}'")
            call.screen.hint(
                "claim a path: git claim <path>", "launch an agent: git coord run --as <name> -- <command>"
            )
        elif where:
            call.screen.say(f"this clone uses the ledger of '{printable(where)}'")
        elif result.get("adopted"):
            call.screen.say("this copy is an authority of its own now")
        else:
            call.screen.say("gitcoord is already set up here")
        if where and by_ssh(call.ctx, where):
            call.screen.hint(_STAYS_CONNECTED)
        written: list[str] = result.get("policy", [])  # type: ignore[assignment]
        call.screen.say(*(f"wrote {name}" for name in written))
        if written:
            call.screen.hint("look at these files, then commit them")
        return 0

    return act(body, json=json)


_STAYS_CONNECTED = (
    "each command spares itself the handshake if ssh stays connected: set ControlMaster auto, ControlPath ~/.ssh/%C and "
    "ControlPersist 60 for this host in ~/.ssh/config"
)


def _initialiser(call: Call) -> Any:
    """Setting up asks for no agent: whoever has no name yet is 'init'."""
    try:
        return call.actor()
    except UsageError:
        return Actor("init")


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", show_default=False)],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="The agent's name; made up unless given.")] = "",
) -> int:
    """Launch an agent: its identity set, its heartbeat kept, its claims released at the end, ended when it is killed."""

    def body(call: Call) -> int:
        from gitcoord.sessions.typer_run import launch

        return launch(call, command, name)

    return act(body, json=False, stays=True)


def dispatch(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", show_default=False)],
    most: Annotated[int, typer.Option("--max", min=0, metavar="N", help="At most so many workers at once.")] = 0,
    name: Annotated[
        str, typer.Option("--as", metavar="NAME", help="What the workers are called: NAME-1 and so on.")
    ] = "worker",
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when no task is left.")] = False,
) -> int:
    """Keep workers at work on the queue: one dispatcher at a time, workers up to the cap, each launched by 'run'."""

    def body(call: Call) -> int:
        from gitcoord.tasks.cli_dispatch import run_dispatch

        return run_dispatch(call, command, most=most, name=name, until_empty=until_empty)

    return act(body, json=False, stays=True)


def guard() -> int:
    """Judge what an agent's tool is about to do: its event on stdin, the answer in its own form. What hooks run."""
    from gitcoord.guard.hook import main as judge

    return judge([])


def mcp() -> int:
    """Serve claims, handoffs, tasks and the journal to an agent tool, by the Model Context Protocol on stdin and stdout."""
    from gitcoord.mcp import start

    return start()


def demo() -> int:
    """Show what gitcoord does, in a throw-away repository."""
    from gitcoord.cli.demo import main as show

    return show()


def version(json: Json = False) -> int:
    """The version of gitcoord."""
    print(f'{{"ok":true,"version":"{__version__}"}}' if json else f"gitcoord {__version__}")
    return 0


# Where each command is: only what is asked for is loaded, which is most of what a short command costs.
_MODULES = {
    "cli.typer_coord": "init run dispatch guard mcp demo version",
    "claims.typer_cli": "status agents log fsck resources",
    "sessions.typer_cli": "kill revive halt unhalt sweep",
    "gates.typer_cli": "gate approvals approve deny role",
    "gates.hooks.typer_cli": "install-hooks uninstall-hooks",
    "cli.typer_setup": "setup teardown",
    "deploy.typer_cli": "sync deploy deploys",
    "worktrees.typer_cli": "commit",
    "ledger.typer_watch": "watch",
    "effects.typer_cli": "once",
}
_APPS = {"policy": "gates.typer_cli", "worktree": "worktrees.typer_cli", "server": "server.typer_cli"}
_LAUNCHES = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def make_app(only: str = "") -> typer.Typer:
    """The whole command line, or that of one command."""
    app = new_app("coord", "Coordinate the writers of one repository: sessions, kill switch, ledger.")
    app.callback()(lambda: None)  # a group, also with one command
    _add(app, only)
    add_verbs(app, {name: verb for name, verb in COORD.items() if only in ("", name.partition(" ")[0])}, GROUPS)
    for name, module in _APPS.items():
        if only in ("", name):
            app.add_typer(getattr(_load(module), name), name=name)
    return app


def _add(app: typer.Typer, only: str) -> None:
    for module, names in _MODULES.items():
        for name in names.split():
            if only in ("", name):
                settings = _LAUNCHES if name in ("run", "dispatch") else None
                app.command(name, context_settings=settings)(getattr(_load(module), name.replace("-", "_")))


def _load(module: str) -> Any:
    return import_module(f"gitcoord.{module}")


def main(words: list[str]) -> int:
    known = {*" ".join(_MODULES.values()).split(), *_APPS, *(name.partition(" ")[0] for name in COORD)}
    first = words[0] if words else ""
    return run_app(make_app(first if first in known else ""), "coord", words)
