"""History as git tells it: who contains whom, what lay where, what a merge would leave.

A change may land hundreds of released files, so nothing here costs a git process a file: what was asked for a few paths is
then read for all paths that are judged, at once.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import is_oid, shell_word
from gitcoord.gates.history import NOTHING, lying_at, parse_log
from gitcoord.git.commands.objects import (
    commit_stand_in,
    compare_ancestry,
    list_outside,
    log_steps,
    ls_tree,
    merge_base,
    merge_tree,
)
from gitcoord.git.files import read_file
from gitcoord.ledger.world import remembered
from gitcoord.policy.model import same_answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.judge import CommitChange
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.snapshot import Snapshot

    Rows = dict[str, list[list[str]]]

_FEW = 4  # questions of one kind that are asked path by path
_LARGE = 1 << 20  # git ignores attributes files beyond a size


class GitHistory:
    """The `History` (`gates/lineage.py`) of one judgement, asked of git: `paths` are those that are judged."""

    def __init__(self, ctx: Context, snapshot: Snapshot, paths: set[str]) -> None:
        self._ctx = ctx
        self._snapshot = snapshot
        self._paths = paths
        self._asked: dict[tuple[str, ...], int] = {}
        self.answers: dict[tuple[object, ...], object] = {}  # for `remembered`

    def often(self, *what: str) -> bool:
        """Is it worth while to answer this for all paths at once?"""
        self._asked[what] = self._asked.get(what, 0) + 1
        return self._asked[what] > _FEW

    # --- who contains whom

    @remembered
    def is_ancestor(self, old: str, new: str) -> bool:
        return _is_ancestor(self._ctx, old, new)

    @remembered
    def contained(self, at: str, commits: list[str]) -> dict[str, bool]:
        return _listed(self._ctx, commits, at, listed=False)

    @remembered
    def containing(self, old: str, commits: list[str]) -> dict[str, bool]:
        return _listed(self._ctx, commits, old, listed=True)

    # --- what lay where

    @remembered
    def at(self, tree: str, path: str) -> list[str]:
        if path in self._paths and self.often("tree", tree):
            return self._tree(tree).get(path, [NOTHING, ""])
        return lying_at(self._ctx, tree, path)

    @remembered
    def _tree(self, tree: str) -> dict[str, list[str]]:
        return _tree(self._ctx, tree, self._paths)

    def _touching(self, commits: list[str], path: str) -> list[list[str]]:
        """[commit, mode, blob] of what each of these commits left at the path."""
        found = self._log(commits) if self.often("log", *commits) else _rows(_log(self._ctx, commits, [path]))
        return found.get(path, [])

    @remembered
    def _log(self, commits: list[str]) -> Rows:
        return _rows(_log(self._ctx, commits, []))

    @remembered
    def work(self, base: str, commit: str, path: str) -> list[list[str]]:
        return self._touching([commit, *(f"^{oid}" for oid in self._beyond(base))], path)

    @remembered
    def _beyond(self, base: str) -> list[str]:
        """A base that is not here was never shared, or rewritten and lost: then its work is what the trunk does not have."""
        if not base or self._ctx.store.resolve([base])[0] is not None:
            return [base] if base else []
        from gitcoord.claims.work_facts import trunk_tips

        return trunk_tips(self._ctx, self._snapshot)

    @remembered
    def had(self, released: str, at: str, path: str, mode: str, blob: str) -> bool:
        if self.at(at, path) == [mode, blob] and blob:
            return True
        base = self._merge_base(released, at)
        rows = self._touching([at, *([f"^{base}"] if base else [])], path)
        return any(left == blob and (not blob or kind == mode) for _, kind, left in rows)

    @remembered
    def _merge_base(self, one: str, other: str) -> str:
        return merge_base(self._ctx.repo.env, one, other).text

    @remembered
    def left_again(self, at: str, path: str, mode: str, blob: str, bases: list[str]) -> bool:
        if self.at(at, path) == [mode, blob]:
            return False
        known = [f"^{base}" for base, oid in zip(bases, self._ctx.store.resolve(bases)) if oid is not None]
        return any(row[1:] == [mode, blob] for row in self._touching([at, *known], path))

    # --- what a merge would leave

    @remembered
    def merged(self, ours: str, theirs: str, path: str) -> list[str] | None:
        tree = self._merge(ours, theirs)
        return self.at(tree, path) if is_oid(tree) else None

    @remembered
    def _merge(self, ours: str, theirs: str) -> str:
        return _merge(self._ctx, ours, theirs)

    @remembered
    def picked(self, onto: str, commit: str, path: str) -> list[str] | None:
        standing = self._stand_in(onto, commit)
        return self.merged(standing, commit, path) if standing else None

    @remembered
    def _stand_in(self, onto: str, commit: str) -> str:
        """A cherry-pick is a merge whose base is the picked commit's parent. Before 2.40 git takes no base, so the commit onto
        which it is picked gets a stand-in with that parent."""
        return commit_stand_in(self._ctx.repo.env, f"{onto}^{{tree}}", f"{commit}^").text

    @remembered
    def changes_attributes(self, parent: str, path: str, blob: str) -> bool:
        return _changes_attributes(self._ctx, parent, path, blob)


def _require(ctx: Context, *commits: str) -> None:
    for commit, oid in zip(commits, ctx.store.resolve(commits)):
        if oid is None:
            if _is_shallow(ctx):
                raise _shallow(ctx)
            raise CouldNotJudge(
                f"{commit[:12]} is not in this repository, so what it holds cannot be compared",
                hints=(
                    "fetch it: git fetch --all",
                    "or, if that work was abandoned: git claim disown <path> --reason '...'",
                ),
            )


def _shallow(ctx: Context) -> CouldNotJudge:
    """A shallow clone follows one branch only: released work may be on any."""
    remote = shell_word(ctx.remote)
    every = f" {remote} {shell_word(f'+refs/heads/*:refs/remotes/{ctx.remote}/*')}" if ctx.remote else ""
    return CouldNotJudge("this clone is shallow: history is missing", hints=(f"git fetch --unshallow{every}",))


def _is_ancestor(ctx: Context, old: str, new: str) -> bool:
    code, _, complaint = compare_ancestry(ctx.repo.env, old, new)
    if code not in (0, 1):
        _require(ctx, old, new)
        raise CouldNotJudge(f"git cannot compare {old[:12]} with {new[:12]}: {complaint}")
    if code and _is_shallow(ctx):
        raise _shallow(ctx)
    return not code


def _listed(ctx: Context, commits: list[str], beyond: str, *, listed: bool) -> dict[str, bool]:
    there = [c for c, oid in zip(commits, ctx.store.resolve(commits)) if oid is not None]
    if _is_shallow(ctx):
        return {}
    answer = list_outside(ctx.repo.env, there, beyond, ancestry_path=listed)
    found = set(answer.lines)
    return {commit: (commit in found) == listed for commit in there} if not answer.code else {}


def _is_shallow(ctx: Context) -> bool:
    return bool(read_file(f"{ctx.repo.common_dir}/shallow", 1))


def _tree(ctx: Context, tree: str, paths: set[str]) -> dict[str, list[str]]:
    found = {}
    for line in ls_tree(ctx.repo.env, tree).require(f"git cannot read {tree[:12]}").entries:
        meta, _, path = line.partition("\t")
        if path in paths:
            mode, _, blob = meta.split(" ")
            found[path] = [mode, blob]
    return found


def _log(ctx: Context, commits: list[str], paths: list[str]) -> list[CommitChange]:
    code, out, complaint = log_steps(ctx.repo.env, commits, [f":(top,literal){path}" for path in paths])
    if code:
        _require(ctx, *(commit.lstrip("^") for commit in commits))
        raise CouldNotJudge(f"git cannot tell the history of {commits[0][:12]}: {complaint}")
    return parse_log([out])


def _rows(steps: list[CommitChange]) -> Rows:
    found: Rows = {}
    for step in steps:
        for change in step.changes:
            found.setdefault(change.path, []).append([step.oid, change.mode, change.blob])
    return found


def _merge(ctx: Context, ours: str, theirs: str) -> str:
    """The tree of a clean merge; '' where it is not clean. The exit code counts: git keeps our side of binary files, symbolic
    links and deletions, and says so there only."""
    code, out, complaint = merge_tree(ctx.repo.env, ours, theirs)
    # git prints a tree wherever it merged, clean or not; for what is no commit its exit code may be that of a conflict.
    if not out and "unrelated histories" not in complaint:
        _require(ctx, ours, theirs)
        raise CouldNotJudge(f"git cannot merge {ours[:12]} and {theirs[:12]} to compare them: {complaint}")
    return "" if code else out.decode().split("\n")[0]


def _changes_attributes(ctx: Context, parent: str, path: str, blob: str) -> bool:
    """Does this version of an attributes file change what gitcoord is told?"""
    # By id: a name of the kind commit:path cannot hold a line end.
    blobs = [lying_at(ctx, parent, name)[1] if parent else "" for name in (path, ".gitattributes")]
    read = ctx.store.read([oid or "refs/none" for oid in (*blobs, blob)])
    old, top, new = (found.data if found is not None else b"" for found in read)
    return len(new) > _LARGE or not same_answers(old, new, top)
