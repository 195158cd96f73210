"""Whether two commits have the same policy, by comparing loose trees without git."""

from __future__ import annotations

from gitcoord.git.tree import parse_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.names import Oid
    from gitcoord.git.store import Reader
    from gitcoord.git.tree import Entries

_MOST_TREES = 64  # for more trees git is faster


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
