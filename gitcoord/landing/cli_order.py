"""The order of a landing: which branch, how, and the numbers of its files, by the words of the command and trunk's policy."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, Unreachable, UsageError, raise_if
from gitcoord.base.names import printable
from gitcoord.git.operations import refuse_under_way
from gitcoord.landing.bring import Order
from gitcoord.landing.model import WAYS
from gitcoord.landing.resolve import checked_out
from gitcoord.landing.trunk import Trunk
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.user_refs import fetch_sync
from gitcoord.ledger.sessions import Actor
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.landing.cli_renumber import Renumber


def order_of(call: Call, values: Values, words: list[str], actor: Actor, trunk: Trunk) -> Order:
    """The branch to land, and how: as the words say, else as trunk's policy does."""
    ctx = call.ctx
    rules = trunk.rules()
    branch = branch_of(ctx, words, trunk)
    chosen = [way for way in WAYS if values.get(way)]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    agent = "" if actor.person else actor.agent
    how = chosen[0] if chosen else rules.how
    return Order(branch, _tip_of(ctx, branch), trunk.name, how, agent, rules.keeps_signatures)


def branch_of(ctx: Context, words: list[str], trunk: Trunk) -> str:
    """The branch that the words name, else the one that is checked out; UsageError where none is, or it is trunk itself."""
    branch = (words[0] if words else checked_out(ctx)).removeprefix("refs/heads/")
    if not branch:
        raise_if(refuse_under_way(ctx.repo.git_dir))  # a rebase has no branch checked out
        raise UsageError("no branch is checked out", hints=("name the branch: git coord land <branch>",))
    if branch == trunk.name and not ctx.remote:
        raise UsageError(f"'{printable(branch)}' is trunk itself", hints=("name the branch: git coord land <branch>",))
    return branch


def _tip_of(ctx: Context, branch: str) -> str:
    """The tip of the branch: of this clone, else as it is at the remote now; a fresh clone of a job has no branches but trunk."""
    found = ctx.local.target(f"refs/heads/{branch}")
    if found:
        return found
    from gitcoord.cli.meant import meant_branches

    if not ctx.remote or set(branch) & set(" :*?[~^\\"):
        raise UsageError(
            f"there is no branch '{printable(branch)}' here", hints=(*meant_branches(ctx, branch), "git branch --list")
        )
    try:
        fetch_sync(ctx, ctx.remote, branch)
    except Unreachable:
        raise
    except CouldNotJudge:
        words = f"there is no branch '{printable(branch)}' here, and none at '{ctx.remote}'"
        raise UsageError(words, hints=(*meant_branches(ctx, branch), "git branch --list --all")) from None
    return ctx.local.target(f"refs/remotes/{ctx.remote}/{branch}") or ""


def renumber_of(call: Call, order: Order, trunk: Trunk, *, looks: bool = False) -> Renumber | None:
    """The numbers that files get by this landing; None where the policy gives none. `looks`: for a dry run."""
    rules = trunk.rules()
    if not rules.renumber:
        return None
    from gitcoord.landing.cli_renumber import Renumber

    return Renumber(call, rules, order, trunk.source().pairs, looks=looks)
