"""`git coord setup`: all of gitcoord into a repository in one step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from gitcoord.audit.cli_say import say_checks
from gitcoord.audit.doctor import not_in_place
from gitcoord.audit.model import Check
from gitcoord.base.names import CONFIG, printable
from gitcoord.cli.setup_hooks import (
    edit_lines,
    hook_lines,
    manager_edits,
    manager_files,
    plan_hooks,
    tell_missing,
    tell_unstaged,
    write_edits,
)
from gitcoord.cli.setup_ledger import (
    LOCAL,
    archive,
    chosen_ledger,
    confirm,
    in_the_way,
    ledger_lines,
    pushed_policy,
    tell_authority,
    tell_policy,
)
from gitcoord.cli.setup_marks import chosen_marks, tell_protection, tell_uncommitted
from gitcoord.cli.setup_person import offer_person
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.manager_files import FileEdit
from gitcoord.gates.hooks.managers import Managed
from gitcoord.gates.hooks.presence import missing_gates
from gitcoord.guard.setup import cli as tools
from gitcoord.guard.setup import plan as harness
from gitcoord.guard.setup.known import Known
from gitcoord.ledger.named_ledger import fetched_policy
from gitcoord.ledger.remote.membership import Membership, begin
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import sync_branch
from gitcoord.policy import starter as policy
from gitcoord.policy.suggest import Suggestion
from gitcoord.policy.survey import mark, protected
from gitcoord.policy.uncommitted import uncommitted
from gitcoord.terminal.call import Call, words_of
from gitcoord.terminal.parser import Values
from gitcoord.world.open import open_repository


class _Parts(NamedTuple):
    """The parts that will be set up, each as it was found and chosen."""

    ledger: Membership
    files: list[str]  # missing files of the starter policy
    marks: list[Suggestion]
    hooks: hooks.HookPlan
    manager: Managed | None  # of the repository's other hooks
    trunk: str
    edits: list[FileEdit]  # of the hook manager's own files
    tools: list[harness.SetupChange]
    pull: str  # the fetched ref that has the policy, which is then not written here

    @property
    def there(self) -> bool:
        return self.ledger.here and not self.ledger.other


def setup(call: Call, values: Values, words: list[str]) -> int:
    """Set up what is missing; existing files stay."""
    dry_run = bool(values.get("dry-run"))
    place = tools.place_of(call, user=bool(values.get("user")))
    known = tools.chosen(words_of(values, "tool"), place, no_tools=bool(values.get("no-tools")))
    parts = _chosen(call, values, harness.plan_setup(known, place), dry_run=dry_run)
    todo = _todo(call, parts)
    call.screen.say(*(("would " if dry_run else "will ") + line for line in todo), *_already(call, parts))
    result: dict[str, Any] = {"dry_run": dry_run, "created": not parts.there, "policy": parts.files}
    result |= {"authority": parts.ledger.remote or LOCAL, "sync": parts.trunk}
    if todo and not dry_run:
        confirm(values, "go on?")
        result |= _apply(call, parts)
        parts = parts._replace(tools=harness.apply(parts.tools, place))
    if not dry_run:
        hooks.register(call.ctx, parts.hooks.registry)  # a clone that was moved has all but its place in the list
    missing = [] if dry_run else missing_gates(call.ctx)
    wrong = [] if dry_run else _not_in_place(call, known)
    result |= _hooks_row(parts) | {"tools": [change.row() for change in parts.tools]}
    result |= {"marked": [row.line for row in parts.marks], "missing_gates": [gate.event for gate in missing]}
    result |= {"not_in_place": [check.to_json() for check in wrong]}
    call.screen.answer({"changed": bool(todo) and not dry_run, **result}, ok=not missing)
    _end(call, todo=bool(todo), dry_run=dry_run, whole=not missing)
    if not dry_run:
        remote = "" if result["authority"] == LOCAL else str(result["authority"])
        own = [*policy.FILES, *manager_files(call, parts.manager), *tools.of_project(parts.tools, place)]
        tell_uncommitted(call, own, remote)
        tell_protection(call, protected(call.ctx))
        tell_authority(call, parts.ledger, remote)
        offer_person(call)
    joined = bool(result["authority"] != LOCAL and not (parts.there or dry_run or result["created"]))
    tell_policy(call, parts.pull, unpushed=joined and CONFIG in parts.files)
    tools.tell(call, known, parts.tools, user=place.user)
    tell_missing(call, missing)
    if not dry_run:
        tell_unstaged(call, parts.manager)
    if wrong:
        call.screen.say("what does not work yet (git coord doctor):")
        say_checks(call, wrong)
    return 1 if missing else 0


def _not_in_place(call: Call, chosen: list[Known]) -> list[Check]:
    """The short form of `git coord doctor`, without what is told anyway: hooks, policy, and tools that were not chosen. The remote has
    just answered."""
    told = {"hooks", "policy", "authority", "objects", "ssh"} | ({"tools"} if not chosen else set())
    ctx = open_repository(call.environ, writing=False)  # with the settings that were just written
    return not_in_place(ctx, call.actor_or_none(), os.environ, told)


def _chosen(call: Call, values: Values, changes: list[harness.SetupChange], *, dry_run: bool) -> _Parts:
    """Look at all parts before anything is changed. A person is asked what can be chosen."""
    ledger = chosen_ledger(call, values, dry_run=dry_run)
    pull = fetched_policy(call.ctx) or ("" if dry_run else pushed_policy(call, ledger))
    files = [] if pull else policy.missing_starter(call.ctx.repo)
    there = ledger.here and not ledger.other
    gates = hooks.gated_refs(call.ctx) if there else [f"refs/heads/{sync_branch(call.ctx)}"]
    plan, manager = plan_hooks(call, gates)
    new = bool(files or uncommitted(call.ctx, [CONFIG]))
    marks = [] if pull else chosen_marks(call, values, new=new, dry_run=dry_run)
    edits = manager_edits(call, values, manager, dry_run=dry_run)
    return _Parts(ledger, files, marks, plan, manager, gates[0].removeprefix("refs/heads/"), edits, changes, pull)


def _apply(call: Call, parts: _Parts) -> dict[str, object]:
    plan = parts.hooks
    if parts.ledger.other:
        archive(call, parts.ledger)  # with the hooks
        plan, _ = plan_hooks(call, [f"refs/heads/{parts.trunk}"])
    result = _begin(call, parts.ledger, pull=bool(parts.pull))
    written: list[str] = result["policy"]
    written += [name for name in mark(call.ctx, parts.marks) if name not in written]
    in_the_way(call, parts.pull, dry_run=False)
    hooks.install(call.ctx, plan)
    write_edits(call, parts.edits)
    return result


def _hooks_row(parts: _Parts) -> dict[str, object]:
    manager = parts.manager
    return parts.hooks.result() | ({"manager": manager.manager, "snippet": manager.snippet} if manager else {})


def _begin(call: Call, found: Membership, *, pull: bool) -> dict[str, Any]:
    """Make or join the ledger, and write the missing parts of the policy, unless there is one to `pull`."""
    made = begin(call.ctx, call.actor_or_none() or Actor("init"), found)
    remote = str(made.get("remote", ""))
    written, named = [], []
    if not pull:
        written = policy.write_starter(call.ctx.repo, str(made["root"]), remote)
        named = policy.name_ledger(call.ctx.repo, "", remote if _is_new_there(found) else "")
    return {
        "created": bool(made["created"]),
        "policy": [*written, *(name for name in named if name not in written)],
        "authority": remote or LOCAL,
    }


def _is_new_there(found: Membership) -> bool:
    """Whether the remote was asked for or gets a new ledger: then the policy says that it decides."""
    return bool(found.remote) and not found.found


def _todo(call: Call, parts: _Parts) -> list[str]:
    top, plan = call.ctx.repo.worktree, parts.hooks
    lines = ledger_lines(call, parts.ledger, parts.trunk)
    lines += [f"{'add lines to' if Path(top, name).exists() else 'write'} {name}" for name in parts.files]
    if blocking := in_the_way(call, parts.pull, dry_run=True):
        lines.append(f"take away what would be in the way of the project's policy: {printable(', '.join(blocking))}")
    if not parts.pull and _is_new_there(parts.ledger) and policy.unnamed(call.ctx.repo, "", parts.ledger.remote):
        lines.append(f"name the authority in .gitcoord/config: {printable(parts.ledger.remote)}")
    if parts.marks:
        lines.append(f"mark {len(parts.marks)} pattern{'' if len(parts.marks) == 1 else 's'} in .gitattributes")
    if plan.changes:
        lines += hook_lines(plan, parts.manager)
    return lines + edit_lines(parts.edits) + tools.lines(parts.tools)


def _already(call: Call, parts: _Parts) -> list[str]:
    ready = not parts.hooks.changes and (parts.manager is None or not missing_gates(call.ctx))
    rows = [("the ledger", parts.there), ("the policy", not parts.files and not parts.pull), ("the hooks", ready)]
    found = [name for name, is_there in [*rows, ("the agent tools", tools.ready(parts.tools))] if is_there]
    return [f"already there: {', '.join(found)}"] if found else []


def _end(call: Call, *, todo: bool, dry_run: bool, whole: bool) -> None:
    if dry_run:
        call.screen.say("nothing was changed")
        return
    state = "gitcoord is set up" if whole else "gitcoord is set up, without the gates that are named below"
    call.screen.say(state if todo else f"nothing to do: {state}")
    if todo:
        call.screen.hint("claim a path: git claim <path>", "take it all away again: git coord teardown")
