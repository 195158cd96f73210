"""The work under way in this clone: work trees with what is not committed there, branches ahead of trunk, and those that others pushed."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import printable
from gitcoord.git.commands.under_way import branches_ahead, changed_since_fork, statuses
from gitcoord.git.files import list_files, read_file
from gitcoord.git.operations import under_way
from gitcoord.git.process import Answer
from gitcoord.git.several import TimeLimit
from gitcoord.ledger.context import Context
from gitcoord.radar.model import LeftOut, Work, distinct
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.worktrees.add import WorkTree, all_trees

MOST_TREES, MOST_BRANCHES = 64, 30
_OLDEST = 30 * 86_400  # seconds: an older branch that is checked out nowhere is nobody's work now
_UNMERGED = ("DD", "AU", "UD", "UA", "DU", "AA", "UU")


class Survey(NamedTuple):
    """All work that is looked at, the newest first; and what was left out, in words."""

    trunk: str  # the commit
    works: list[Work]
    notes: list[str]
    complete: bool  # could git tell of all of it what it changed?


class _Branch(NamedTuple):
    ref: str
    head: str
    at: int
    agent: str


def own_branch(name: str) -> bool:
    """Is it a branch of gitcoord's own, by its name?"""
    return name == "gitcoord" or name.startswith("gitcoord-sessions/")


def trunk_tips(ctx: Context, trunk: str) -> list[str]:
    """The commits of trunk, that of the authority first. Where a remote decides, trunk of this clone may be ahead of it: that is work too."""
    here, there = f"refs/heads/{trunk}", f"refs/remotes/{ctx.remote or 'origin'}/{trunk}"
    found = [tip for tip in map(ctx.local.target, [there, here] if ctx.remote else [here, there]) if tip]
    return found[:1] if ctx.remote else list(dict.fromkeys(found))


def survey(ctx: Context, trunk: str, limit: TimeLimit) -> Survey:
    """`trunk`: the branch's name. CouldNotJudge where it has no commit, or git cannot tell what is ahead of it."""
    tips = trunk_tips(ctx, trunk)
    if not tips:
        raise CouldNotJudge(f"'{printable(trunk)}' has no commit yet, so nothing can be compared with it")
    notes: list[str] = []
    ahead = _ahead(ctx, tips, limit)
    works = _in_trees(ctx, ahead, limit, notes)
    there = {work.ref for work in works}
    works += _branches(ctx, [row for row in ahead.values() if row.ref not in there], notes)
    works = _with_changes(ctx, tips[0], distinct(works), limit, notes)
    return Survey(tips[0], works, notes, bool(limit.left))


# --- branches ----------------------------------------------------------------------------------------------------------


def _ahead(ctx: Context, tips: list[str], limit: TimeLimit) -> dict[str, _Branch]:
    """The branches with commits that trunk lacks, by their refs, the newest first."""
    below = [f"refs/remotes/{ctx.remote}/"] if ctx.remote else []
    answer = branches_ahead(ctx.repo.env, tips, ["refs/heads/", *below], limit)
    found = {}
    for row in answer.require("git cannot tell which branches are ahead of trunk").lines:
        head, ref, at, author, agents = (row.split("\0") + [""] * 5)[:5]
        if not own_branch(_short(ref, ctx.remote)) and _short(ref, ctx.remote) != "HEAD":
            found[ref] = _Branch(ref, head, int(at or 0), agents.split(",")[0].strip() or author)
    return found


def _short(ref: str, remote: str) -> str:
    return ref.removeprefix(f"refs/remotes/{remote}/" if remote else "").removeprefix("refs/heads/")


def _branches(ctx: Context, rows: list[_Branch], notes: list[str]) -> list[Work]:
    """The branches that are checked out nowhere: the newest ones, as far as they are not old."""
    found = []
    for remote in dict.fromkeys(("", ctx.remote)):
        below = f"refs/remotes/{remote}/" if remote else "refs/heads/"
        own = [row for row in rows if row.ref.startswith(below)]
        new = [row for row in own if row.at > ctx.host.wall() - _OLDEST][:MOST_BRANCHES]
        if len(new) < len(own):
            where = f"at '{printable(remote)}'" if remote else "that are checked out nowhere"
            notes.append(f"{len(own) - len(new)} older branches {where} were not looked at")
        found += [Work(row.agent, row.ref.removeprefix(below), "", remote, row.ref, row.head, at=row.at) for row in new]
    return found


# --- work trees --------------------------------------------------------------------------------------------------------


def _in_trees(ctx: Context, ahead: dict[str, _Branch], limit: TimeLimit, notes: list[str]) -> list[Work]:
    """The work in work trees. One without its directory counts as its branch alone, which is not checked out anywhere then."""
    scratch = f"{ctx.repo.scratch}/"  # a landing's own work trees
    trees = [tree for tree in all_trees(ctx) if tree.git_dir and tree.head and not tree.bare]
    trees = [tree for tree in trees if not tree.path.startswith(scratch)]
    if len(trees) > MOST_TREES:
        notes.append(f"{len(trees) - MOST_TREES} more work trees were not looked at")
    trees = trees[:MOST_TREES]
    agents = _noted_agents(ctx)
    states = statuses(ctx.repo.env, [tree.path for tree in trees], limit)
    return [_in_tree(ctx, tree, state, ahead, agents, notes) for tree, state in zip(trees, states)]


def _in_tree(
    ctx: Context,
    tree: WorkTree,
    state: Answer,
    ahead: dict[str, _Branch],
    agents: dict[str, list[str]],
    notes: list[str],
) -> Work:
    running, ref, head = under_way(tree.git_dir), tree.ref, tree.head
    operation = running.name if running is not None else ""
    if operation == "rebase":
        # The branch as it was: the commits that are made anew are not on it yet.
        ref = ref or _rebased(tree.git_dir)
        head = (ctx.local.target(ref) if ref else "") or head
    branch = ahead.get(ref)
    known = agents.get(tree.path, [])
    agent = tree.agent or (known[0] if len(known) == 1 else "") or (branch.agent if branch is not None else "")
    work = Work(agent, ref.removeprefix("refs/heads/"), tree.path, "", ref, head or tree.head, tree.git_dir)
    work = work._replace(at=branch.at if branch is not None else 0, operation=operation)
    if operation:
        return work
    if state.code:
        notes.append(f"what is not committed in {printable(tree.path)} is unknown: {printable(state.complaint)}")
        return work
    files = [(entry[:2], entry[3:]) for entry in state.entries]
    left = [LeftOut(path, "in conflict") for mark, path in files if mark in _UNMERGED]
    whole = tuple(path for mark, path in files if mark not in _UNMERGED and not path.endswith("/"))
    return work._replace(uncommitted=whole, left_out=tuple(left))


def _rebased(git_dir: str) -> str:
    """The branch that a rebase takes along; '' where it has none."""
    for name in ("rebase-merge", "rebase-apply"):
        ref = read_file(f"{git_dir}/{name}/head-name").decode("utf-8", "surrogateescape").strip("\n")
        if ref.startswith("refs/heads/"):
            return ref
    return ""


def _noted_agents(ctx: Context) -> dict[str, list[str]]:
    """The agents that claimed in each work tree, as this clone has noted it."""
    found: dict[str, list[str]] = {}
    for agent in sorted(list_files(f"{ctx.repo.scratch}/trees")):
        for tree in read_file(f"{ctx.repo.scratch}/trees/{agent}").decode("utf-8", "surrogateescape").split("\0"):
            found.setdefault(tree, []).append(agent)
    return found


# --- changes -----------------------------------------------------------------------------------------------------------


def _with_changes(ctx: Context, trunk: str, works: list[Work], limit: TimeLimit, notes: list[str]) -> list[Work]:
    """The work that changed something, with the files that its commits changed."""
    answers = changed_since_fork(ctx.repo.env, trunk, [work.head for work in works], limit)
    found = []
    for work, answer in zip(works, answers):
        if answer.code:
            why = answer.complaint or "git cannot tell what it changed"
            notes.append(f"{printable(work.branch or work.tree)} was not compared: {printable(why)}")
        elif answer.entries or work.uncommitted or work.left_out:
            found.append(work._replace(committed=frozenset(answer.entries)))
    return found


def left_out_words(works: Iterable[Work]) -> list[str]:
    """A sentence for each work tree of which uncommitted files were left out, or in which git is at work."""
    lines = []
    for work in works:
        name = printable(work.tree.rpartition("/")[2])
        if work.operation:
            lines.append(
                f"a {work.operation} is under way in work tree {name}: only what is committed there was compared"
            )
        for why in dict.fromkeys(row.why for row in work.left_out):
            paths = [row.path for row in work.left_out if row.why == why]
            more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
            lines.append(f"left out in work tree {name} ({why}): {printable(', '.join(paths[:3]))}{more}")
    return lines
