"""Bringing a branch onto trunk in memory: a merge, rebased commits or one squashed commit. No ref, index or file is touched."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, refused
from gitcoord.base.names import printable
from gitcoord.git.commands.objects import (
    commit_like,
    commit_merge,
    commit_stand_in,
    compare_ancestry,
    empty_tree,
    list_new,
    merge_base,
    merge_tree,
    messages,
)
from gitcoord.git.commands.refs import rev_parse
from gitcoord.git.process import Answer, Env, without_grafts
from gitcoord.landing.model import MERGE, REBASE
from gitcoord.ledger.context import Context
from gitcoord.startup.namedtuple import NamedTuple


class Brought(NamedTuple):
    """The new tip of trunk, or the files that conflict."""

    new: str
    conflicts: tuple[str, ...] = ()
    at: str = ""  # of a rebase: the commit that conflicts


class Order(NamedTuple):
    """A branch and its tip, the trunk that it goes to, how, and the agent that does it ('' for a person)."""

    branch: str
    tip: str
    trunk: str
    how: str
    agent: str = ""


def bring(ctx: Context, order: Order, old: str) -> Brought:
    """The branch's work on top of `old`, the tip of trunk. Where trunk contains it already, that is `old` itself."""
    branch, tip, trunk, how, agent = order
    env = without_grafts(ctx.repo.env)
    sign = ctx.settings.flag("commit.gpgsign", default=False)
    if contains(ctx, old, tip):
        return Brought(old)
    if merge_base(env, old, tip).code:
        raise refused(
            "unrelated",
            f"{printable(branch)} and {printable(trunk)} have no common history: nothing has landed",
            "git fetch --unshallow, where this clone is shallow",
        )
    if how == REBASE:
        return _rebased(env, order, old, sign=sign)
    if how == MERGE and contains(ctx, tip, old):
        return Brought(tip)  # a fast-forward
    tree, conflicts = _merged(env, old, tip)
    if conflicts:
        return Brought("", conflicts)
    if how == MERGE:
        message = f"Merge branch '{branch}'\n" + (f"\nAgent: {agent}\n" if agent else "")
        return Brought(
            _made(commit_merge(env, tree, (old, tip), message.encode("utf-8", "surrogateescape"), sign=sign))
        )
    text = _joined(env, branch, tip, old)
    return Brought(_made(commit_like(env, tip, tree, (old,), sign=sign, message=text)))


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
    return answer.require("git cannot make the commit").text


def _rebased(env: Env, order: Order, old: str, *, sign: bool) -> Brought:
    """Each new commit on top of the one before: the difference to its parent, merged. Empty commits stay."""
    new = old
    for line in list_new(env, order.tip, old).require("git cannot list the branch's commits").lines:
        commit, *parents = line.split(" ")
        if len(parents) > 1:
            raise refused(
                "merges",
                f"{printable(order.branch)} has a merge ({commit[:12]}), which cannot be rebased: nothing has landed",
                "git coord land --merge",
                "git coord land --squash",
            )
        if parents == [new]:
            new = commit
            continue
        base = parents[0] if parents else _made(commit_stand_in(env, empty_tree(env)))
        # A stand-in for trunk that has the commit's parent as its own: so git merges just what the commit changed.
        ours = _made(commit_stand_in(env, _tree_of(env, new), base))
        theirs = commit if parents else _made(commit_stand_in(env, _tree_of(env, commit), base))
        tree, conflicts = _merged(env, ours, theirs)
        if conflicts:
            return Brought("", conflicts, commit)
        new = _made(commit_like(env, commit, tree, (new,), sign=sign))
    return Brought(new)


def _tree_of(env: Env, commit: str) -> str:
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
