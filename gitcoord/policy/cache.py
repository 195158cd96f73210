"""Cached answers of the project's policy: whether it restricts who may claim a path, and the settings of the queue.

They are cached by commit, so that everyday verbs do not load the reader of policies.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, dumps, loads
from gitcoord.git.files import make_directory, read_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.ledger.world import Waiting
from gitcoord.policy.model import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.policy.reader import Source


def sync_policy_commit(ctx: Context, snapshot: Snapshot) -> str:
    """The commit whose policy applies to claims: the tip of trunk, else HEAD."""
    sync = f"refs/heads/{format_record(snapshot.state).sync}"
    return ctx.store.target(sync) or ctx.store.target("HEAD") or ""


def lands_here(ctx: Context, snapshot: Snapshot, pairs: list[tuple[str, str]]) -> bool:
    """Does what is committed in this work tree land, or is it deployed from here? Not on a work branch."""
    here = read_file(f"{ctx.repo.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
    if not here.startswith("ref: refs/heads/") or here == f"ref: refs/heads/{format_record(snapshot.state).sync}":
        return True
    if not any(key.startswith("deploy.") for key, _ in pairs):
        return False
    from gitcoord.deploy.targets import match, targets

    return any(match(target, target.remote, here[5:]) for target in targets(pairs).values())


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
    if policy.writers or any(role.readonly or not role.land for role in policy.roles.values()):
        return policy
    if private:
        return None
    _remember(place, "unrestricted", commit.encode())
    return None


def waiting(ctx: Context, snapshot: Snapshot) -> Waiting:
    """The settings of the queue. Client and server read them from trunk, each from its own."""
    commit = sync_policy_commit(ctx, snapshot)
    place = f"{ctx.repo.scratch}/policy.git"
    if not commit:
        return Waiting()
    try:
        known, overtake, reserve, queued, highest, roles = loads(read_file(f"{place}/queue", 1 << 16))
        if known == commit:
            return Waiting(overtake, reserve, queued, highest, tuple((role, given) for role, given in roles))
    except (Malformed, ValueError, TypeError):
        pass  # not there, or of another version
    from gitcoord.policy.waiting import parse_waiting

    found = parse_waiting(trunk_source(ctx, snapshot, commit).pairs)
    _remember(place, "queue", dumps([commit, *found]).encode())
    return found


def _remember(place: str, name: str, data: bytes) -> None:
    try:
        make_directory(place)
        write_file(f"{place}/{name}", data)
    except OSError:
        pass  # the cache is for speed only
