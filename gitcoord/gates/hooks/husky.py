"""husky's own directory `.husky/_`, which `npm install` makes in a work tree and git ignores: a new work tree lacks it, and git
then runs no hook there."""

from __future__ import annotations

from gitcoord.gates.hooks.files import look, put
from gitcoord.git.commands.worktrees import list_worktrees
from gitcoord.git.files import exists, list_files, make_directory
from gitcoord.ledger.context import Context


def lacking(ctx: Context) -> dict[str, bytes]:
    """The files of the main work tree's `.husky/_` that are missing in this one; its `.gitignore` comes first."""
    if ctx.settings.get("core.hookspath").rstrip("/") != ".husky/_":
        return {}
    source = f"{ctx.repo.common_dir}/../.husky/_"
    here = {name: f"{ctx.repo.worktree}/.husky/_/{name}" for name in sorted(list_files(source))}
    found = {path: look(f"{source}/{name}") for name, path in here.items() if not exists(path)}
    return {path: data for path, data in found.items() if data}


def bring(ctx: Context, files: dict[str, bytes]) -> None:
    """Write them. They are scripts that find their work tree by their own place."""
    if files:
        make_directory(f"{ctx.repo.worktree}/.husky")
    for path, data in files.items():
        put(path, data)


def directories(ctx: Context) -> list[str]:
    """husky's own directories in all work trees: git runs the hooks of each."""
    rows = list_worktrees(ctx.repo.env).text.split("\0")
    return [f"{row.removeprefix('worktree ')}/.husky/_" for row in rows if row.startswith("worktree ")]
