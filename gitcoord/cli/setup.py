"""`git coord setup`: all of gitcoord into a repository in one step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gitcoord.base.names import printable
from gitcoord.cli import setup_hooks as hook_files
from gitcoord.cli import setup_ledger as membership
from gitcoord.cli.setup_person import offer_person
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.cli import change_lines, kit
from gitcoord.gates.hooks.managers import Managed
from gitcoord.gates.hooks.presence import missing_gates
from gitcoord.guard.setup import cli as tools
from gitcoord.guard.setup import plan as harness
from gitcoord.ledger.remote.membership import Membership, begin
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import sync_branch
from gitcoord.policy import starter as policy
from gitcoord.terminal.call import Call, words_of
from gitcoord.terminal.parser import Values


def setup(call: Call, values: Values, words: list[str]) -> int:
    """Set up what is missing; existing files stay."""
    dry_run = bool(values.get("dry-run"))
    place = tools.place_of(call, user=bool(values.get("user")))
    known = tools.chosen(words_of(values, "tool"), place, no_tools=bool(values.get("no-tools")))
    files = policy.missing_starter(call.ctx.repo)
    found = membership.chosen(call, values, dry_run=dry_run)
    there = found.here and not found.other
    gates = hooks.gated_refs(call.ctx) if there else [f"refs/heads/{sync_branch(call.ctx)}"]
    plan = hooks.plan(call.ctx, kit(), gates)
    edits = hook_files.manager_edits(call, values, plan, dry_run=dry_run)
    changes = harness.setting_up(known, place)
    todo = _todo(call, found, plan, gates[0], files) + hook_files.edit_lines(edits) + tools.lines(changes)
    already = _already(plan, files, there=there, tools=tools.ready(changes))
    call.screen.say(*(("would " if dry_run else "will ") + line for line in todo), *already)
    result: dict[str, Any] = {"dry_run": dry_run, "created": not there, "policy": files, "authority": _authority(found)}
    result["sync"] = gates[0].removeprefix("refs/heads/")
    if todo and not dry_run:
        membership.confirm(values, "go on?")
        result |= _begin(call, found)
        if isinstance(plan, hooks.Plan):
            hooks.install(call.ctx, plan)
        hook_files.write_edits(call, edits)
        changes = harness.apply(changes, place)
    managed = {"manager": plan.manager, "snippet": plan.snippet} if isinstance(plan, Managed) else {}
    none = {"way": "managed", "directory": "", "hooks": [], "gate_refs": []}
    result |= plan.result() if isinstance(plan, hooks.Plan) else {**none, **managed}
    result["tools"] = [change.row() for change in changes]
    missing = [] if dry_run else missing_gates(call.ctx)
    result["missing_gates"] = [gate.event for gate in missing]
    call.screen.answer({"changed": bool(todo) and not dry_run, **result}, ok=not missing)
    written = [*result["policy"], *(edit.name for edit in edits)]
    _end(call, tools.to_commit(written, changes, place), todo=bool(todo), dry_run=dry_run)
    if not dry_run:
        membership.tell_authority(call, found, str(result["authority"]).removeprefix("local"))
        offer_person(call)
    tools.tell(call, known, changes)
    hook_files.tell_missing(call, missing)
    return 1 if missing else 0


def _authority(found: Membership) -> str:
    return found.remote or "local"


def _begin(call: Call, found: Membership) -> dict[str, object]:
    """Make or join the ledger, and write the missing parts of the policy."""
    made = begin(call.ctx, call.actor_or_none() or Actor("init"), found)
    remote, email = str(made.get("remote", "")), call.ctx.settings.get("user.email")
    written = policy.write_starter(call.ctx.repo, str(made["root"]), email, remote)
    named = policy.name_ledger(call.ctx.repo, "", remote if _is_new_there(found) else "")
    return {
        "created": bool(made["created"]),
        "policy": [*written, *(name for name in named if name not in written)],
        "authority": remote or "local",
    }


def _is_new_there(found: Membership) -> bool:
    """Whether the remote was asked for or gets a new ledger: then the policy says that it decides."""
    return bool(found.remote) and not found.found


def _todo(call: Call, found: Membership, plan: hooks.Plan | Managed, sync: str, files: list[str]) -> list[str]:
    top = call.ctx.repo.worktree
    lines = membership.ledger_lines(found, sync.removeprefix("refs/heads/")) + membership.moves(call, found)
    lines += [f"{'add lines to' if Path(top, name).exists() else 'write'} {name}" for name in files]
    if _is_new_there(found) and policy.unnamed(call.ctx.repo, "", found.remote):
        lines.append(f"name the authority in .gitcoord/config: {printable(found.remote)}")
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


def _end(call: Call, files: list[str], *, todo: bool, dry_run: bool) -> None:
    if dry_run:
        call.screen.say("nothing was changed")
        return
    call.screen.say("gitcoord is set up" if todo else "nothing to do: gitcoord is set up")
    if files:
        call.screen.hint(f"look at {', '.join(files)}, then commit them")
    if todo:
        call.screen.hint("claim a path: git claim <path>", "take it all away again: git coord teardown")
