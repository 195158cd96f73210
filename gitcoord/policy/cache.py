"""Whether the project's policy restricts who may claim a path.

Most policies do not. That is cached by commit, and loose trees are compared with the next commit, so that a plain claim neither
starts git for it nor loads the reader of policies.
"""

from __future__ import annotations

from gitcoord.git.files import make_directory, read_file, write_file
from gitcoord.git.tree import parse_tree
from gitcoord.ledger.format import folds_case, format_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.names import Oid
    from gitcoord.git.store import Reader
    from gitcoord.git.tree import Entries
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.policy.model import Policy

_MOST_TREES = 64  # for more trees git is faster


def sync_policy_commit(ctx: Context, snapshot: Snapshot) -> str:
    """The commit whose policy applies to claims: the tip of trunk, else HEAD."""
    sync = f"refs/heads/{format_record(snapshot.state).sync}"
    return ctx.store.target(sync) or ctx.store.target("HEAD") or ""


def restrictions(ctx: Context, snapshot: Snapshot) -> Policy | None:
    """The policy that applies to claims, without attributes; None where it restricts nobody."""
    commit = sync_policy_commit(ctx, snapshot)
    place = f"{ctx.repo.scratch}/policy.git"
    known = read_file(f"{place}/unrestricted").decode("ascii", "replace")
    private = bool(ctx.settings.get("gitcoord.overlay"))  # it changes without a commit, so nothing is cached
    if not private and (not commit or known == commit):
        return None
    if private or not same_policy(ctx.store, known, commit):
        from gitcoord.policy.reader import Source

        policy = Source(ctx, commit, case=folds_case(snapshot.state)).policy(())
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


def same_policy(store: Reader, old: Oid, new: Oid) -> bool:
    """Whether two commits ('': an empty one) certainly have the same policy. False may mean unknown."""
    pairs: list[tuple[Oid | None, Oid | None]] = [(_tree(store, old) if old else "", _tree(store, new))]
    depth = budget = 0
    while pairs:
        below: list[tuple[Oid | None, Oid | None]] = []
        for before, after in pairs:
            left, right = _entries(store, before), _entries(store, after)
            budget += 1
            if left is None or right is None or budget > _MOST_TREES:
                return False
            for name in left.keys() | right.keys():
                first, second = left.get(name), right.get(name)
                if first == second:
                    continue
                if name.lower() == ".gitattributes" or (not depth and name == ".gitcoord"):
                    return False
                trees = [entry.oid if entry is not None and entry.is_tree else "" for entry in (first, second)]
                if any(trees):
                    below.append((trees[0], trees[1]))
        pairs, depth = below, depth + 1
    return True


def _tree(store: Reader, commit: Oid) -> Oid | None:
    found = store.read_if_loose(commit)
    if found is None or found.kind != "commit" or not found.data.startswith(b"tree "):
        return None
    return found.data[5:].partition(b"\n")[0].decode("ascii", "replace")


def _entries(store: Reader, tree: Oid | None) -> Entries | None:
    """The entries of a loose tree; None where only git can read it. The tree '' has none."""
    if not tree:
        return {} if tree is not None else None
    found = store.read_if_loose(tree)
    try:
        return parse_tree(found.data, store.oid_length) if found is not None and found.kind == "tree" else None
    except ValueError:
        return None
