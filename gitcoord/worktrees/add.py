"""Work trees for parallel branches: which there are, whose, how far; and a new one, whole or not at all."""

from __future__ import annotations

from gitcoord.base.errors import StoreError, UsageError, refused
from gitcoord.base.names import printable, quote
from gitcoord.claims.query import check, listing
from gitcoord.git.commands.objects import count_commits
from gitcoord.git.commands.refs import (
    add_worktree,
    delete_ref,
    has_ref,
    is_branch_name,
    rev_parse_commit,
    top_of,
    update_ref,
)
from gitcoord.git.commands.refs import git_dir as git_dir_of
from gitcoord.git.commands.settings import change_settings, get_setting, list_settings, set_in_worktree
from gitcoord.git.commands.worktrees import list_worktrees, remove_worktree, status_in, with_index, without_location
from gitcoord.git.config import parse_settings
from gitcoord.git.files import create_directory, exists, is_directory, remove_directory
from gitcoord.git.locks.queue import QueuedLock
from gitcoord.git.operations import under_way
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.sessions.worktree_notes import noted_claims
from gitcoord.startup.annotations import Callable
from gitcoord.startup.namedtuple import NamedTuple

Claim = Callable[[str], "dict[str, object]"]

QUEUE_SECONDS = 60.0


class WorkTree(NamedTuple):
    """A work tree. `name`, `agent`, `by` and `made` (the branch) are what `add` noted in its own settings."""

    path: str
    git_dir: str  # '' where its directory is gone
    head: str
    ref: str  # '' if detached
    main: bool
    bare: bool
    locked: str | None  # why, '' where nobody said
    name: str
    agent: str
    by: str
    made: str


def all_trees(ctx: Context) -> list[WorkTree]:
    """Every work tree, the main one first."""
    answer = list_worktrees(ctx.repo.env).require("git worktree list failed", StoreError)
    trees: list[WorkTree] = []
    for part in answer.text.split("\0\0"):
        rows = dict((*row.partition(" ")[::2],) for row in part.split("\0") if row)
        if rows:
            trees.append(_tree(ctx, rows, main=not trees))
    return trees


def _tree(ctx: Context, rows: dict[str, str], *, main: bool) -> WorkTree:
    path, bare = rows["worktree"], "bare" in rows
    git_dir = ctx.repo.common_dir if main else ""
    if not main and is_directory(path):
        git_dir = git_dir_of(without_location(ctx.repo.env), path).text
    noted: dict[str, str] = {}
    if git_dir and exists(f"{git_dir}/config.worktree"):
        listed = list_settings(ctx.repo.env, file=f"{git_dir}/config.worktree")
        noted = {} if listed.code else dict(parse_settings(listed.out))
    words = [noted.get(f"gitcoord.{key}", "") for key in ("tree", "agent", "by", "branch")]
    head = rows.get("HEAD", "").strip("0") and rows["HEAD"]
    return WorkTree(path, git_dir, head, rows.get("branch", ""), main, bare, rows.get("locked"), *words)


def sync_branch(ctx: Context) -> str:
    return str(format_record(read_snapshot(ctx).state).sync)


# --- listing ------------------------------------------------------------------------------------------------------


def overview(ctx: Context, actor: Actor | None) -> dict[str, object]:
    """Each work tree with its owner, tasks, state and claims."""
    claims: list[dict[str, object]] = listing(ctx, actor, expired=True)["claims"]  # type: ignore[assignment]
    sync, trees = sync_branch(ctx), all_trees(ctx)
    noted = [noted_claims(tree.git_dir) if tree.git_dir and not tree.main else set() for tree in trees]
    rows = []
    for tree, own in zip(trees, noted):
        # A claim that no linked work tree noted was made in the main one.
        made = [c for c in claims if _key(c) in own or (tree.main and not any(_key(c) in other for other in noted))]
        rows.append(_shown(ctx, tree, made, sync))
    return {"sync": sync, "worktrees": rows}


def _key(claim: dict[str, object]) -> tuple[int, str]:
    return int(str(claim["token"])), str(claim["agent"])


def made_in(ctx: Context, tree: WorkTree) -> list[dict[str, object]]:
    """The claims that were made in a linked work tree and are still there."""
    own = noted_claims(tree.git_dir)
    claims: list[dict[str, object]] = listing(ctx, None, expired=True)["claims"]  # type: ignore[assignment]
    return [claim for claim in claims if _key(claim) in own]


def _shown(ctx: Context, tree: WorkTree, claims: list[dict[str, object]], sync: str) -> dict[str, object]:
    there = bool(tree.git_dir) and not tree.bare
    agents = sorted({str(claim["agent"]) for claim in claims})
    ahead, behind = _distance(ctx, tree.head, sync)
    running = under_way(tree.git_dir) if there else None
    return {
        "name": tree.name or tree.path.rpartition("/")[2],
        "path": tree.path,
        "main": tree.main,
        "branch": tree.ref.removeprefix("refs/heads/"),
        "head": tree.head,
        "agent": tree.agent or (agents[0] if len(agents) == 1 and not tree.main else ""),
        "tasks": sorted({str(claim["task"]) for claim in claims} - {""}),
        "dirty": len(uncommitted(ctx, tree)) if there else None,
        "under_way": running.name if running is not None else "",
        "locked": tree.locked,
        "ahead": ahead,
        "behind": behind,
        "claims": claims,
    }


def _distance(ctx: Context, head: str, sync: str) -> tuple[int | None, int | None]:
    """The number of commits ahead of trunk and behind it; None if unknown."""
    if not head:
        return None, None
    apart = count_commits(ctx.repo.env, "--left-right", f"{head}...refs/heads/{sync}")
    if apart.code:
        return None, None
    ahead, behind = apart.text.split()
    return int(ahead), int(behind)


def uncommitted(ctx: Context, tree: WorkTree, index: str = "") -> list[str]:
    """The files that are changed or new and not ignored; `index`: by that index instead of the work tree's own."""
    env = without_location(ctx.repo.env)
    answer = status_in(with_index(env, index) if index else env, tree.path)
    return [entry[3:] for entry in answer.require(f"git status in {tree.path} failed", StoreError).entries]


# --- a new one ----------------------------------------------------------------------------------------------------


class Add(NamedTuple):
    """The command. `by` is who asks, `agent` who will work there; `start` '' means trunk."""

    name: str
    agent: str
    by: str
    branch: str
    start: str = ""


def add(ctx: Context, command: Add, claim: Claim | None) -> dict[str, object]:
    """Work tree, branch, identity and claims in one go; where one of them cannot be had, none of them is left."""
    verdict = check(ctx, Actor(command.agent), ())
    if "refused" in verdict:
        raise refused(str(verdict["refused"]), str(verdict["message"]))
    # Settings and names are looked at before they are made.
    with QueuedLock(ctx.scratch("worktree.lock"), QUEUE_SECONDS):
        return _add(ctx, command, claim)


def _add(ctx: Context, command: Add, claim: Claim | None) -> dict[str, object]:
    start = _start(ctx, command.start)
    trees = all_trees(ctx)
    path = _place(ctx, trees[0].path, command.name)
    _require_new(ctx, command, path, trees)
    _use_own_settings(ctx)
    _make_branch(ctx, command.branch, start)
    try:
        result = _make_tree(ctx, command, path, claim)
    except BaseException:
        delete_ref(ctx.repo, ctx.notes, f"refs/heads/{command.branch}", start)
        raise
    return {"name": command.name, "branch": command.branch, "agent": command.agent, "start": start, **result}


def _start(ctx: Context, word: str) -> str:
    wanted = [word] if word else [f"refs/heads/{sync_branch(ctx)}", "HEAD"]
    for name in wanted:
        if found := rev_parse_commit(ctx.repo.env, name).text:
            return found
    if word:
        raise UsageError(f"{quote(word[:80])} is not a commit here")
    raise UsageError("there is no commit yet to start from", hints=("make the first commit",))


def _place(ctx: Context, main: str, name: str) -> str:
    below = get_setting(ctx.repo.env, "gitcoord.worktrees", kind="path").text
    above, _, base = main.rpartition("/")
    if below:
        return f"{below if below.startswith('/') else f'{main}/{below}'}/{name}"
    base = base.removesuffix(".git")
    return f"{above}/{base}-{name}" if base.strip(".") and base[0] != "." else f"{above}/{name}"


def _require_new(ctx: Context, command: Add, path: str, trees: list[WorkTree]) -> None:
    hints = ("which there are: git coord worktree list",)
    if any(tree.name == command.name for tree in trees):
        raise refused("exists", f"there is a work tree '{command.name}' already", *hints)
    if exists(path):
        raise refused("exists", f"{printable(path)} is there already", "take another name", *hints)
    if not is_branch_name(ctx.repo.env, command.branch):
        raise UsageError(f"{quote(command.branch[:80])} is not the name of a branch")
    if has_ref(ctx.repo.env, f"refs/heads/{command.branch}"):
        raise refused(
            "exists", f"there is a branch {quote(command.branch)} already", "take another one: --branch <name>", *hints
        )


def _make_branch(ctx: Context, branch: str, start: str) -> None:
    reason = f"branch: Created from {start}"
    answer = update_ref(ctx.repo, ctx.notes, f"refs/heads/{branch}", start, "0" * len(start), reason)
    answer.require(f"git could not make the branch {quote(branch)}", StoreError, hints=("nothing was changed",))


def _make_tree(ctx: Context, command: Add, path: str, claim: Claim | None) -> dict[str, object]:
    if not create_directory(path):
        raise refused("exists", f"{printable(path)} is there already", "take another name")
    try:
        made = add_worktree(ctx.repo, ctx.notes, path, command.branch)
        made.require("git could not make the work tree", StoreError, hints=("nothing was changed",))
        env = without_location(ctx.repo.env)
        path = top_of(env, path).require(f"git rev-parse in {path} failed", StoreError).text
        for key, value in zip(("tree", "agent", "by", "branch"), (command.name, *command[1:4])):
            if value:
                set_in_worktree(env, f"gitcoord.{key}", value, path).require(f"git config in {path} failed", StoreError)
        granted = claim(path) if claim is not None else {"claims": []}
        return {"path": path, "claims": granted["claims"]}
    except BaseException:
        # It is a moment old, and nothing in it is anybody's work.
        remove_worktree(ctx.repo.env, path, force=True)
        remove_directory(path)
        raise


def _use_own_settings(ctx: Context) -> None:
    """Turn on settings for each work tree. What must not be shared then moves to the main one's own, as git asks."""
    common = f"{ctx.repo.common_dir}/config"
    if get_setting(ctx.repo.env, "extensions.worktreeConfig", file=common, kind="bool").text == "true":
        return
    there = dict(parse_settings(list_settings(ctx.repo.env, file=common).out))
    moving = {"core.worktree": there.get("core.worktree", "")}
    bare = get_setting(ctx.repo.env, "core.bare", file=common, kind="bool").text
    moving["core.bare"] = "true" if bare == "true" else ""
    moving = {key: value for key, value in moving.items() if value}
    own = f"{ctx.repo.common_dir}/config.worktree"
    words = [["--file", own, key, value] for key, value in moving.items()]
    words.append(["--file", common, "extensions.worktreeConfig", "true"])
    words += [["--file", common, "--unset-all", key] for key in moving]
    for row in words:
        code, complaint = change_settings(ctx.repo, row, ctx.host.pause)
        if code:
            raise StoreError(f"cannot turn on settings for each work tree: {complaint}")
