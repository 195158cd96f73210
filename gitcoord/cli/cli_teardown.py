"""`git coord teardown`: all of gitcoord out of a repository in one step."""

from __future__ import annotations

import time
from typing import Any

from gitcoord.base.errors import UsageError
from gitcoord.base.names import printable
from gitcoord.cli.setup_ledger import confirm
from gitcoord.gates.approvals import require_overseer
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.cli import change_lines, leave_manager, manager_removals, watched
from gitcoord.guard.setup import cli as tools
from gitcoord.guard.setup import plan as harness
from gitcoord.policy import starter as policy
from gitcoord.terminal.call import Call, at_terminal
from gitcoord.terminal.parser import Values


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
    root = ctx.settings.get("gitcoord.root")
    found, steps = app.survey(ctx, actor, force=force), hooks.removal(ctx)
    files, left = policy.remove_starter(ctx.repo, root, ctx.remote, dry_run=True)
    ledger = found.head is not None or bool(found.refs)
    going = [(place, harness.plan_teardown(place)) for place in tools.places(call, user=bool(values.get("user")))]
    changes = [change for _, those in going for change in those]
    lines = _going(ledger, len(found.refs), app.own_settings(ctx), steps, files) + tools.leaving(changes)
    if lines:
        lines += [f"take gitcoord's lines out of {printable(edit.name)}" for edit in manager_removals(call)[0]]
    call.screen.say(*(("would " if dry_run else "will ") + line for line in lines))
    result: dict[str, object] = {
        "removed": False,
        "archive": "",
        "refs": len(found.refs) + (found.head is not None),
    }
    result |= {"hooks": [step.row() for step in steps], "bring_back": []}
    if lines and not dry_run:
        confirm(values, "go on?")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(ctx.host.wall()))
        result = app.tear_down(ctx, actor, stamp, force=force)
        files, left = policy.remove_starter(ctx.repo, root, ctx.remote, dry_run=False)
        changes = [change for place, those in going for change in harness.apply(those, place)]
    rows = [change.row() for change in changes]
    call.screen.answer({"dry_run": dry_run, **result, "files": list(files), "left": left, "tools": rows})
    tools.tell_problems(call, changes, snippets=False)
    if lines and not dry_run:
        leave_manager(call, dry_run=False)
    commands = policy.removal_commands(ctx.repo, root, ctx.remote, left) if lines and not dry_run else []
    _report_removal(call, result, left, commands, anything=bool(lines), dry_run=dry_run)
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


def _report_removal(
    call: Call, result: dict[str, Any], left: list[str], commands: list[str], *, anything: bool, dry_run: bool
) -> None:
    if left and anything:
        call.screen.say(f"left in the tree, since they are committed or changed: {', '.join(left)}")
    if commands:
        call.screen.say("to remove them from the project, in its top directory:", *("  " + line for line in commands))
    if dry_run or not anything:
        call.screen.say("nothing was changed" if dry_run else "gitcoord is not set up here")
        return
    call.screen.say("gitcoord is gone from this repository")
    if result["archive"]:
        call.screen.say(f"the ledger is kept: {result['archive']}; to bring it back:")
        call.screen.say(*("  " + line for line in result["bring_back"]))
        call.screen.say(f"to delete it for good: git update-ref -d {result['archive']}")
