"""Merging trunk into the current branch: completely and without conflict, or not at all."""

from __future__ import annotations

from gitcoord.base.errors import StoreError, UsageError, raise_if, refused
from gitcoord.base.names import CONFIG, printable, shell_word
from gitcoord.deploy.staleness import changed_files
from gitcoord.deploy.targets import Staleness, behind_words, first_names
from gitcoord.git.commands.objects import merge_base, merge_tree
from gitcoord.git.commands.refs import abort_merge, merge, rev_parse, symbolic_ref
from gitcoord.git.commands.worktrees import check_ignore, status_original
from gitcoord.git.files import exists
from gitcoord.git.operations import refuse_under_way
from gitcoord.git.process import without_grafts
from gitcoord.ledger.context import Context
from gitcoord.ledger.named_ledger import is_beside_trunk

DIRTY = "dirty"  # the code of a refusal for uncommitted work


def require_ready(ctx: Context) -> str:
    """The current branch; Refused where nothing can be merged into it now."""
    if not ctx.repo.worktree:
        raise UsageError("there is no work tree here to bring up to date")
    raise_if(refuse_under_way(ctx.repo.git_dir, "", "then again: git coord sync --pull"))
    head = symbolic_ref(ctx.repo.env)
    if head.code:
        raise refused("detached", "no branch is checked out: nothing was changed", "git switch <branch>")
    return head.text.removeprefix("refs/heads/")


def pull(ctx: Context, found: Staleness, branch: str) -> str:
    """Merge trunk; gives the new commit. Refused, with nothing changed, where the merge is not clean."""
    words = behind_words(found)
    if len(found.tips) > 1:
        raise refused(
            "diverged",
            f"{words}, and '{printable(found.sync)}' here and at its remote have diverged: nothing was changed",
            f"merge those two first: git switch {shell_word(found.sync)} && git coord sync --pull",
        )
    if found.conflict:
        raise refused(
            "conflict",
            f"{words}, and a merge would conflict: nothing was changed",
            *by_hand(ctx, found),
        )
    ctx.host.defer_interrupts(True)
    try:
        return _merge(ctx, found, branch)
    finally:
        ctx.host.defer_interrupts(False)


def by_hand(ctx: Context, found: Staleness) -> tuple[str, ...]:
    """Hints where the merge conflicts, or git would not begin it, as without a common history."""
    tips = " ".join(tip[:12] for tip in found.tips)
    joined = bool(merge_base(without_grafts(ctx.repo.env), found.commit, *found.tips).text)
    first = f"merge by hand: git merge {tips}"
    if not joined:
        first = f"the two have no common history; put your commits on top of it: git rebase {tips}"
    if not is_beside_trunk(ctx):
        return (first,)
    side = "theirs" if joined else "ours"  # a rebase goes on from trunk's side
    return (first, f"the ledger that trunk names in {CONFIG} is the project's: git checkout --{side} {CONFIG}")


def _merge(ctx: Context, found: Staleness, branch: str) -> str:
    (tip,) = found.tips
    _require_untouched(ctx, found.commit, tip)
    theirs = f"the remote's '{printable(found.sync)}'" if branch == found.sync else f"'{printable(found.sync)}'"
    message = f"Merge {theirs} into '{printable(branch)}'"
    code, out, complaint = merge(ctx.repo, ctx.notes, tip, message)
    if code:
        _undo(ctx)
        lines = (complaint or out.decode("utf-8", "replace")).strip().split("\n")
        raise refused("merge", f"git would not merge: {printable(' '.join(lines[:3]))}: nothing was changed")
    return rev_parse(ctx.repo.env, "HEAD").text


def _undo(ctx: Context) -> None:
    """Abort the merge that a refusing hook or an unforeseen conflict left."""
    if exists(f"{ctx.repo.git_dir}/MERGE_HEAD"):
        answer = abort_merge(ctx.repo, ctx.notes)
        answer.require("the merge could not be undone", StoreError, hints=("git merge --abort",))


def _require_untouched(ctx: Context, commit: str, tip: str) -> None:
    """Refused where the merge would write to uncommitted, untracked or ignored files."""
    touched = changed_files(ctx, commit, _merged(ctx, commit, tip))
    answer = status_original(without_grafts(ctx.repo.env)).require("git status failed", StoreError)
    unknown = touched & {entry[3:] for entry in answer.entries if entry.startswith("?")} | _ignored(ctx, touched)
    changed = touched & {entry[3:] for entry in answer.entries} - unknown
    at_risk = first_names(changed | unknown)
    if at_risk:
        raise refused(
            DIRTY,
            f"uncommitted changes in {printable(', '.join(at_risk))} would be touched: nothing was changed",
            *(("commit them first, or put them away: git stash, and then git stash pop",) if changed else ()),
            *((_aside(ctx, min(unknown)),) if unknown else ()),
        )


def _aside(ctx: Context, path: str) -> str:
    """The hint for files that git does not know: `git stash` leaves them, and what it stashed it would not put back over trunk's."""
    word, kept = (
        shell_word(f"{ctx.repo.worktree}/{name}" if ctx.repo.prefix else name) for name in (path, f"{path}.mine")
    )
    return f"git does not know {printable(path)}, and git stash leaves it: put it aside, mv {word} {kept}"


def _merged(ctx: Context, commit: str, tip: str) -> str:
    """The tree of the clean merge."""
    return merge_tree(without_grafts(ctx.repo.env), commit, tip).require("git cannot merge", StoreError).entries[0]


def _ignored(ctx: Context, paths: set[str]) -> set[str]:
    """Ignored files among these paths: git would overwrite them silently."""
    there = [path for path in paths if exists(f"{ctx.repo.worktree}/{path}")]
    if not there:
        return set()
    answer = check_ignore(ctx.repo.env, there, ctx.repo.worktree)
    if answer.code not in (0, 1):
        raise StoreError(f"git cannot tell what is ignored: {answer.complaint}")
    return set(answer.entries)
