"""Surveys of a work tree: the marked files, and files that could be marked."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from gitcoord.base.errors import StoreError
from gitcoord.git.commands.objects import log_changes
from gitcoord.git.commands.worktrees import check_attribute, ls_files
from gitcoord.ledger.context import Context
from gitcoord.policy.suggest import CLAIM, LANDING, PastCommit, Suggestion, from_history, from_tree

_SINCE, _COMMITS = "90 days ago", 1000
_MARKS = (b" " + CLAIM.encode(), b" " + LANDING.encode())
_MARK = b"# Suggested by git coord policy suggest:\n"
ATTRIBUTES = ".gitattributes"


class Protection(NamedTuple):
    """The files that need a claim before they change, and how many others there are. Ignored ones do not count."""

    marked: list[str]
    others: int


def suggestions(ctx: Context) -> list[Suggestion]:
    """Lines of .gitattributes that would mark files which are not marked yet."""
    protection = protected(ctx)
    files = _files(ctx, "tracked") or _files(ctx, "visible")  # before the first commit
    paths = [path for path in files if path not in set(protection.marked)]
    by_name = from_tree(paths)
    named = {path for path in paths if any(row.kind != "history" for row in from_tree([path]))}
    return by_name + from_history(_changes(ctx), [path for path in paths if path not in named])


def protected(ctx: Context) -> Protection:
    """The marked and unmarked files, by the attributes in the work tree."""
    paths = _files(ctx, "visible")
    answer = check_attribute(ctx.repo.env, CLAIM, paths, ctx.repo.worktree)
    words = answer.require("git cannot read the attributes", StoreError).entries
    marked = [path for path, value in zip(words[0::3], words[2::3]) if value not in ("unspecified", "unset")]
    return Protection(marked, len(paths) - len(marked))


def mark(ctx: Context, rows: list[Suggestion]) -> list[str]:
    """Add these lines to .gitattributes; gives the names of the files that changed."""
    if not rows:
        return []
    file = Path(ctx.repo.worktree, ATTRIBUTES)
    old = file.read_bytes() if file.exists() else b""
    lines = "".join(f"{row.line}\n" for row in rows).encode("utf-8", "surrogateescape")
    gap = b"\n" if old else b""
    file.write_bytes(old + gap + _MARK + lines)
    return [ATTRIBUTES]


def unmark(content: bytes) -> bytes:
    """The content of .gitattributes before `mark`; unchanged where the lines were changed since."""
    before, found, lines = content.rpartition(_MARK)
    if not found or not all(line.endswith(_MARKS) for line in lines.splitlines()):
        return content
    return before.removesuffix(b"\n")


def _files(ctx: Context, show: str) -> list[str]:
    answer = ls_files(ctx.repo.env, tree=ctx.repo.worktree, show=show)
    return list(dict.fromkeys(answer.require("git cannot list the files", StoreError).entries))


def _changes(ctx: Context) -> list[PastCommit]:
    """The last commits; none where there is no commit yet. Who: the agent that a trailer names, else the author."""
    text = log_changes(ctx.repo.env, _SINCE, _COMMITS).out.decode("utf-8", "surrogateescape")
    changes = []
    for part in text.split("\x01")[1:]:
        head, _, names = part.partition("\x03")
        at, author, agents = head.split("\x02")
        paths = tuple(name.removeprefix("\n") for name in names.split("\0") if name.strip("\n"))
        changes.append(PastCommit(agents.split(",")[0].strip() or author, int(at), paths))
    return changes
