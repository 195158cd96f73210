"""The ledger that a clone belongs to: its own, a remote's, or one that is yet to be made.

Where the policy names a ledger, no other one is made or joined. The remotes are looked at for a bounded time.
"""

from __future__ import annotations

from gitcoord.base.errors import Refused, Unreachable, UsageError
from gitcoord.base.names import LEDGER, TIP, quote, shell_word
from gitcoord.git.commands.remotes import list_remotes, look_at_remotes
from gitcoord.ledger.context import Context
from gitcoord.ledger.named_ledger import project_root, trunk_names_another
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import find_other_ledger
from gitcoord.startup.namedtuple import NamedTuple

_LOOK_SECONDS = 2.0
_WISH_SECONDS = 30.0  # at a remote that was asked for


class Membership(NamedTuple):
    """The ledger that a clone will use."""

    remotes: tuple[str, ...]  # the remotes to try, in order; none: this clone alone
    here: bool  # this clone has a ledger already
    other: bool  # it is not the one that the policy names
    found: bool  # a remote has a ledger to join
    known: tuple[str, ...] = ()  # all remotes of this clone
    silent: tuple[tuple[str, str], ...] = ()  # remotes that were not looked at, each with the reason
    ends: tuple[tuple[str, str], ...] = ()  # live claims, path and agent, that end if the other ledger is given up

    @property
    def remote(self) -> str:
        return self.remotes[0] if self.remotes else ""


def find(ctx: Context, wish: str = "", *, local: bool = False, look: bool = True) -> Membership:
    """The place of this clone's ledger: as asked for, as joined before, as the policy says, or where one is found.

    `look`: look at the remotes also where the policy names no ledger. Unreachable, or Refused, where the policy names one that
    cannot be found.
    """
    if wish and local:
        raise UsageError("--remote and --local are opposites")
    if local and ctx.remote:
        raise UsageError(
            f"this clone uses the ledger of {quote(ctx.remote)}", hints=("leave it first: git coord teardown",)
        )
    here = bool(ctx.settings.get("gitcoord.root") or any(ctx.store.resolve([TIP, LEDGER])))
    other = here and _is_other(ctx)
    known = tuple(list_remotes(ctx.repo.env).lines)
    if here and not other:
        remote = wish or ctx.remote or ("" if local else _policy_authority(ctx))
        return Membership((remote,) if remote else (), here, other, False, known)
    named = project_root(ctx)
    if wish and other and look and wish in known:  # this clone's ledger is archived only for one that is there
        return _looked(ctx, (wish,), named, here=here, other=other, local=local, seconds=_WISH_SECONDS)
    if wish:
        return Membership((wish,), here, other, False, known)
    if not named and not look:
        remote = _policy_authority(ctx)
        return Membership((remote,) if remote else (), here, other, False, known)
    return _looked(ctx, known, named, here=here, other=other, local=local)


def find_own(ctx: Context) -> Membership:
    """This clone decides for itself, or goes on with the remote that it has joined, whatever the policy says."""
    remote = ctx.remote or _policy_authority(ctx)
    return Membership((remote,) if remote else (), False, False, False)


def _is_other(ctx: Context) -> bool:
    """Return whether the project's ledger is not this clone's, by the policy here or by trunk's."""
    if ctx.may_name_another_ledger():
        return find_other_ledger(ctx) is not None
    return trunk_names_another(ctx)


def _looked(
    ctx: Context,
    known: tuple[str, ...],
    named: str,
    *,
    here: bool,
    other: bool,
    local: bool,
    seconds: float = _LOOK_SECONDS,
) -> Membership:
    authority = _policy_authority(ctx)
    names = sorted(known, key=lambda name: (name != authority, name != "origin"))
    answers = dict(zip(names, look_at_remotes(ctx.repo.env, names, seconds, LEDGER)))
    silent = tuple((name, answer.complaint) for name, answer in answers.items() if answer.code)
    found = tuple(name for name, answer in answers.items() if not answer.code and answer.lines)
    if found and not local:
        return Membership(found, here, other, True, known, silent)
    if named and silent and not found:
        raise _unseen(silent)
    if named:
        from gitcoord.ledger.setup import require_unnamed

        require_unnamed(ctx, names)
    remotes = () if local or not authority else (authority,)
    return Membership(remotes, here, other, False, known, silent)


def _policy_authority(ctx: Context) -> str:
    name = ctx.policy_setting("authority")
    return "" if name == "local" else name


def _unseen(silent: tuple[tuple[str, str], ...]) -> Unreachable:
    name, complaint = silent[0]
    return Unreachable(
        f"this project has a ledger, and {quote(name)}, which may have it, cannot be reached: {complaint}; nothing was changed",
        hints=("try again: git coord setup", f"if it needs longer: git coord setup --remote {shell_word(name)}"),
    )


def begin(
    ctx: Context,
    actor: Actor,
    membership: Membership,
    *,
    sync: str = "",
    fold: bool | None = None,
    adopt: bool = False,
    same: bool = False,
    read_only: bool = False,
) -> dict[str, object]:
    """Make or join the ledger, here or at a remote: the first of the remotes whose ledger is this project's."""
    if not membership.remotes:
        if same or read_only:
            raise UsageError("--same and --read-only go with --remote")
        from gitcoord.ledger.setup import init

        return init(ctx, actor, sync=sync, fold=fold, adopt=adopt)
    from gitcoord.ledger.remote.join import init_remote

    first: Refused | None = None
    for name in membership.remotes:
        try:
            return init_remote(ctx, actor, name, sync=sync, fold=fold, adopt=adopt, same=same, read_only=read_only)
        except Refused as refused:
            first = first or refused
    assert first is not None
    raise first
