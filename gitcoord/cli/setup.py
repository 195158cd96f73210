"""`git coord setup` and `teardown`: all of gitcoord into a repository in one step, and out again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from gitcoord.base.errors import Refusal, Refused, UsageError
from gitcoord.base.names import printable
from gitcoord.gates.approvals import require_overseer
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.cli import change_lines, kit, show_snippet, watched
from gitcoord.gates.hooks.managers import Managed
from gitcoord.guard.setup import cli as tools
from gitcoord.guard.setup import plan as harness
from gitcoord.ledger.remote.membership import authority_of, begin
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import require_room, sync_branch
from gitcoord.policy import starter as policy
from gitcoord.terminal.call import Call, at_terminal, is_set_up, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import put


def setup(call: Call, values: Values, words: list[str]) -> int:
    """Set up what is missing; existing files stay."""
    dry_run = bool(values.get("dry-run"))
    there = is_set_up(call.ctx)
    remote = authority_of(call.ctx)
    place = tools.place_of(call, user=bool(values.get("user")))
    known = tools.chosen(words_of(values, "tool"), place, no_tools=bool(values.get("no-tools")))
    if not there and not remote:
        require_room(call.ctx)
    gates = hooks.gated_refs(call.ctx) if there else [f"refs/heads/{sync_branch(call.ctx)}"]
    plan = hooks.plan(call.ctx, kit(), gates)
    files = policy.missing_starter(call.ctx.repo)
    changes = harness.setting_up(known, place)
    todo = _todo(plan, gates[0], files, call.ctx.repo.worktree, there=there) + tools.lines(changes)
    already = _already(plan, files, there=there, tools=tools.ready(changes))
    call.screen.say(*(("would " if dry_run else "will ") + line for line in todo), *already)
    result: dict[str, Any] = {"dry_run": dry_run, "created": not there, "policy": files}
    result["sync"] = gates[0].removeprefix("refs/heads/")
    if todo and not dry_run:
        _confirm(values, "go on?")
        made = begin(call.ctx, call.actor_or_none() or Actor("init"), remote)
        email = call.ctx.settings.get("user.email")
        result["policy"] = policy.write_starter(call.ctx.repo, str(made["root"]), email, remote)
        if isinstance(plan, hooks.Plan):
            hooks.install(call.ctx, plan)
        changes = harness.apply(changes, place)
    managed = {"manager": plan.manager, "snippet": plan.snippet} if isinstance(plan, Managed) else {}
    none = {"way": "managed", "directory": "", "hooks": [], "gate_refs": []}
    result |= plan.result() if isinstance(plan, hooks.Plan) else {**none, **managed}
    result["tools"] = [change.row() for change in changes]
    call.screen.answer({"changed": bool(todo) and not dry_run, **result})
    _end(call, managed, tools.to_commit(files, changes, place), todo=bool(todo), dry_run=dry_run)
    tools.tell(call, known, changes)
    return 0


def _todo(plan: hooks.Plan | Managed, sync: str, files: list[str], top: str, *, there: bool) -> list[str]:
    lines = [] if there else [f"make the ledger; work lands on '{printable(sync.removeprefix('refs/heads/'))}'"]
    lines += [f"{'add lines to' if Path(top, name).exists() else 'write'} {name}" for name in files]
    if isinstance(plan, hooks.Plan) and plan.changes:
        lines += change_lines(plan.steps + plan.other, done=False)
        if plan.settings:
            lines.append(f"note in the local settings which refs are judged: {printable(', '.join(plan.gates))}")
    return lines


def _already(plan: hooks.Plan | Managed, files: list[str], *, there: bool, tools: bool) -> list[str]:
    ready = isinstance(plan, hooks.Plan) and not plan.changes
    parts = [("the ledger", there), ("the policy", not files), ("the hooks", ready), ("the agent tools", tools)]
    found = [name for name, is_there in parts if is_there]
    return [f"already there: {', '.join(found)}"] if found else []


def _end(call: Call, managed: dict[str, str], files: list[str], *, todo: bool, dry_run: bool) -> None:
    if managed:
        call.screen.note(f"note: {managed['manager']} looks after the hooks here, so none were installed; add this:")
        show_snippet(call, managed)
    if dry_run:
        call.screen.say("nothing was changed")
        return
    call.screen.say("gitcoord is set up" if todo else "nothing to do: gitcoord is set up")
    if files:
        call.screen.hint(f"look at {', '.join(files)}, then commit them")
    if todo:
        call.screen.hint("claim a path: git claim <path>", "take it all away again: git coord teardown")


def _confirm(values: Values, question: str) -> None:
    """Only a person is asked, who has not said --yes."""
    if values.get("yes") or not at_terminal():
        return
    put(2, f"{question} [Y/n] ")
    answer = sys.stdin.readline()
    if not answer or answer.strip().lower() not in ("", "y", "yes"):
        raise Refused(Refusal("declined", "nothing was changed"))


def teardown(call: Call, values: Values, words: list[str]) -> int:
    """The ledger is archived; refused while somebody holds a claim."""
    dry_run, force = bool(values.get("dry-run")), bool(values.get("force"))
    from gitcoord.cli import teardown as app

    if not (values.get("yes") or dry_run or at_terminal()):
        raise UsageError(
            "without a terminal, teardown needs --yes", hints=("look first: git coord teardown --dry-run",)
        )
    ctx, actor = call.ctx, call.actor_or_none()
    if not dry_run:
        require_overseer(ctx, watched(call), "take gitcoord away")
    root, email = ctx.settings.get("gitcoord.root"), ctx.settings.get("user.email")
    found, steps = app.survey(ctx, actor, force=force), hooks.removal(ctx)
    files, left = policy.remove_starter(ctx.repo, root, email, ctx.remote, dry_run=True)
    ledger = found.head is not None or bool(found.refs)
    going = [(place, harness.tearing_down(place)) for place in tools.places(call, user=bool(values.get("user")))]
    changes = [change for _, those in going for change in those]
    lines = _going(ledger, len(found.refs), app.own_settings(ctx), steps, files) + tools.leaving(changes)
    call.screen.say(*(("would " if dry_run else "will ") + line for line in lines))
    result: dict[str, object] = {
        "removed": False,
        "archive": "",
        "refs": len(found.refs) + (found.head is not None),
    }
    result |= {"hooks": [step.row() for step in steps], "bring_back": []}
    if lines and not dry_run:
        _confirm(values, "go on?")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(ctx.host.wall()))
        result = app.tear_down(ctx, actor, stamp, force=force)
        files, left = policy.remove_starter(ctx.repo, root, email, ctx.remote, dry_run=False)
        changes = [change for place, those in going for change in harness.apply(those, place)]
    rows = [change.row() for change in changes]
    call.screen.answer({"dry_run": dry_run, **result, "files": list(files), "left": left, "tools": rows})
    tools.tell_problems(call, changes, snippets=False)
    _report_removal(call, result, left, anything=bool(lines), dry_run=dry_run)
    return 0


def _going(
    ledger: bool, refs: int, settings: list[str], steps: list[hooks.HookChange], files: dict[str, bytes]
) -> list[str]:
    others = f", and remove it with {refs} other {'ref' if refs == 1 else 'refs'} of gitcoord"
    lines = [f"archive the ledger{others}"] if ledger else []
    lines += [f"forget the local settings {', '.join(settings)}"] if settings else []
    lines += change_lines(steps, done=False)
    return lines + [
        f"{'take the lines of setup out of' if before else 'remove'} {name}" for name, before in files.items()
    ]


def _report_removal(call: Call, result: dict[str, Any], left: list[str], *, anything: bool, dry_run: bool) -> None:
    if left and anything:
        call.screen.say(f"left in the tree, since they are committed or changed: {', '.join(left)}")
    if dry_run or not anything:
        call.screen.say("nothing was changed" if dry_run else "gitcoord is not set up here")
        return
    call.screen.say("gitcoord is gone from this repository")
    if result["archive"]:
        call.screen.say(f"the ledger is kept: {result['archive']}; to bring it back:")
        call.screen.say(*("  " + line for line in result["bring_back"]))
