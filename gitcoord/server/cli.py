"""`git coord server`: the gate of a repository that others push to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gitcoord.base.errors import StoreError, UsageError
from gitcoord.base.names import printable
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.cli import change_lines, git_claim, hook_sources, registry
from gitcoord.gates.hooks.text import Kit
from gitcoord.ledger.context import Context
from gitcoord.server import install as app_server
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.world.open import open_repository


def _open(call: Call, repository: str) -> Context:
    """Open the named repository instead of the current one."""
    place = Path(repository).resolve()
    git_dir = place / ".git" if (place / ".git").is_dir() else place
    if not (git_dir / "objects").is_dir():
        raise UsageError(f"{printable(repository)} is not a git repository")
    ctx = open_repository({**call.environ, b"GIT_DIR": os.fsencode(git_dir)}, writing=True)
    call.screen.use_settings(ctx.settings)
    return ctx


def install(call: Call, values: Values, words: list[str]) -> int:
    ctx, dry_run = _open(call, words[0]), bool(values.get("dry-run"))
    kit = Kit(hook_sources("server", app_server.EVENTS), git_claim(), registry())
    plan = app_server.plan(ctx, kit, str(values.get("account", "")))
    if not dry_run:
        hooks.register(ctx, kit.registry)
        app_server.install(ctx, plan)
    settings = [{"key": key, "value": value} for key, value in plan.settings]
    rows = [step.row() for step in plan.steps]
    changed = plan.changes and not dry_run
    call.screen.answer({"dry_run": dry_run, "changed": changed, "hooks": rows, "settings": settings})
    would = "would " if dry_run else ""
    call.screen.say(*(would + line for line in change_lines(plan.steps, done=not dry_run)))
    call.screen.say(*(f"{would}set {key} = {printable(value)}" for key, value in plan.settings))
    if not plan.changes:
        call.screen.say("the gate is already in place")
    elif not dry_run:
        call.screen.hint(
            f"its guarantees in this setup: git coord server status {printable(words[0])}",
            "run git gc there on a schedule: heartbeats leave small objects behind",
        )
    return 0


def uninstall(call: Call, values: Values, words: list[str]) -> int:
    ctx, dry_run = _open(call, words[0]), bool(values.get("dry-run"))
    steps = app_server.removal(ctx)
    changed = False if dry_run else app_server.uninstall(ctx, steps)
    call.screen.answer({"dry_run": dry_run, "changed": changed, "hooks": [step.row() for step in steps]})
    call.screen.say(*(("would " if dry_run else "") + line for line in change_lines(steps, done=not dry_run)))
    if not steps and not changed:
        call.screen.say("no gate of gitcoord is in place here")
    return 0


def status(call: Call, values: Values, words: list[str]) -> int:
    ctx = _open(call, words[0])
    try:
        claim = git_claim()
    except StoreError:
        claim = ""
    found: dict[str, Any] = app_server.status(ctx, claim)
    broken = not claim or any(row["state"] != "installed" for row in found["hooks"])
    call.screen.answer(found, ok=not broken)
    call.screen.say(*(f"{row['hook']}: {row['state']}" for row in found["hooks"]))
    call.screen.say("ledger: " + (found["ledger"][:12] or "none yet"))
    who = "open" if found["open"] else f"{len(found['accounts'])} account(s), named by {found['account_variable']}"
    call.screen.say(f"accounts: {who}", f"signing: {found['signing']}, {found['keys']} key(s)")
    call.screen.say(*(f"not guaranteed: {printable(hole)}" for hole in found["holes"]))
    return 1 if broken else 0


def key_add(call: Call, values: Values, words: list[str]) -> int:
    repository, agent, file = words
    return _tell_key(call, app_server.add_key(_open(call, repository), agent, file), "signs from now on")


def key_rotate(call: Call, values: Values, words: list[str]) -> int:
    repository, agent, file = words
    return _tell_key(call, app_server.rotate_key(_open(call, repository), agent, file), "is the only key now")


def _tell_key(call: Call, key: app_server.Key, words: str) -> int:
    call.screen.answer({"agent": key.agent, "key": key.key})
    call.screen.say(f"{key.agent}: {printable(key.key[:40])}... {words}")
    return 0


def key_revoke(call: Call, values: Values, words: list[str]) -> int:
    repository, agent, file = (*words, "")[:3]
    count = app_server.revoke_key(_open(call, repository), agent, file)
    call.screen.answer({"agent": agent, "revoked": count}, ok=count > 0)
    call.screen.say(f"{printable(agent)}: {count} key(s) revoked")
    return 0 if count else 1


def key_list(call: Call, values: Values, words: list[str]) -> int:
    found = app_server.keys(_open(call, words[0]))
    call.screen.answer({"keys": [{"agent": key.agent, "key": key.key} for key in found]})
    call.screen.say(*(f"{printable(key.agent)} {printable(key.key)}" for key in found))
    return 0
