"""The cached answer to whether the project's policy restricts who may claim a path.

Most policies do not. That is cached by commit, so that a plain claim does not load the reader of policies.
"""

from __future__ import annotations

from gitcoord.git.files import make_directory, read_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.policy.model import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.policy.reader import Source


def sync_policy_commit(ctx: Context, snapshot: Snapshot) -> str:
    """The commit whose policy applies to claims: the tip of trunk, else HEAD."""
    sync = f"refs/heads/{format_record(snapshot.state).sync}"
    return ctx.store.target(sync) or ctx.store.target("HEAD") or ""


def trunk_source(ctx: Context, snapshot: Snapshot, commit: str = "") -> Source:
    """The policy of trunk, or of the named commit."""
    from gitcoord.policy.reader import Source

    return Source(ctx, commit or sync_policy_commit(ctx, snapshot), case=folds_case(snapshot.state))


def restrictions(ctx: Context, snapshot: Snapshot) -> Policy | None:
    """The policy that applies to claims, without attributes; None where it restricts nobody."""
    commit = sync_policy_commit(ctx, snapshot)
    place = f"{ctx.repo.scratch}/policy.git"
    known = read_file(f"{place}/unrestricted").decode("ascii", "replace")
    private = bool(ctx.settings.get("gitcoord.overlay"))  # it changes without a commit, so nothing is cached
    if not private and (not commit or known == commit):
        return None
    policy = trunk_source(ctx, snapshot, commit).policy(())
    if policy.writers or any(role.readonly for role in policy.roles.values()):
        return policy
    if private:
        return None
    try:
        make_directory(place)
        write_file(f"{place}/unrestricted", commit.encode())
    except OSError:
        pass  # the cache is for speed only
    return None
