"""The end of a work tree: removed with its branch and claims, once nothing in it exists nowhere else."""

from __future__ import annotations

from gitcoord.base.errors import Refusal, Refused, StoreError, UsageError, refused
from gitcoord.base.names import LEDGER, listed, printable, quote, shell_word
from gitcoord.claims.model import Item
from gitcoord.git.commands.objects import count_commits
from gitcoord.git.commands.refs import delete_ref, rev_parse
from gitcoord.git.commands.settings import forget_branch_settings
from gitcoord.git.commands.worktrees import (
    ls_files,
    remove_worktree,
    unmark_files,
    with_index,
    without_location,
)
from gitcoord.git.files import exists, inode, is_directory, remove_file, same_content
from gitcoord.git.locks.queue import QueuedLock
from gitcoord.git.operations import refuse_under_way
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.startup.annotations import Callable
from gitcoord.worktrees.add import WorkTree, all_trees, made_in, sync_branch, uncommitted
from gitcoord.worktrees.commit import tree_id
from gitcoord.worktrees.index import copy_index
from gitcoord.worktrees.staging import SCRATCH

GiveBack = Callable[[str, str, tuple[Item, ...]], None]

_QUEUE_SECONDS = 5.0


def done(
    ctx: Context, actor: Actor, name: str, give_back: GiveBack, *, discard: bool, landed: str = ""
) -> dict[str, object]:
    """Remove the work tree. `give_back(path, agent, items)` releases claims as that agent, from inside it. `landed`: a commit that has just landed, perhaps
    by other commits."""
    trees = all_trees(ctx)
    tree = _find(trees, name)
    _require_removable(ctx, tree)
    lock = ctx.scratch(f"commit{tree_id(tree.git_dir, ctx.repo.common_dir)}.lock")
    with QueuedLock(lock, _QUEUE_SECONDS) as queue:  # nobody commits there meanwhile
        if not queue.acquired:
            raise _refused("busy", f"somebody commits in '{name}' just now", hints=("try again",))
        _require_settled(ctx, tree)
        ignored = _only_here(ctx, tree, trees)
        if ignored and not discard:
            raise _refused(
                "ignored",
                f"{len(ignored)} ignored file(s) exist nowhere else: {listed(ignored)}",
                hints=(f"if nobody needs them: git coord worktree done --discard-ignored {shell_word(name)}",),
                files=ignored,
            )
        branch = _require_merged(ctx, tree, landed)
        released = _give_back(ctx, actor, tree, give_back)
        _remove(ctx, tree, branch)
    remove_file(lock)
    kept = tree.made if tree.made and not branch else ""
    return {
        "name": tree.name, "path": tree.path, "branch": tree.made, "branch_removed": not kept, "released": released,
        "discarded": ignored,
    }  # fmt: skip


def _refused(code: str, message: str, *, hints: tuple[str, ...] = (), files: list[str] | None = None) -> Refused:
    error = refused(code, message, *hints)
    if files:
        error.data["files"] = list(files)
    return error


def _find(trees: list[WorkTree], name: str) -> WorkTree:
    for tree in trees:
        if tree.name == name and not tree.main:
            return tree
    hints: tuple[str, ...] = ("which there are: git coord worktree list",)
    others = [tree for tree in trees if name in (tree.path, tree.path.rpartition("/")[2])]
    if others and others[0].main:
        raise UsageError(f"{quote(name[:80])} is the main work tree, which stays")
    if others and not others[0].git_dir:
        raise _refused(
            "missing", f"the directory of {quote(name)} is gone", hints=("git worktree prune, or git worktree repair",)
        )
    if others:
        hints = (f"remove it in git's own way: git worktree remove {shell_word(others[0].path)}",)
        raise UsageError(f"{quote(name[:80])} was not made by git coord worktree add", hints=hints)
    raise UsageError(f"there is no work tree {quote(name[:80])}", hints=hints)


def _require_removable(ctx: Context, tree: WorkTree) -> None:
    if tree.locked is not None:
        why = f": {printable(tree.locked)}" if tree.locked else ""
        raise _refused(
            "locked", f"'{tree.name}' is locked{why}", hints=(f"git worktree unlock {shell_word(tree.path)}",)
        )
    if ctx.repo.worktree and inode(ctx.repo.worktree) == inode(tree.path):
        raise _refused("inside", f"you are inside '{tree.name}'", hints=("go elsewhere first, and run it there",))
    if is_directory(f"{tree.git_dir}/modules"):
        raise _refused(
            "submodule",
            f"'{tree.name}' has submodules, whose commits may be nowhere else",
            hints=("push them, then: git -C <work tree> submodule deinit --all, and remove its 'modules'",),
        )


def _require_settled(ctx: Context, tree: WorkTree) -> None:
    refusal = refuse_under_way(tree.git_dir, tree.agent)
    if refusal is not None:
        raise Refused(refusal)
    dirty = sorted({*uncommitted(ctx, tree), *_hidden(ctx, tree)})
    if dirty:
        raise _refused(
            "dirty",
            f"uncommitted work in '{tree.name}': {listed(dirty)}",
            hints=("commit it, and merge it",),
            files=dirty,
        )


def _hidden(ctx: Context, tree: WorkTree) -> list[str]:
    """Changes that `git status` was told not to look at: assume-unchanged and skip-worktree files that are there."""
    env = without_location(ctx.repo.env)
    listed = (
        ls_files(env, tree=tree.path, show="marked").require(f"git ls-files in {tree.path} failed", StoreError).entries
    )
    marked = [row[2:] for row in listed if (row[0].islower() or row[0] == "S")]
    marked = [name for name in marked if exists(f"{tree.path}/{name}")]
    if not marked:
        return []
    index = f"{tree.git_dir}/{SCRATCH}index-{ctx.host.random()[:12]}"
    try:
        copy_index(f"{tree.git_dir}/index", index)
        for flag in ("assume-unchanged", "skip-worktree"):
            answer = unmark_files(with_index(env, index), tree.path, flag, marked)
            answer.require(f"git update-index in {tree.path} failed", StoreError)
        return [name for name in uncommitted(ctx, tree, index) if name in set(marked)]
    finally:
        remove_file(index)


def _only_here(ctx: Context, tree: WorkTree, trees: list[WorkTree]) -> list[str]:
    """Ignored files that no other work tree has in the same place with the same content."""
    answer = ls_files(without_location(ctx.repo.env), tree=tree.path, show="ignored")
    names = answer.require(f"git ls-files in {tree.path} failed", StoreError).entries
    others = [other.path for other in trees if other.path != tree.path and not other.bare]
    return [
        name for name in names if not any(same_content(f"{tree.path}/{name}", f"{other}/{name}") for other in others)
    ]


def _require_merged(ctx: Context, tree: WorkTree, has_landed: str) -> str:
    """Require that every commit is in trunk, in what has landed or on a remote. Returns the tip of the branch made for it, '' if it stays."""
    sync = f"refs/heads/{sync_branch(ctx)}"
    made = f"refs/heads/{tree.made}" if tree.made else ""
    env = without_location(ctx.repo.env)
    found = {ref: rev_parse(env, ref, tree.path).text if ref else "" for ref in (sync, made)}
    tips = [oid for oid in (tree.head, found[made]) if oid]
    landed = [name for name in (found[sync] and sync, has_landed) if name]
    count = 0
    if tips:
        revisions = [*tips, "--glob=refs/worktree/*", "--not", *landed, "--remotes"]
        answer = count_commits(env, *revisions, tree=tree.path)
        count = int(answer.require(f"git rev-list in {tree.path} failed", StoreError).text)
    if count:
        branch = (tree.ref if tree.ref != sync else "").removeprefix("refs/heads/")
        raise _refused(
            "unmerged",
            f"{count} commit(s) of '{tree.name}' are neither in '{printable(sync.removeprefix('refs/heads/'))}' nor on a remote",
            hints=(
                f"see them: git log {tips[0][:12]} --not {shell_word(sync)} --remotes",
                "land them first: git coord land " + (shell_word(branch) if branch else "<branch>"),
                "or push them",
            ),
        )
    elsewhere = [t for t in all_trees(ctx) if t.ref == made and t.path != tree.path]
    return "" if made in (sync, LEDGER) or elsewhere else found[made]


def _give_back(ctx: Context, actor: Actor, tree: WorkTree, give_back: GiveBack) -> list[str]:
    """Release the claims made there. Live ones of another only its owner, who made the work tree, or a person may end."""
    claims = made_in(ctx, tree)
    foreign = [claim for claim in claims if claim["agent"] != actor.agent and not claim["silent"]]
    if foreign and not actor.person and tree.by != actor.agent:
        held = tuple({key: value for key, value in claim.items() if key != "silent"} for claim in foreign)
        names = ", ".join(sorted({str(claim["agent"]) for claim in foreign}))
        raise Refused(Refusal("held", f"'{tree.name}' is at work: claims of {names} were made there", held))
    items: dict[str, list[Item]] = {}
    for claim in claims:
        kind = str(claim["kind"])
        items.setdefault(str(claim["agent"]), []).append(Item(kind, str(claim["path"])[kind == "resource" :]))
    for agent, own in items.items():
        give_back(tree.path, agent, tuple(own))
    return [str(claim["path"]) for claim in claims]


def _remove(ctx: Context, tree: WorkTree, branch: str) -> None:
    """git looks once more whether the work tree is clean; the branch goes only if it is still where it was looked at."""
    removed = remove_worktree(ctx.repo.env, tree.path)
    removed.require("git could not remove the work tree", StoreError, hints=("its claims were released",))
    if branch:
        deleted = delete_ref(ctx.repo, ctx.notes, f"refs/heads/{tree.made}", branch)
        deleted.require("the work tree is gone; its branch moved meanwhile, and stays", StoreError)
        forget_branch_settings(ctx.repo.env, tree.made)
    for name in ("settings", "committing"):
        remove_file(f"{ctx.repo.scratch}/{name}{tree_id(tree.git_dir, ctx.repo.common_dir)}")
