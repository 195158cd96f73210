"""Files that setting up wrote and that are not committed, and the command that commits them."""

from __future__ import annotations

from collections.abc import Iterable

from gitcoord.base.names import shell_word
from gitcoord.git.commands.worktrees import status_in
from gitcoord.ledger.context import Context
from gitcoord.policy.reader import Source
from gitcoord.policy.suggest import CLAIM

_NOT_MARKED = ("unspecified", "unset", "false", None)


def uncommitted(ctx: Context, names: Iterable[str]) -> list[str]:
    """The files that differ from HEAD, of these; ignored ones do not count."""
    wanted = dict.fromkeys(names)
    if not wanted or not ctx.repo.worktree:
        return []
    answer = status_in(ctx.repo.env, ctx.repo.worktree, *(f":(top,literal){name}" for name in wanted))
    found = {entry[3:] for entry in answer.entries}
    return [name for name in wanted if name in found]


def is_unstaged(ctx: Context, name: str) -> bool:
    """Return whether a tracked file has changes that are not in the index."""
    entries = status_in(ctx.repo.env, ctx.repo.worktree, f":(top,literal){name}").entries
    return any(entry[:2] != "??" and entry[1] != " " for entry in entries if entry[3:] == name)


def marked_now(ctx: Context, paths: Iterable[str]) -> list[str]:
    """The paths that need a claim before a commit changes them: by the marks of HEAD, which alone count."""
    answers = Source(ctx, ctx.store.target("HEAD") or "").committed_answers(paths)
    return [path for path, values in answers.items() if values.get(CLAIM) not in _NOT_MARKED]


def commit_command(ctx: Context, names: list[str], remote: str) -> str:
    """The command that commits exactly these files, under a claim where one is needed. `remote`: the authority, '' for this clone; the
    clones that join there need the policy, and only pushed work is released."""
    files = " ".join(shell_word(name) for name in names)
    shared = " ".join(shell_word(name) for name in marked_now(ctx, names))
    steps = [f"git add -- {files}", f'git commit -m "set up gitcoord" -- {files}']
    steps += [f"git push -q {shell_word(remote)} HEAD"] if remote else []
    if shared:
        steps = [f"git claim {shared}", *steps, f"git claim release {shared}"]
    return " && ".join(steps)
