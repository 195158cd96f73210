"""The hooks in `git coord setup`: the files of a hook manager, and the gates that are not in place at the end."""

from __future__ import annotations

from pathlib import Path

from gitcoord.base.names import printable
from gitcoord.cli.setup_ledger import is_asked, said_yes
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.cli import registry, show_snippet
from gitcoord.gates.hooks.manager_files import FileEdit, files_that_ask, plan_edits
from gitcoord.gates.hooks.managers import Managed
from gitcoord.gates.hooks.presence import MissingGate
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


def manager_edits(call: Call, values: Values, plan: hooks.Plan | Managed, *, dry_run: bool) -> list[FileEdit]:
    """The edits of the hook manager's own files, which are shown first. Without --edit-hooks a person is asked."""
    if not isinstance(plan, Managed):
        return []
    edits, by_hand = plan_edits(call.ctx.repo.worktree, plan)
    call.screen.note(f"note: {plan.manager} looks after the hooks here ({printable(plan.why)})")
    if "reference-transaction" not in plan.events:
        call.screen.note(
            f"note: {plan.manager} knows no reference-transaction: fast-forward, rebase, am and update-ref go unjudged here",
            f"note: a commit that skips the hooks of {plan.manager} is judged only when it is pushed",
        )
    if by_hand:
        call.screen.note(f"note: to be edited by hand: {printable(', '.join(by_hand))}")
    if by_hand or not edits:
        if not edits and not by_hand and plan.file_of("pre-commit"):
            return []  # all of its files ask gitcoord already
        show_snippet(call, {"snippet": plan.snippet})
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
    return edits if said_yes(f"add them to the files of {plan.manager}?") else []


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


def tell_missing(call: Call, missing: list[MissingGate]) -> None:
    if not missing:
        return
    call.screen.note(
        call.screen.paint("not in place: commits and pushes are not judged here by these hooks:", "yellow", 2),
        *(f"  {gate.event}: {printable(gate.why)}" for gate in missing),
    )


def note_manager(call: Call, plan: hooks.Plan | Managed) -> None:
    """Note this repository for `install.sh --uninstall` where the hook manager's files ask gitcoord."""
    if isinstance(plan, Managed) and files_that_ask(call.ctx.repo.worktree, plan):
        hooks.register(call.ctx, registry())
