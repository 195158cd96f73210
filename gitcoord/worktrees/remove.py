"""The end of a work tree: removed with its branch and claims, once nothing in it exists nowhere else."""

from __future__ import annotations

from gitcoord.base.errors import Refusal, Refused, StoreError, UsageError
from gitcoord.base.names import LEDGER, printable, quote, shell_word
from gitcoord.claims.model import Item
from gitcoord.git.files import exists, inode, is_directory, remove_file, same_content
from gitcoord.git.locks.queue import Queue
from gitcoord.git.process import run
from gitcoord.worktrees.add import Tree, all_trees, ask_in, git_in, made_in, sync_branch, uncommitted
from gitcoord.worktrees.commit import tree_id
from gitcoord.worktrees.index import copy_index
from gitcoord.worktrees.operations import refuse_under_way
from gitcoord.worktrees.staging import SCRATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor

    GiveBack = Callable[[str, str, tuple[Item, ...]], None]

_QUEUE_SECONDS = 5.0


def done(ctx: Context, actor: Actor, name: str, give_back: GiveBack, *, discard: bool) -> dict[str, object]:
    """Remove the work tree. `give_back(path, agent, items)` releases claims as that agent, from inside it."""
    trees = all_trees(ctx)
    tree = _find(trees, name)
    _require_removable(ctx, tree)
    lock = ctx.scratch(f"commit{tree_id(tree.git_dir, ctx.repo.common_dir)}.lock")
    with Queue(lock, _QUEUE_SECONDS) as queue:  # nobody commits there meanwhile
        if not queue.held:
            raise _refused("busy", f"somebody commits in '{name}' just now", hints=("try again",))
        _require_settled(ctx, tree)
        ignored = _only_here(ctx, tree, trees)
        if ignored and not discard:
            raise _refused(
                "ignored",
                f"{len(ignored)} ignored file(s) exist nowhere else: {_some(ignored)}",
                hints=(f"if nobody needs them: git coord worktree done --discard-ignored {shell_word(name)}",),
                files=ignored,
            )
        branch = _require_merged(ctx, tree)
        released = _give_back(ctx, actor, tree, give_back)
        _remove(ctx, tree, branch)
    remove_file(lock)
    kept = tree.made if tree.made and not branch else ""
    return {
        "name": tree.name, "path": tree.path, "branch": tree.made, "branch_removed": not kept, "released": released,
        "discarded": ignored,
    }  # fmt: skip


def _refused(code: str, message: str, *, hints: tuple[str, ...] = (), files: list[str] | None = None) -> Refused:
    error = Refused(Refusal(code, message, hints=hints))
    if files:
        error.data["files"] = list(files)
    return error


def _some(files: list[str], most: int = 5) -> str:
    more = f" and {len(files) - most} more" if len(files) > most else ""
    return printable(", ".join(files[:most])) + more


def _find(trees: list[Tree], name: str) -> Tree:
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


def _require_removable(ctx: Context, tree: Tree) -> None:
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


def _require_settled(ctx: Context, tree: Tree) -> None:
    refusal = refuse_under_way(tree.git_dir, tree.agent)
    if refusal is not None:
        raise Refused(refusal)
    dirty = sorted({*uncommitted(ctx, tree), *_hidden(ctx, tree)})
    if dirty:
        raise _refused(
            "dirty",
            f"uncommitted work in '{tree.name}': {_some(dirty)}",
            hints=("commit it, and merge it",),
            files=dirty,
        )


def _hidden(ctx: Context, tree: Tree) -> list[str]:
    """Changes that `git status` was told not to look at: assume-unchanged and skip-worktree files that are there."""
    listed = git_in(ctx, tree.path, "ls-files", "-v", "-z").decode("utf-8", "surrogateescape").split("\0")
    marked = [row[2:] for row in listed if row and (row[0].islower() or row[0] == "S")]
    marked = [name for name in marked if exists(f"{tree.path}/{name}")]
    if not marked:
        return []
    index = f"{tree.git_dir}/{SCRATCH}index-{ctx.host.random()[:12]}"
    env = {b"GIT_INDEX_FILE": index.encode("utf-8", "surrogateescape")}
    data = "".join(name + "\0" for name in marked).encode("utf-8", "surrogateescape")
    try:
        copy_index(f"{tree.git_dir}/index", index)
        for unmark in ("--no-assume-unchanged", "--no-skip-worktree"):
            git_in(ctx, tree.path, "update-index", unmark, "-z", "--stdin", data=data, env=env)
        return [name for name in uncommitted(ctx, tree, env) if name in set(marked)]
    finally:
        remove_file(index)


def _only_here(ctx: Context, tree: Tree, trees: list[Tree]) -> list[str]:
    """Ignored files that no other work tree has in the same place with the same content."""
    out = git_in(ctx, tree.path, "ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    names = [name for name in out.decode("utf-8", "surrogateescape").split("\0") if name]
    others = [other.path for other in trees if other.path != tree.path and not other.bare]
    return [
        name for name in names if not any(same_content(f"{tree.path}/{name}", f"{other}/{name}") for other in others)
    ]


def _require_merged(ctx: Context, tree: Tree) -> str:
    """Everything committed is in the sync branch or on a remote. Gives what the branch made for it is at, '' if it stays."""
    sync = f"refs/heads/{sync_branch(ctx)}"
    made = f"refs/heads/{tree.made}" if tree.made else ""
    found = {}
    for ref in (sync, made):
        code, out, _ = ask_in(ctx, tree.path, "rev-parse", "--verify", "--quiet", ref) if ref else (1, b"", "")
        found[ref] = "" if code else out.decode().strip()
    tips = [oid for oid in (tree.head, found[made]) if oid]
    landed = [sync] if found[sync] else []
    words = ["rev-list", "--count", *tips, "--glob=refs/worktree/*", "--not", *landed, "--remotes", "--"]
    count = int(git_in(ctx, tree.path, *words)) if tips else 0
    if count:
        raise _refused(
            "unmerged",
            f"{count} commit(s) of '{tree.name}' are neither in '{printable(sync.removeprefix('refs/heads/'))}' nor on a remote",
            hints=(f"see them: git log {tips[0][:12]} --not {shell_word(sync)} --remotes", "merge or push them first"),
        )
    elsewhere = [t for t in all_trees(ctx) if t.ref == made and t.path != tree.path]
    return "" if made in (sync, LEDGER) or elsewhere else found[made]


def _give_back(ctx: Context, actor: Actor, tree: Tree, give_back: GiveBack) -> list[str]:
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


def _remove(ctx: Context, tree: Tree, branch: str) -> None:
    """git looks once more whether the work tree is clean; the branch goes only if it is still where it was looked at."""
    code, _, complaint = run(["git", "worktree", "remove", tree.path], ctx.repo.env)
    if code:
        raise StoreError(f"git could not remove the work tree: {complaint}", hints=("its claims were released",))
    if branch:
        argv = ["git", "update-ref", "-d", f"refs/heads/{tree.made}", branch]
        code, _, complaint = ctx.run_git(argv)
        if code:
            raise StoreError(f"the work tree is gone; its branch moved meanwhile, and stays: {complaint}")
        run(["git", "config", "--remove-section", f"branch.{tree.made}"], ctx.repo.env)
    for name in ("settings", "committing"):
        remove_file(f"{ctx.repo.scratch}/{name}{tree_id(tree.git_dir, ctx.repo.common_dir)}")
