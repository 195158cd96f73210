"""Landings that did not end, as this clone has noted them: failed ones whose branch nobody has changed since, and conflicts that stand."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, Shape, check, dumps, loads
from gitcoord.git.files import exists, list_files, read_file, remove_file, write_file
from gitcoord.landing.model import Unfinished
from gitcoord.ledger.context import Context

_FAILED: dict[str, Shape] = {"branch": str, "tip": str, "at": int, "message": str, "output": str}
_LARGEST = 1 << 20


def note_failure(ctx: Context, agent: str, branch: str, tip: str, message: str, output: str = "") -> None:
    """Note that this agent's landing failed; its next one that succeeds, or is given up, forgets it."""
    record = {"v": 1, "branch": branch, "tip": tip, "at": ctx.host.wall(), "message": message, "output": output}
    write_file(ctx.scratch(f"landing/failed/{agent}"), dumps(record).encode())


def forget_failure(ctx: Context, agent: str) -> None:
    remove_file(f"{ctx.repo.scratch}/landing/failed/{agent}")


def unfinished_landings(ctx: Context) -> list[Unfinished]:
    return [*_failed(ctx), *conflicts(ctx)]


def _failed(ctx: Context) -> list[Unfinished]:
    """A branch that has moved or is gone is being worked on, or was given up."""
    found = []
    for agent, record in _notes(ctx, "failed"):
        try:
            note = check(record, _FAILED, agent)
        except Malformed:
            continue
        if ctx.local.target(f"refs/heads/{note['branch']}") == note["tip"]:
            found.append(Unfinished(agent, note["branch"], note["message"], note["at"], output=note["output"]))
    return found


def conflicts(ctx: Context) -> list[Unfinished]:
    """Those whose merge or rebase still stands in the agent's work tree."""
    found = []
    for agent, record in _notes(ctx, "conflicts"):
        tree, branch = str(record.get("tree", "")), str(record.get("branch", ""))
        if tree and operation_in(_git_dir(tree)):
            found.append(Unfinished(agent, branch, "conflicts with trunk", int(record.get("at") or 0), tree=tree))
    return found


def _notes(ctx: Context, kind: str) -> list[tuple[str, Record]]:
    place = f"{ctx.repo.scratch}/landing/{kind}"
    found = []
    for agent in sorted(list_files(place)):
        try:
            record = loads(read_file(f"{place}/{agent}", _LARGEST), _LARGEST)
        except Malformed:
            continue  # cut off
        found.append((agent, record))
    return found


def _git_dir(tree: str) -> str:
    """The git directory of a work tree: a linked one names it in a file."""
    named = read_file(f"{tree}/.git", 4096).decode("utf-8", "surrogateescape")
    return named.removeprefix("gitdir: ").rstrip("\n") if named.startswith("gitdir: ") else f"{tree}/.git"


def operation_in(git_dir: str) -> str:
    """The operation of git that stands in the work tree of this git directory: 'merge', 'rebase' or ''."""
    if exists(f"{git_dir}/MERGE_HEAD"):
        return "merge"
    return "rebase" if exists(f"{git_dir}/rebase-merge") else ""
