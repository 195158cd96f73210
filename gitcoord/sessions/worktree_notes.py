"""Notes of the work trees in which an agent claimed, so that a release finds its work there too.

The notes are local, like work trees; without them only the current work tree is searched.
"""

from __future__ import annotations

from gitcoord.git.files import append_file, is_directory, is_own, list_files, read_file, remove_file, write_file
from gitcoord.ledger.context import Context

CLAIMED = "gitcoord-claims"  # below a linked work tree's git directory


def note_tree(ctx: Context, agent: str) -> None:
    """Note that this agent claimed in this work tree. Nothing is written if there is only one."""
    repo = ctx.repo
    if repo.worktree and (repo.git_dir != repo.common_dir or is_directory(repo.common_dir + "/worktrees")):
        if repo.worktree not in _noted(ctx, agent):
            append_file(ctx.scratch(f"trees/{agent}"), repo.worktree.encode("utf-8", "surrogateescape") + b"\0")


def note_claims(ctx: Context, claims: list[dict[str, object]]) -> None:
    """Note claims made in this linked work tree, to be released when it is removed. The main work tree needs no note."""
    if ctx.repo.git_dir != ctx.repo.common_dir:
        lines = "".join(f"{claim['token']} {claim['agent']}\n" for claim in claims)
        append_file(f"{ctx.repo.git_dir}/{CLAIMED}", lines.encode())


def noted_claims(git_dir: str) -> set[tuple[int, str]]:
    """Token and agent of each claim made in the work tree of this git directory."""
    words = (
        line.split(" ") for line in read_file(f"{git_dir}/{CLAIMED}", 1 << 24).decode("utf-8", "replace").split("\n")
    )
    return {(int(row[0]), row[1]) for row in words if len(row) == 2 and row[0].isdecimal()}


def other_trees(ctx: Context, agent: str) -> list[str]:
    """The other existing work trees in which the agent claimed."""
    return [tree for tree in _noted(ctx, agent) if tree != ctx.repo.worktree and is_directory(tree)]


def was_here(ctx: Context, agent: str) -> bool:
    """Did the agent claim in this work tree? Also where nothing is noted, since there was only one."""
    noted = _noted(ctx, agent)
    return not noted or ctx.repo.worktree in noted


def _noted(ctx: Context, agent: str) -> list[str]:
    noted = read_file(f"{ctx.repo.scratch}/trees/{agent}").decode("utf-8", "surrogateescape")
    return [tree for tree in noted.split("\0") if tree]


# --- work left behind ---------------------------------------------------------------------------------------------


def note_left(ctx: Context, agent: str) -> None:
    """Note that the agent's session ended with uncommitted work in this work tree."""
    if ctx.repo.worktree:
        write_file(ctx.scratch(f"left/{agent}"), ctx.repo.worktree.encode("utf-8", "surrogateescape"))


def left_here(ctx: Context) -> list[str]:
    """The agents whose sessions ended with uncommitted work in this work tree, under the same account of this machine."""
    directory = f"{ctx.repo.scratch}/left"
    here = ctx.repo.worktree.encode("utf-8", "surrogateescape")
    names = sorted(list_files(directory)) if here else []
    paths = {name: f"{directory}/{name}" for name in names}
    return [name for name, path in paths.items() if is_own(path) and read_file(path) == here]


def forget_left(ctx: Context, agent: str) -> None:
    remove_file(f"{ctx.repo.scratch}/left/{agent}")
