"""Bringing a branch onto trunk in memory: a merge, rebased commits or one squashed commit. No ref, index or file is touched."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, refused
from gitcoord.base.names import printable, shell_word
from gitcoord.git.commands.objects import (
    commit_like,
    commit_merge,
    commit_stand_in,
    compare_ancestry,
    list_new,
    merge_base,
    merge_tree,
    messages,
)
from gitcoord.git.commands.refs import rev_parse
from gitcoord.git.commands.settings import get_setting
from gitcoord.git.files import exists
from gitcoord.git.process import Answer, Env, without_grafts
from gitcoord.landing.model import MERGE, REBASE, SQUASH
from gitcoord.ledger.context import Context
from gitcoord.startup.namedtuple import NamedTuple

_BASES: dict[
    tuple[str, str, str], str
] = {}  # by repository and commits: it does not change, and one landing asks several times


class Brought(NamedTuple):
    """The new tip of trunk, or the files that conflict."""

    new: str
    conflicts: tuple[str, ...] = ()
    at: str = ""  # of a rebase: the commit that conflicts
    lost: int = 0  # signatures of commits that were made anew, unsigned


class Order(NamedTuple):
    """A branch and its tip, the trunk that it goes to, how, and the agent that does it ('' for a person)."""

    branch: str
    tip: str
    trunk: str
    how: str
    agent: str = ""
    keeps: bool = False  # signed commits are not made anew


def names_of(order: Order, remote: str) -> tuple[str, str]:
    """The branch and trunk in words. Where both have one name, trunk is that of the remote."""
    branch, trunk = printable(order.branch), printable(order.trunk)
    return (f"your {branch}", f"{printable(remote)}/{trunk}") if branch == trunk else (branch, trunk)


def bring(ctx: Context, order: Order, old: str, *, lands: bool = True) -> Brought:
    """The branch's work on top of `old`, the tip of trunk. Where trunk has it already, that is `old` itself. `lands`: False for a commit that is only
    checked, and so not signed."""
    branch, tip, trunk, how, agent, _ = order
    env = without_grafts(ctx.repo.env)
    base = base_of(ctx, old, tip)
    if base == tip:
        return Brought(old)
    if not base:
        raise refused(
            "unrelated",
            f"{' and '.join(names_of(order, ctx.remote))} have no common history: nothing has landed",
            "git fetch --unshallow"
            if exists(f"{ctx.repo.common_dir}/shallow")
            else f"ask those who made them; to begin anew from trunk: git switch -c <branch> {shell_word(trunk)}",
        )
    if how == MERGE and base == old and _goes_on_from(env, old, tip):
        return Brought(tip)  # a fast-forward
    # On top of their base all commits are new.
    tree, conflicts = _merged(env, old, tip) if how != REBASE or base != old else ("", ())
    if base != old and not conflicts and _has_content(ctx, tree, old, base, tip):
        return Brought(old)
    sign = lands and signs(env)
    if how == REBASE:
        return _rebased(ctx, order, old, sign=sign)
    lost = lost_signatures(ctx, order, [row[0] for row in _new_commits(env, tip, old)]) if how == SQUASH else 0
    if conflicts:
        return Brought("", conflicts)
    if how == MERGE:
        message = f"Merge branch '{branch}'\n" + (f"\nAgent: {agent}\n" if agent else "")
        return Brought(
            _made(commit_merge(env, tree, (old, tip), message.encode("utf-8", "surrogateescape"), sign=sign))
        )
    text = _joined(env, branch, tip, old)
    return Brought(_made(commit_like(env, tip, tree, (old,), sign=sign, message=text)), lost=lost)


def _new_commits(env: Env, tip: str, old: str) -> list[list[str]]:
    """The branch's commits that trunk lacks, parents first, each with its parents."""
    return [row.split(" ") for row in list_new(env, tip, old).require("git cannot list the branch's commits").lines]


def _has_content(ctx: Context, merged: str, old: str, base: str, tip: str) -> bool:
    """Has trunk all that the branch changes, by other commits, as after a squash? Not where it changes nothing: empty commits are meant."""
    of_trunk, of_base, of_tip = (found and found.oid for found in ctx.local.read([f"{c}:" for c in (old, base, tip)]))
    return merged == of_trunk and of_base != of_tip


def _goes_on_from(env: Env, old: str, tip: str) -> bool:
    """Are all first parents between `tip` and `old` the branch's own? Not where trunk was merged into the branch, as when a conflict was
    resolved: the first parents of trunk would be the branch's then, and no longer what has landed before."""
    first = {commit: parents[0] for commit, *parents in _new_commits(env, tip, old) if parents}
    while tip in first:
        tip = first[tip]
    return tip == old


def signs(env: Env) -> bool:
    """Are commits that are made here signed?"""
    return get_setting(env, "commit.gpgSign", kind="bool").text == "true"


def lost_signatures(ctx: Context, order: Order, commits: list[str]) -> int:
    """How many of these commits, which are made anew, lose a signature and get none; Refused where the policy wants them kept."""
    found = ctx.local.read(commits) if commits else []
    count = sum(each is not None and b"\ngpgsig" in each.data.partition(b"\n\n")[0] for each in found)
    if count and order.keeps:
        raise refused(
            "signatures",
            f"{order.how} would lose signatures of {printable(order.branch)} ({count}): nothing has landed",
            f"git coord land {shell_word(order.branch)} --merge",
        )
    return 0 if count and signs(without_grafts(ctx.repo.env)) else count


def base_of(ctx: Context, old: str, tip: str) -> str:
    """A merge base of trunk and branch, '' where they have none: `tip` where trunk contains the branch, `old` where it is a fast-forward."""
    key = ctx.repo.common_dir, old, tip
    if key not in _BASES:
        answer = merge_base(without_grafts(ctx.repo.env), old, tip)
        if answer.code not in (0, 1):
            raise CouldNotJudge(f"git cannot compare {old[:12]} with {tip[:12]}: {answer.complaint}")
        if answer.code:
            return ""  # a deeper fetch may find one
        _BASES[key] = answer.text.split("\n")[0]
    return _BASES[key]


def contains(ctx: Context, commit: str, older: str) -> bool:
    """Does `commit` contain `older`? CouldNotJudge where git cannot tell."""
    answer = compare_ancestry(without_grafts(ctx.repo.env), older, commit)
    if answer.code not in (0, 1):
        raise CouldNotJudge(f"git cannot compare {older[:12]} with {commit[:12]}: {answer.complaint}")
    return not answer.code


def _merged(env: Env, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
    """The tree of the merge, and the files that conflict. Only git's exit code tells whether there are any."""
    code, out, complaint = merge_tree(env, ours, theirs)
    if code not in (0, 1):
        raise CouldNotJudge(
            f"git cannot merge {theirs[:12]} into {ours[:12]}: {complaint}", hints=("git fetch, if history is missing",)
        )
    tree, *names = out.decode("utf-8", "surrogateescape").split("\0")
    return tree, tuple(dict.fromkeys(name for name in names if name)) if code else ()


def _made(answer: Answer) -> str:
    if answer.code and "tell me who you are" in answer.complaint:
        raise refused(
            "identity",
            "git does not know who makes the commit: nothing has landed",
            "git config user.name <name> && git config user.email <address>",
            "or in a job: GIT_AUTHOR_NAME, GIT_AUTHOR_EMAIL, GIT_COMMITTER_NAME and GIT_COMMITTER_EMAIL in its environment",
        )
    return answer.require("git cannot make the commit").text


def _rebased(ctx: Context, order: Order, old: str, *, sign: bool) -> Brought:
    """Each new commit on top of the one before: the difference to its parent, merged. Empty commits stay. A root commit comes with the
    merge that brought it in, since the branch has a base on trunk."""
    new, env = old, without_grafts(ctx.repo.env)
    rows = _new_commits(env, order.tip, old)
    merge = next((commit for commit, *parents in rows if len(parents) > 1), "")
    if merge:
        raise refused(
            "merges",
            f"{printable(order.branch)} has a merge ({merge[:12]}), which cannot be rebased: nothing has landed",
            f"git coord land {shell_word(order.branch)} --merge",
            f"git coord land {shell_word(order.branch)} --squash",
        )
    if rows and rows[0][1:] == [old]:
        return Brought(order.tip)  # a fast-forward
    lost = lost_signatures(ctx, order, [row[0] for row in rows])
    for commit, *parents in rows:
        # A stand-in for trunk that has the commit's parent as its own: so git merges just what the commit changed.
        ours = _made(commit_stand_in(env, tree_of(env, new), *parents))
        tree, conflicts = _merged(env, ours, commit)
        if conflicts:
            return Brought("", conflicts, commit)
        new = _made(commit_like(env, commit, tree, (new,), sign=sign))
    return Brought(new, lost=lost)


def tree_of(env: Env, commit: str) -> str:
    """The id of the files of a commit."""
    return rev_parse(env, f"{commit}^{{tree}}").require(f"{commit[:12]} cannot be read").text


def _joined(env: Env, branch: str, tip: str, old: str) -> bytes:
    """The message of a squashed commit: that of the only commit, or the branch's name and all messages; each trailer `Agent` once,
    at the end."""
    answer = messages(env, tip, old).require("git cannot read the branch's messages")
    texts = [text.strip(b"\n") for text in answer.out.split(b"\0") if text.strip(b"\n")]
    if len(texts) == 1:
        return texts[0] + b"\n"
    agents = dict.fromkeys(line for text in texts for line in text.split(b"\n") if line.lower().startswith(b"agent: "))
    bodies = [b"\n".join(line for line in text.split(b"\n") if line not in agents).strip(b"\n") for text in texts]
    name = f"{branch}: {len(texts)} commits".encode("utf-8", "surrogateescape")
    return b"\n\n".join([name, *bodies, *([b"\n".join(agents)] if agents else [])]) + b"\n"
