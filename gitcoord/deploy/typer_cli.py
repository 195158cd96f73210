"""Commands of `git coord` against stale deploys: sync, deploy, deploys."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gitcoord.base.errors import NotInitialised, Refused
from gitcoord.base.names import printable
from gitcoord.cli.typer_call import Json, act, not_set_up
from gitcoord.deploy.targets import Staleness, behind_words, details, told
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import ago


def sync(
    pull: Annotated[
        bool, typer.Option("--pull", help="Bring the current branch up to date, where that is clean.")
    ] = False,
    fetch: Annotated[
        bool, typer.Option("--fetch/--no-fetch", help="Ask the remote what is new there; yes unless given.")
    ] = True,
    json: Json = False,
) -> int:
    """Does the current branch hold all that landed? 0: yes, 1: it is behind, 4: could not judge, 5: no remote answers."""

    def body(call: Call) -> int:
        return _sync(call, pull=pull, fetch=fetch)

    return act(body, json=json)


def _sync(call: Call, *, pull: bool, fetch: bool) -> int:
    from gitcoord.claims.work_facts import usual_remote
    from gitcoord.deploy import staleness as app
    from gitcoord.deploy.sync import pull as app_pull
    from gitcoord.deploy.sync import require_ready
    from gitcoord.ledger.snapshot import read_snapshot
    from gitcoord.sessions.service import beat_quietly

    ctx = call.ctx
    try:
        snapshot = read_snapshot(ctx, trusting=True)
    except NotInitialised:
        if pull:
            raise
        call.screen.answer({"initialised": False})
        not_set_up(call, {"initialised": False})
        return 0
    actor = call.onlooker()
    if actor is not None:
        beat_quietly(ctx, actor)
    branch = require_ready(ctx) if pull else ""
    remote = usual_remote(ctx, snapshot)
    found = app.staleness(ctx, snapshot, None, app.commit_named(ctx, ""), remote=remote, fetch=fetch)
    head = found.commit
    if pull and found.behind:
        try:
            head = app_pull(ctx, found, branch)
        except Refused as error:
            return refuse(call, error, found)
    row = {key: value for key, value in told(found).items() if key != "contains_last"}
    current = not found.behind or pull
    call.screen.answer({"initialised": True, **row, "remote": remote, "head": head}, ok=current)
    if not found.behind:
        call.screen.say(f"up to date with '{printable(found.sync)}'")
    elif pull:
        call.screen.say(f"'{printable(branch)}' was {behind_words(found, branch)}; now it is up to date at {head[:12]}")
    else:
        call.screen.say(behind_words(found), *(f"  {line}" for line in details(found)))
        call.screen.hint(
            "merge it by hand: git merge" if found.conflict else "bring it up to date: git coord sync --pull"
        )
    return 0 if current else 1


def refuse(call: Call, error: Refused, found: Staleness) -> int:
    """Tell a refusal together with how the commit stands."""
    error.data = {**error.data, "stale": told(found)}
    if call.screen.json:
        return call.screen.fail(error)
    call.screen.note(f"error: {printable(error.message)}", *(f"  {line}" for line in details(found)))
    call.screen.hint(*error.hints)
    return error.exit_code


def deploy(
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False)],
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", show_default=False)],
    commit: Annotated[
        str, typer.Option("--commit", metavar="COMMIT", help="What is deployed; HEAD unless given.")
    ] = "",
    no_verify_surface: Annotated[
        bool, typer.Option("--no-verify-surface", help="Do not run the project's verification afterwards.")
    ] = False,
    json: Json = False,
) -> int:
    """Deploy, one at a time: refused from a stale copy, verified through the public surface, on record."""

    def body(call: Call) -> int:
        from gitcoord.deploy.cli_run import run_deploy

        return run_deploy(call, target, command, commit, surface=not no_verify_surface)

    return act(body, json=json)


def deploys(json: Json = False) -> int:
    """The last deploy of each target, and whether it is behind by now."""

    def body(call: Call) -> int:
        from gitcoord.deploy.staleness import deploys as app_deploys

        result = app_deploys(call.ctx)
        call.screen.answer(result)
        if not_set_up(call, result):
            return 0
        rows: list[Any] = result["deploys"]  # type: ignore[assignment]
        call.screen.say(*call.screen.table([_row(row) for row in rows], ["bold", "yellow", "cyan", "dim", "", ""]))
        if not rows:
            call.screen.hint('name a target in .gitcoord/config: [deploy "production"] verify = <command>')
        return 0

    return act(body, json=json, writing=False)


def _row(row: dict[str, Any]) -> list[str]:
    last, good = row["last"], row["good"]
    if last is None:
        return [row["target"], "never deployed", "", "", "", ""]
    state = "" if good is None else "unknown whether it is behind" if row["behind"] is None else "up to date"
    if row["behind"]:
        state = f"{row['behind']} behind"
    if good is not None and good["seq"] != last["seq"]:
        state = f"before: {good['commit'][:12]} by {good['agent']} {ago(good['at'])}, {state}"
    return [row["target"], last["commit"][:12], last["agent"], ago(last["at"]), last["outcome"], state]
