"""The hooks in `git coord setup`: the files of a hook manager, and the gates that are not in place at the end."""

from __future__ import annotations

from pathlib import Path

from gitcoord.base.names import printable
from gitcoord.cli.setup_ledger import is_asked, said_yes
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.cli import change_lines, kit, show_snippet
from gitcoord.gates.hooks.manager_files import FileEdit, files_that_ask, plan_edits
from gitcoord.gates.hooks.managers import PRE_COMMIT, PRE_COMMIT_FILE, Managed
from gitcoord.gates.hooks.presence import MissingGate, command_for
from gitcoord.policy.uncommitted import is_unstaged
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


def plan_hooks(call: Call, gates: list[str]) -> tuple[hooks.HookPlan, Managed | None]:
    """The hooks that will be installed, and the manager of the others, whose files call them."""
    found = hooks.plan(call.ctx, kit(), gates)
    if isinstance(found, Managed):
        return hooks.plan_beside(call.ctx, kit(), gates, found), found
    return found, None


def manager_edits(call: Call, values: Values, manager: Managed | None, *, dry_run: bool) -> list[FileEdit]:
    """The edits of the hook manager's own files, which are shown first. Without --edit-hooks a person is asked."""
    if manager is None:
        return []
    edits, by_hand = plan_edits(call.ctx.repo.worktree, manager)
    if not edits and not by_hand and manager.file_of("pre-commit"):
        return []  # all of its files ask gitcoord already
    call.screen.note(f"note: {manager.manager} looks after the hooks here ({printable(manager.why)})")
    if by_hand:
        call.screen.note(f"note: to be edited by hand: {printable(', '.join(by_hand))}")
    if by_hand or not edits:
        show_snippet(call, {"snippet": manager.snippet})
    if not edits:
        return []
    call.screen.say("these lines make it ask gitcoord; they do nothing where gitcoord is not set up:")
    for edit in edits:
        call.screen.say(f"  {printable(edit.name)}", *(f"    + {printable(line)}" for line in edit.added))
    if values.get("edit-hooks"):
        return edits
    if dry_run or not is_asked(values):
        call.screen.hint("let setup add them: git coord setup --edit-hooks")
        return []
    return edits if said_yes(f"add them to the files of {manager.manager}?") else []


def hook_lines(plan: hooks.HookPlan, manager: Managed | None) -> list[str]:
    """One line for each hook that will be installed; beside a manager one for all that its files call."""
    called = [step for step in plan.steps if manager and step.path.startswith(plan.directory)]
    lines = change_lines([step for step in plan.steps + plan.other if step not in called], done=False)
    if manager and any(step.action != "unchanged" for step in called):
        lines.insert(0, f"install the hooks that {manager.manager} calls: {printable(plan.directory)}")
    if plan.husky:
        lines.insert(0, "copy husky's own hooks, which this work tree lacks, from the main one: .husky/_")
    if plan.settings:
        lines.append(f"note in the local settings which refs are judged: {printable(', '.join(plan.gates))}")
    return lines


def manager_files(call: Call, manager: Managed | None) -> list[str]:
    return files_that_ask(call.ctx.repo.worktree, manager) if manager else []


def edit_lines(edits: list[FileEdit]) -> list[str]:
    return [f"{'write' if edit.before is None else 'add lines to'} {printable(edit.name)}" for edit in edits]


def write_edits(call: Call, edits: list[FileEdit]) -> None:
    """A new script gets its run bit, which some versions of husky need."""
    for edit in edits:
        path = Path(call.ctx.repo.worktree, edit.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(edit.after)
        if edit.before is None:
            path.chmod(path.stat().st_mode | 0o111)


def tell_unstaged(call: Call, manager: Managed | None) -> None:
    """Say that pre-commit refuses every commit while its file has changes that are not staged, whoever made them."""
    if manager is not None and manager.manager == PRE_COMMIT and is_unstaged(call.ctx, PRE_COMMIT_FILE):
        call.screen.note(f"note: pre-commit refuses every commit until {PRE_COMMIT_FILE} is staged")
        call.screen.hint(f"stage it: git add {PRE_COMMIT_FILE}")


def tell_missing(call: Call, missing: list[MissingGate]) -> None:
    if not missing:
        return
    call.screen.note(
        call.screen.paint("not in place: these hooks do not ask gitcoord here:", "yellow", 2),
        *(f"  {gate.event}: {printable(gate.why)}" for gate in missing),
    )
    if any(gate.install for gate in missing):
        call.screen.hint(f"then: {command_for([gate for gate in missing if gate.install])}")
