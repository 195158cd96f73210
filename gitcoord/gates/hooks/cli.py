"""`git coord install-hooks` and `uninstall-hooks`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import gitcoord
from gitcoord.base.errors import Refused, StoreError
from gitcoord.base.names import printable
from gitcoord.gates.approvals import require_overseer
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.manager_files import FileEdit, plan_removals
from gitcoord.gates.hooks.managers import EVENTS, find_manager
from gitcoord.gates.hooks.text import Kit
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.uncommitted import uncommitted
from gitcoord.sessions.identity import in_tool
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import put


def kit() -> Kit:
    """The hooks' sources and the path of git-claim."""
    return Kit(hook_sources("", EVENTS), git_claim(), registry())


def registry() -> str:
    """The list of repositories with hooks: beside the tree that `install.sh` made, else where that would be by default."""
    data = Path(sys.prefix).parent
    if not (data / "manifest").is_file():
        share = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
        data = Path(share, "gitcoord")
    return str(data / "repositories") if data.is_absolute() else ""


def hook_sources(below: str, events: tuple[str, ...]) -> dict[str, str]:
    """The sources of these hooks and of their shared parts: from the checkout, else from the installation."""
    places = (Path(gitcoord.__file__).parents[1] / "githooks", Path(sys.prefix, "share/gitcoord/githooks"))
    place = next((place for place in places if (place / below / "gate.sh").is_file()), None)
    if place is None:
        raise StoreError("the hooks did not come with this gitcoord", hints=("install it again: ./install.sh",))
    own = {name: (place / below / name).read_text() for name in ("gate.sh", *events)}
    return {**own, "before.sh": (place / "before.sh").read_text()}


def git_claim() -> str:
    """The path of `git-claim`. With a wrong one, every commit would be refused."""
    found = shutil.which("git-claim") or shutil.which("git-claim", path=os.path.dirname(sys.executable))
    if found is None:
        raise StoreError("git-claim is not on PATH, so the hooks could not judge", hints=("./install.sh",))
    if not found.isprintable():
        raise StoreError(f"git-claim lies in a place that a hook cannot name: {printable(found)}")
    return os.path.abspath(found)


def watched(call: Call) -> Actor | None:
    """The actor; None for a script without a name. Inside an agent tool a name is required."""
    return call.actor() if in_tool(call.environ) else call.actor_or_none()


def install_hooks(call: Call, values: Values, words: list[str]) -> int:
    dry_run = bool(values.get("dry-run"))
    gates = hooks.gated_refs(call.ctx)
    try:
        plan = hooks.require_unmanaged(hooks.plan(call.ctx, kit(), gates))
    except Refused as refused:
        show_snippet(call, refused.data)
        raise
    if not dry_run:
        hooks.install(call.ctx, plan)
    call.screen.answer({"dry_run": dry_run, "changed": plan.changes and not dry_run, **plan.result()})
    _say_changes(call, plan.steps + plan.other, dry_run=dry_run)
    if not plan.changes:
        call.screen.say("the hooks are already installed")
    elif dry_run:
        call.screen.say("nothing was changed")
    else:
        call.screen.say(f"updates of these refs are judged: {printable(', '.join(plan.gates))}")
        call.screen.hint("take them away again: git coord uninstall-hooks")
    return 0


def uninstall_hooks(call: Call, values: Values, words: list[str]) -> int:
    dry_run = bool(values.get("dry-run"))
    if not dry_run:
        require_overseer(call.ctx, watched(call), "take the hooks away")
    steps = hooks.removal(call.ctx)
    changed = False if dry_run else hooks.uninstall(call.ctx, steps)
    edited, left = leave_manager(call, dry_run=dry_run)
    changed = changed or (bool(edited) and not dry_run)
    call.screen.answer({"dry_run": dry_run, "changed": changed, "hooks": [step.row() for step in steps]})
    _say_changes(call, steps, dry_run=dry_run)
    if not (steps or edited or left or changed):
        call.screen.say("no hooks of gitcoord are installed here")
    elif dry_run:
        call.screen.say("nothing was changed")
    return 0


def manager_removals(call: Call) -> tuple[list[FileEdit], list[str]]:
    """The edits that take our lines out of the hook manager's files, and the places of changed ones."""
    repo = call.ctx.repo
    manager = find_manager(call.ctx, f"{repo.common_dir}/hooks", repo.common_dir) if repo.worktree else None
    return plan_removals(repo.worktree, manager) if manager is not None else ([], [])


def leave_manager(call: Call, *, dry_run: bool) -> tuple[list[str], list[str]]:
    """Take our lines out of the hook manager's files, and name the changed ones, which stay. Gives the files, and these places."""
    repo = call.ctx.repo
    edits, left = manager_removals(call)
    for edit in edits:
        path = Path(repo.worktree, edit.name)
        if dry_run:
            pass
        elif edit.after.strip() == b"#!/bin/sh":
            path.unlink()
        else:
            path.write_bytes(edit.after)
        call.screen.say(f"{'would take' if dry_run else 'took'} gitcoord's lines out of {printable(edit.name)}")
    names = [edit.name for edit in edits]
    changed = [] if dry_run else uncommitted(call.ctx, names)
    if changed:
        call.screen.note(f"note: not committed yet: {printable(', '.join(changed))}")
    if left:
        call.screen.note(f"note: lines that ask gitcoord, to be removed by hand: {printable(', '.join(left))}")
    return names, left


# The words for each action: before and after it.
_WORDS = {
    "installed": ("install", "installed"), "upgraded": ("upgrade", "upgraded"), "removed": ("remove", "removed"),
    "restored": ("bring back", "brought back"), "set aside": ("set aside", "set aside"), "left": ("leave", "left"),
}  # fmt: skip


def change_lines(steps: list[hooks.HookChange], *, done: bool) -> list[str]:
    lines = []
    for step in steps:
        if step.action == "unchanged":
            continue
        more, beside = "", printable(os.path.basename(step.kept))
        if step.action == "installed" and step.kept:
            first = (
                "the hook that was there runs first, as"
                if step.ran
                else "the file that was there has no run bit: kept as"
            )
            more = f"; {first} {beside}"
        elif step.action == "set aside":
            more = " (it was changed since it was installed)"
        elif step.action == "left":
            more = f" (it is not gitcoord's); {beside} is still there"
        lines.append(f"{_WORDS[step.action][done]} {printable(step.path)}{more}")
    return lines


def _say_changes(call: Call, steps: list[hooks.HookChange], *, dry_run: bool) -> None:
    call.screen.say(*(("would " if dry_run else "") + line for line in change_lines(steps, done=not dry_run)))


def show_snippet(call: Call, data: dict[str, Any]) -> None:
    """Print the lines to paste. Only the name of a directory in them comes from outside."""
    if not call.screen.json and data.get("snippet"):
        put(1, "\n".join(printable(line) for line in str(data["snippet"]).split("\n")) + "\n\n")
