"""Lines about trunk beside a claim and a release: that the copy is old, and that the work has not landed."""

from __future__ import annotations

from gitcoord.base.names import Oid
from gitcoord.git.commands.objects import count_changes
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.terminal.screen import Row, counted


def old_copy_lines(ctx: Context, claims: list[Row]) -> list[str]:
    """Say that trunk has changed what was claimed since this copy was made. Where HEAD is trunk, git is not asked."""
    names = [str(claim["path"]) for claim in claims if claim["kind"] == "path"]
    trunk, tips = _trunk(ctx)
    head = ctx.local.target("HEAD")
    if not names or not head or not set(tips) - {head}:
        return []
    behind = count_changes(ctx.repo.env, tips, head, paths=names)
    if not behind:
        return []
    on = "it" if len(names) == 1 else "these paths"
    return [
        f"note: your copy lacks {counted(behind, 'commit')} of '{trunk}' that changed {on}",
        "hint: bring it up to date first: git coord sync --pull",
    ]


def not_landed_lines(ctx: Context, released: list[Row]) -> list[str]:
    """Say that the work of a release is neither on trunk nor at a remote: the next holder has to get it from here."""
    commits = list(dict.fromkeys(str(row["commit"]) for row in released if row["commit"] and row["files"]))
    trunk, tips = _trunk(ctx)
    if not tips or not set(commits) - set(tips) or not count_changes(ctx.repo.env, commits, *tips):
        return []
    return [
        f"note: {', '.join(commit[:12] for commit in commits)} has not landed on '{trunk}' yet",
        "hint: bring it there: git coord land",
    ]


def _trunk(ctx: Context) -> tuple[str, list[Oid]]:
    """The name of trunk, and its tips: here, and as last seen at the remote."""
    if ctx.snapshot is None:
        return "", []
    name = format_record(ctx.snapshot.state).sync
    refs = (f"refs/heads/{name}", f"refs/remotes/{ctx.remote or 'origin'}/{name}")
    return name, [tip for tip in map(ctx.local.target, refs) if tip]
