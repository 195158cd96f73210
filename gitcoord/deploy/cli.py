"""`git coord sync` and `git coord deploys`."""

from __future__ import annotations

from gitcoord.base.errors import NotInitialised, Refused
from gitcoord.base.names import printable
from gitcoord.deploy import staleness as app
from gitcoord.deploy.targets import Staleness, behind_words, details, to_json
from gitcoord.startup.annotations import Any
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import ago


def sync(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.work_facts import usual_remote
    from gitcoord.deploy.sync import by_hand, require_ready
    from gitcoord.deploy.sync import pull as app_pull
    from gitcoord.ledger.snapshot import read_snapshot
    from gitcoord.sessions.service import beat_quietly

    ctx, pull = call.ctx, bool(values.get("pull"))
    try:
        snapshot = read_snapshot(ctx, trusting=True)
    except NotInitialised:
        if pull:
            raise
        call.screen.answer({"initialised": False})
        call.note_not_set_up()
        return 0
    actor = call.actor_or_none()
    if actor is not None:
        beat_quietly(ctx, actor)
    branch = require_ready(ctx) if pull else ""
    remote = usual_remote(ctx, snapshot)
    found = app.staleness(
        ctx, snapshot, None, app.commit_named(ctx, ""), remote=remote, fetch=not values.get("no-fetch")
    )
    head = found.commit
    if pull and found.behind:
        try:
            head = app_pull(ctx, found, branch)
        except Refused as error:
            return refuse(call, error, found)
    row = {key: value for key, value in to_json(found).items() if key != "contains_last"}
    current = not found.behind or pull
    call.screen.answer({"initialised": True, **row, "remote": remote, "head": head}, ok=current)
    if not found.behind:
        call.screen.say(f"up to date with '{printable(found.sync)}'")
    elif pull:
        call.screen.say(f"'{printable(branch)}' was {behind_words(found, branch)}; now it is up to date at {head[:12]}")
    else:
        call.screen.say(behind_words(found), *(f"  {line}" for line in details(found)))
        clean = ("bring it up to date: git coord sync --pull",)
        call.screen.hint(*(by_hand(ctx, found) if found.conflict else clean))
    return 0 if current else 1


def refuse(call: Call, error: Refused, found: Staleness) -> int:
    """Print a refusal with the details of the staleness; gives the exit code."""
    from gitcoord.deploy.sync import DIRTY

    error.data = {**error.data, "stale": to_json(found)}
    if call.screen.json:
        return call.screen.fail(error)
    call.screen.note(
        f"error: {printable(error.message)}", *(f"  {line}" for line in details(found, clean=error.code != DIRTY))
    )
    call.screen.hint(*error.hints)
    return error.exit_code


def deploys(call: Call, values: Values, words: list[str]) -> int:
    result = call.show(lambda: app.deploys(call.ctx), None, deploys=[])
    if result is None:
        return 0
    rows = [_row(row) for row in result["deploys"]]
    call.screen.say(*call.screen.table(rows, ["bold", "yellow", "cyan", "dim", "", ""]))
    if not rows and not call.screen.json:
        call.screen.note("nothing was deployed, and no target is named")
        call.screen.hint('name a target in .gitcoord/config: [deploy "production"] verify = <command>')
    return 0


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
