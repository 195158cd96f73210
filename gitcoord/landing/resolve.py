"""A conflict stands in the agent's own work tree: begun there, gone on with, or given up."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, dumps, loads
from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.names import printable, shell_word
from gitcoord.gates.conflict_markers import find_markers
from gitcoord.git.commands.objects import commit_like
from gitcoord.git.commands.refs import abort_merge, abort_rebase, continue_operation, merge, rebase, rev_parse
from gitcoord.git.commands.worktrees import ls_files, status_in, without_location
from gitcoord.git.files import read_file, remove_file, write_file
from gitcoord.git.process import without_grafts
from gitcoord.git.store import Update
from gitcoord.git.symrefs import branch_here
from gitcoord.landing.bring import Order, contains, signs, tree_of
from gitcoord.landing.model import MERGE, REBASE
from gitcoord.landing.unfinished import conflicts, forget_failure, operation_in
from gitcoord.ledger.context import Context

# What `--continue` needs to know again.
KEPT = ("branch", "how", "checks", "task", "tree", "wait", "again")


def _note(ctx: Context, agent: str) -> str:
    return ctx.scratch(f"landing/conflicts/{agent}")


def keep(ctx: Context, agent: str, record: Record) -> None:
    forget_failure(ctx, agent)
    write_file(_note(ctx, agent), dumps({"v": 1, "at": ctx.host.wall(), **record}).encode())


def kept(ctx: Context, agent: str) -> Record:
    """The landing that this agent is to go on with; UsageError where there is none."""
    try:
        record: Record = loads(read_file(_note(ctx, agent), 1 << 20), 1 << 20)
        if all(key in record for key in KEPT):
            return record
    except Malformed:
        pass
    raise UsageError(f"'{agent}' has no landing to go on with", hints=("git coord land <branch>",))


def require_none(ctx: Context, agent: str) -> None:
    """Refused while a conflict of a landing of this agent stands: another landing would hide it, half merged."""
    for row in conflicts(ctx):
        if row.agent == agent:
            raise refused(
                "unresolved",
                f"your landing of {printable(row.branch)} stands in a conflict, in {printable(row.tree)}",
                "resolve it there, then: git coord land --continue",
                "or give up: git coord land --abort",
            )


def forget(ctx: Context, agent: str) -> None:
    remove_file(_note(ctx, agent))
    forget_failure(ctx, agent)


def under_way(ctx: Context) -> str:
    """The operation of git that stands in this work tree: 'merge', 'rebase' or ''."""
    return operation_in(ctx.repo.git_dir)


def checked_out(ctx: Context) -> str:
    """The full name of the branch that is checked out here; '' where HEAD is detached."""
    return branch_here(ctx.repo, files=ctx.settings.get("extensions.refstorage", "files").lower() == "files")


def begin(ctx: Context, order: Order, old: str) -> bool:
    """Let the conflict stand in this work tree, if it has the branch checked out and nothing uncommitted; gives whether it does."""
    if not ctx.repo.worktree or checked_out(ctx) != f"refs/heads/{order.branch}" or under_way(ctx):
        return False
    status = status_in(without_location(ctx.repo.env), ctx.repo.worktree)
    if status.code or any(not entry.startswith("??") for entry in status.entries):
        return False
    if order.how == REBASE:
        rebase(ctx.repo, ctx.notes, old)
    else:
        trunk = f"refs/remotes/{ctx.remote}/{order.trunk}" if ctx.remote else f"refs/heads/{order.trunk}"
        named = trunk if ctx.local.target(trunk) == old else old  # git writes this name beside its conflict markers
        merge(ctx.repo, ctx.notes, named, f"Merge branch '{order.branch}'")
    return bool(under_way(ctx))


def finish(ctx: Context, branch: str, how: str, tip: str) -> None:
    """Finish the merge or rebase that stands here, if one does; Refused while files of it are not resolved. `tip`: of trunk."""
    verb = under_way(ctx)
    if not verb:
        return
    unmerged = sorted({entry.partition("\t")[2] for entry in ls_files(ctx.repo.env, show="unmerged").entries})
    if unmerged:
        names = printable(", ".join(unmerged[:5])) + (f" and {len(unmerged) - 5} more" if len(unmerged) > 5 else "")
        words = " ".join(shell_word(name) for name in unmerged[:5])
        raise refused("unresolved", f"not resolved yet: {names}", f"edit, then: git add {words}")
    raise_if(find_markers(ctx))
    answer = continue_operation(ctx.repo, ctx.notes, verb)
    if under_way(ctx) or answer.code:
        said = printable((answer.complaint or answer.out.decode("utf-8", "replace")).strip().replace("\n", "; ")[:500])
        raise refused("unresolved", f"git does not go on with the {verb}: {said}", "git status")
    if verb == "merge" and how == MERGE:
        _swap_parents(ctx, f"refs/heads/{branch}", tip)


def _swap_parents(ctx: Context, ref: str, tip: str) -> None:
    """Make the merge of trunk into the branch, which was committed just now, one of the branch into trunk, with the same files: then trunk
    goes on from it by a fast-forward, and its first parents stay what has landed."""
    env = without_grafts(ctx.repo.env)
    ctx.local.refresh()
    made = ctx.local.target(ref) or ""
    own, other = (rev_parse(env, f"{made}^{number}") for number in (1, 2))
    # Else it became something else under the agent's hands, such as a merge of another branch, and lands as it is.
    if not other.code and contains(ctx, tip, other.text):
        swapped = commit_like(env, made, tree_of(env, made), (other.text, own.text), sign=signs(env))
        ctx.local.swap([Update(ref, made, swapped.require("git cannot make the merge commit").text)])


def abort(ctx: Context) -> None:
    """Take the merge or rebase out of this work tree, if one stands here."""
    verb = under_way(ctx)
    if verb:
        answer = (abort_merge if verb == "merge" else abort_rebase)(ctx.repo, ctx.notes)
        answer.require(f"the {verb} could not be undone")
