"""The gates of gitcoord that run here: by the files that git will run, and those that a manager of hooks will run for it."""

from __future__ import annotations

from gitcoord.gates.hooks.install import CONFIGURED, git_version
from gitcoord.gates.hooks.managers import (
    CALLED,
    HUSKY,
    LEFTHOOK,
    PRE_COMMIT,
    PRE_COMMIT_INSTALL,
    PRE_COMMIT_MARKS,
    Managed,
    calls_hook,
    find_manager,
)
from gitcoord.gates.hooks.text import is_ours
from gitcoord.git.commands.refs import hooks_dir
from gitcoord.git.commands.settings import list_settings
from gitcoord.git.config import parse_settings
from gitcoord.git.files import exists, is_executable, read_file
from gitcoord.ledger.context import Context
from gitcoord.startup.namedtuple import NamedTuple

GATES = ("pre-commit", "pre-merge-commit", "reference-transaction", "pre-push")
_NOTES = ("prepare-commit-msg", "post-commit")
_LARGEST = 1 << 20


_ASKS_NOT = " does not ask gitcoord"
_NOT_INSTALLED = "no hook is installed"


class MissingGate(NamedTuple):
    """A gate that does not run here, and why not."""

    event: str
    why: str
    edit: bool = False  # a hook manager's own file has to ask gitcoord
    install: str = ""  # the hook manager's own command, where that alone is missing


def command_for(missing: list[MissingGate]) -> str:
    """The command that puts these gates in place."""
    if any(gate.edit for gate in missing):
        return "git coord setup --edit-hooks"
    commands = {gate.install for gate in missing}
    return commands.pop() if len(commands) == 1 and all(commands) else "git coord setup"


def missing_gates(ctx: Context) -> list[MissingGate]:
    """The gates that do not run in this work tree."""
    if not ctx.repo.worktree or ctx.reads_only:
        return []
    directory = _directory(ctx)
    lacking = [event for event in _wanted(directory) if not _runs(ctx, directory, event)]
    if not lacking:
        return []
    local = dict(parse_settings(list_settings(ctx.repo.env).out))
    if any(f"hook.gitcoord-{event}.command" in local for event in lacking) and git_version(ctx) >= CONFIGURED:
        return _missing_in_settings(ctx, lacking, local)
    manager = find_manager(ctx, directory, ctx.repo.common_dir)
    if manager is None:
        return [MissingGate(event, _why(directory, event)) for event in lacking]
    found = [(event, _why_managed(ctx, manager, directory, event)) for event in lacking]
    return [
        MissingGate(event, why, why.endswith(_ASKS_NOT), install_command(manager) if why == _NOT_INSTALLED else "")
        for event, why in found
        if why
    ]


def _wanted(directory: str) -> tuple[str, ...]:
    """The gates; of pre-commit, which installs each hook by itself, also those that note in a commit which agent made it."""
    text = read_file(f"{directory}/pre-commit", _LARGEST)
    return GATES + _NOTES if any(mark in text for mark in PRE_COMMIT_MARKS) else GATES


def _directory(ctx: Context) -> str:
    """The directory in which git looks for hooks."""
    path = ctx.settings.get("core.hookspath")
    if not path:
        return f"{ctx.repo.common_dir}/hooks"
    if path.startswith(("~", "%")):
        return hooks_dir(ctx.repo.env, ctx.repo.worktree).text
    return path if path.startswith("/") else f"{ctx.repo.worktree}/{path}"


def _runs(ctx: Context, directory: str, event: str) -> bool:
    """Whether git finds a hook here that asks gitcoord by itself. git leaves out a file without its run bit."""
    path = f"{directory}/{event}"
    text = read_file(path, _LARGEST)
    asks = is_ours(text) or (calls_hook(text, event) and not _not_there(ctx, event))
    return asks and is_executable(path)


def _not_there(ctx: Context, event: str) -> str:
    """The reason why gitcoord's own hook, which a manager calls, does not run; '' if it does."""
    path = f"{ctx.repo.common_dir}/{CALLED}/{event}"
    if is_ours(read_file(path, _LARGEST)) and is_executable(path):
        return ""
    return _why(f"{ctx.repo.common_dir}/{CALLED}", event)


def _missing_in_settings(ctx: Context, events: list[str], local: dict[str, str]) -> list[MissingGate]:
    missing = []
    for event in events:
        path = f"{ctx.repo.common_dir}/hooks/gitcoord-{event}"
        if f"hook.gitcoord-{event}.command" not in local:
            missing.append(MissingGate(event, "the settings name no hook"))
        elif not is_ours(read_file(path, _LARGEST)) or not is_executable(path):
            missing.append(MissingGate(event, _why(f"{ctx.repo.common_dir}/hooks", f"gitcoord-{event}")))
    return missing


def _why(directory: str, name: str) -> str:
    path = f"{directory}/{name}"
    if not exists(path):
        return "there is no hook"
    return f"{path} has no run bit" if not is_executable(path) else f"{path} does not ask gitcoord"


def _why_managed(ctx: Context, manager: Managed, directory: str, event: str) -> str:
    """The reason why a manager does not ask gitcoord at this event; '' if it does."""
    if manager.manager == HUSKY and not directory.rstrip("/").endswith((".husky", ".husky/_")):
        return f"husky is not installed in this clone: {install_command(manager)}"
    if manager.manager == HUSKY and manager.own and not exists(manager.own):
        return f"husky is not installed in this work tree: {install_command(manager)}"
    installed, path = f"{directory}/{event}", manager.file_of(event) if event in manager.events else ""
    if not path:
        return _why(directory, event)
    if not calls_hook(read_file(f"{ctx.repo.worktree}/{path}", _LARGEST), event):
        return path + _ASKS_NOT
    marks = {LEFTHOOK: (b"lefthook",), PRE_COMMIT: PRE_COMMIT_MARKS}.get(manager.manager, (b"",))
    if not exists(installed) or not any(mark in read_file(installed, _LARGEST) for mark in marks):
        return _NOT_INSTALLED
    return _not_there(ctx, event) if is_executable(installed) else f"{installed} has no run bit"


def install_command(manager: Managed) -> str:
    """The command of the manager that makes git run it."""
    commands = {
        HUSKY: "npm install, then git coord setup",
        LEFTHOOK: "lefthook install",
        PRE_COMMIT: PRE_COMMIT_INSTALL,
    }
    return commands[manager.manager]
