"""`git coord server`: the gate of a repository that others push to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gitcoord.base.errors import StoreError, UsageError
from gitcoord.base.names import printable
from gitcoord.cli.typer_call import Json, new_app
from gitcoord.gates.hooks.text import Kit
from gitcoord.gates.hooks.typer_cli import DryRun, git_claim, hook_sources, step_lines
from gitcoord.server import install as app_server
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Screen, guarded
from gitcoord.world.open import environ, open_repository

server = new_app("server", "Judge what is pushed to a repository on this machine: a gate that nobody can skip.")
key_app = new_app("key", "The keys with which agents sign their events.")
server.add_typer(key_app, name="key")

Repository = Annotated[str, typer.Argument(metavar="REPOSITORY", help="The repository that others push to.")]
Agent = Annotated[str, typer.Argument(metavar="AGENT")]
KeyFile = Annotated[str, typer.Argument(metavar="PUBLIC-KEY-FILE")]


def _at(repository: str, body: Callable[[Call], int], *, json: bool) -> int:
    """Open another repository than the one around this process."""
    env = environ()
    screen = Screen(env, json=json)

    def opened() -> int:
        place = Path(repository).resolve()
        git_dir = place / ".git" if (place / ".git").is_dir() else place
        if not (git_dir / "objects").is_dir():
            raise UsageError(f"{printable(repository)} is not a git repository")
        ctx = open_repository({**env, b"GIT_DIR": os.fsencode(git_dir)}, writing=True)
        screen.use_settings(ctx.settings)
        try:
            return body(Call(ctx, screen, env))
        finally:
            ctx.store.close()

    return guarded(screen, opened)


@server.command()
def install(
    repository: Repository,
    account: Annotated[
        str, typer.Option("--account", metavar="VARIABLE", help="Where the transport names the account.")
    ] = "",
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Put the gate in place, beside hooks that are there. Running it again changes nothing."""

    def body(call: Call) -> int:
        kit = Kit(hook_sources("server", app_server.EVENTS), git_claim())
        plan = app_server.plan(call.ctx, kit, account)
        if not dry_run:
            app_server.install(call.ctx, plan)
        settings = [{"key": key, "value": value} for key, value in plan.settings]
        rows = [step.row() for step in plan.steps]
        changed = plan.changes and not dry_run
        call.screen.answer({"dry_run": dry_run, "changed": changed, "hooks": rows, "settings": settings})
        would = "would " if dry_run else ""
        call.screen.say(*(would + line for line in step_lines(plan.steps, done=not dry_run)))
        call.screen.say(*(f"{would}set {key} = {printable(value)}" for key, value in plan.settings))
        if not plan.changes:
            call.screen.say("the gate is already in place")
        elif not dry_run:
            call.screen.hint(
                f"what it guarantees as it is set up: git coord server status {printable(repository)}",
                "run git gc there by the clock: heartbeats leave small objects behind",
            )
        return 0

    return _at(repository, body, json=json)


@server.command()
def uninstall(repository: Repository, dry_run: DryRun = False, json: Json = False) -> int:
    """Take the gate away; what was there before is as it was. Accounts and keys stay."""

    def body(call: Call) -> int:
        steps = app_server.removal(call.ctx)
        changed = False if dry_run else app_server.uninstall(call.ctx, steps)
        call.screen.answer({"dry_run": dry_run, "changed": changed, "hooks": [step.row() for step in steps]})
        call.screen.say(*(("would " if dry_run else "") + line for line in step_lines(steps, done=not dry_run)))
        if not steps and not changed:
            call.screen.say("no gate of gitcoord is in place here")
        return 0

    return _at(repository, body, json=json)


@server.command()
def status(repository: Repository, json: Json = False) -> int:
    """Show what is in place and what does not hold, so set up. Exits 1 where a hook or git-claim is missing."""

    def body(call: Call) -> int:
        try:
            claim = git_claim()
        except StoreError:
            claim = ""
        found: dict[str, Any] = app_server.status(call.ctx, claim)
        broken = not claim or any(row["state"] != "installed" for row in found["hooks"])
        call.screen.answer(found, ok=not broken)
        call.screen.say(*(f"{row['hook']}: {row['state']}" for row in found["hooks"]))
        call.screen.say("ledger: " + (found["ledger"][:12] or "none yet"))
        who = "open" if found["open"] else f"{len(found['accounts'])} account(s), named by {found['account_variable']}"
        call.screen.say(f"accounts: {who}", f"signing: {found['signing']}, {found['keys']} key(s)")
        call.screen.say(*(f"not guaranteed: {printable(hole)}" for hole in found["holes"]))
        return 1 if broken else 0

    return _at(repository, body, json=json)


@key_app.command("add")
def key_add(repository: Repository, agent: Agent, file: KeyFile, json: Json = False) -> int:
    """Let a key sign for an agent, beside those that do."""
    return _change(repository, json, lambda call: app_server.add_key(call.ctx, agent, file), "signs from now on")


@key_app.command("rotate")
def key_rotate(repository: Repository, agent: Agent, file: KeyFile, json: Json = False) -> int:
    """Let this key, and no other, sign for an agent."""
    return _change(repository, json, lambda call: app_server.rotate_key(call.ctx, agent, file), "is the only key now")


def _change(repository: str, json: bool, change: Callable[[Call], app_server.Key], words: str) -> int:
    def body(call: Call) -> int:
        key = change(call)
        call.screen.answer({"agent": key.agent, "key": key.key})
        call.screen.say(f"{key.agent}: {printable(key.key[:40])}... {words}")
        return 0

    return _at(repository, body, json=json)


@key_app.command("revoke")
def key_revoke(
    repository: Repository,
    agent: Agent,
    file: Annotated[str, typer.Argument(metavar="[PUBLIC-KEY-FILE]")] = "",
    json: Json = False,
) -> int:
    """Take an agent's keys, or one of them, off the list: what they sign from now on counts for nothing."""

    def body(call: Call) -> int:
        count = app_server.revoke_key(call.ctx, agent, file)
        call.screen.answer({"agent": agent, "revoked": count}, ok=count > 0)
        call.screen.say(f"{printable(agent)}: {count} key(s) revoked")
        return 0 if count else 1

    return _at(repository, body, json=json)


@key_app.command("list")
def key_list(repository: Repository, json: Json = False) -> int:
    """Show whose keys the server knows."""

    def body(call: Call) -> int:
        found = app_server.keys(call.ctx)
        call.screen.answer({"keys": [{"agent": key.agent, "key": key.key} for key in found]})
        call.screen.say(*(f"{printable(key.agent)} {printable(key.key)}" for key in found))
        return 0

    return _at(repository, body, json=json)
