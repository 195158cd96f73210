"""The ledger that a clone without one belongs to, by the policy in the work tree."""

from __future__ import annotations

from gitcoord.base.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor


def authority_of(ctx: Context, wish: str = "") -> str:
    """The remote authority: as asked for, as joined before, or as the policy says; '' for this clone."""
    name = wish or ctx.remote or ctx.policy_setting("authority")
    return "" if name == "local" else name


def begin(
    ctx: Context,
    actor: Actor,
    remote: str,
    *,
    sync: str = "",
    fold: bool | None = None,
    adopt: bool = False,
    same: bool = False,
    read_only: bool = False,
) -> dict[str, object]:
    """Make or join the ledger, here or at a remote."""
    if remote:
        from gitcoord.ledger.remote.join import init_remote

        return init_remote(ctx, actor, remote, sync=sync, fold=fold, adopt=adopt, same=same, read_only=read_only)
    if same or read_only:
        raise UsageError("--same and --read-only go with --remote")
    from gitcoord.ledger.setup import init

    return init(ctx, actor, sync=sync, fold=fold, adopt=adopt)
