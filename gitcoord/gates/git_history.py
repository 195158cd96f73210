"""The history that the judge asks about, read from git: ancestry, files at commits, results of merges.

A push may land hundreds of released files, so no git process is started for each: after a few questions of one kind, the answer
is read for all judged paths at once.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import is_oid, printable, shell_word
from gitcoord.gates.history import NOTHING, file_at, parse_log
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
from gitcoord.ledger.context import Context
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.ledger.world import memoized
from gitcoord.policy.model import same_answers

Rows = dict[str, list[list[str]]]


_FEW = 4  # questions of one kind that are answered path by path
_LARGE = 1 << 20  # git ignores larger attributes files


class LackingCommit(CouldNotJudge):
    """Released work that is not in this clone: a fetch may bring it."""


class GitHistory:
    """The `History` (`gates/lineage.py`) of one judgement of these paths."""

    def __init__(self, ctx: Context, snapshot: Snapshot, paths: set[str], index: str = "") -> None:
        """`index`: the file of the index that is judged."""
        self._ctx = ctx
        self._env = ctx.repo.env
        self._index = index
        self._snapshot = snapshot
        self._paths = paths
        self._asked: dict[tuple[str, ...], int] = {}
        self.answers: dict[tuple[object, ...], object] = {}  # for `remembered`

    def often(self, *what: str) -> bool:
        """Return whether this was asked often enough to read the answer for all paths at once."""
        self._asked[what] = self._asked.get(what, 0) + 1
        return self._asked[what] > _FEW

    # --- ancestry

    @memoized
    def is_ancestor(self, old: str, new: str) -> bool:
        code, _, complaint = compare_ancestry(self._env, old, new)
        if code not in (0, 1):
            self._require(old, new)
            raise CouldNotJudge(f"git cannot compare {old[:12]} with {new[:12]}: {complaint}")
        if code and self._is_shallow():
            raise self._shallow()
        return not code

    @memoized
    def contained(self, at: str, commits: list[str]) -> dict[str, bool]:
        return self._outside(commits, at, ancestry_path=False)

    @memoized
    def containing(self, old: str, commits: list[str]) -> dict[str, bool]:
        return self._outside(commits, old, ancestry_path=True)

    def _outside(self, commits: list[str], beyond: str, *, ancestry_path: bool) -> dict[str, bool]:
        there = [commit for commit, oid in zip(commits, self._ctx.store.resolve(commits)) if oid is not None]
        if self._is_shallow():
            return {}
        answer = list_outside(self._env, there, beyond, ancestry_path=ancestry_path)
        found = set(answer.lines)
        return {commit: (commit in found) == ancestry_path for commit in there} if not answer.code else {}

    def _is_shallow(self) -> bool:
        return bool(read_file(f"{self._ctx.repo.common_dir}/shallow", 1))

    def _shallow(self) -> CouldNotJudge:
        """A shallow clone follows one branch, and released work may be on any."""
        name = self._ctx.remote
        every = f" {shell_word(name)} {shell_word(f'+refs/heads/*:refs/remotes/{name}/*')}" if name else ""
        return CouldNotJudge("this clone is shallow: history is missing", hints=(f"git fetch --unshallow{every}",))

    def _require(self, *commits: str, path: str = "") -> None:
        for commit, oid in zip(commits, self._ctx.store.resolve(commits)):
            if oid is None:
                if self._is_shallow():
                    raise self._shallow()
                on, word = (f" on {printable(path)}", shell_word(path)) if path else ("", "<path>")
                raise LackingCommit(
                    f"work{on} that was released as {commit[:12]} is not in this copy, so nothing can be compared with it",
                    hints=(
                        "fetch it, from whichever branch it is on: git fetch --all",
                        f"or, if no fetch brings it since it was abandoned: git claim disown {word} --reason '...'",
                    ),
                )

    # --- files

    @memoized
    def at(self, tree: str, path: str) -> list[str]:
        if path in self._paths and self.often("tree", tree):
            return self._tree(tree).get(path, [NOTHING, ""])
        return file_at(self._ctx, tree, path)

    @memoized
    def _tree(self, tree: str) -> dict[str, list[str]]:
        found = {}
        for line in ls_tree(self._env, tree).require(f"git cannot read {tree[:12]}").entries:
            meta, _, path = line.partition("\t")
            if path in self._paths:
                mode, _, blob = meta.split(" ")
                found[path] = [mode, blob]
        return found

    def _touching(self, commits: list[str], path: str) -> list[list[str]]:
        """[commit, mode, blob] of each of these commits that changed the path."""
        found = self._log(commits) if self.often("log", *commits) else self._log(commits, path)
        return found.get(path, [])

    @memoized
    def _log(self, commits: list[str], *paths: str) -> Rows:
        code, out, complaint = log_steps(self._env, commits, [f":(top,literal){path}" for path in paths])
        if code:
            self._require(*(commit.lstrip("^") for commit in commits), path=paths[0] if len(paths) == 1 else "")
            raise CouldNotJudge(f"git cannot read the history of {commits[0][:12]}: {complaint}")
        found: Rows = {}
        for step in parse_log([out]):
            for change in step.changes:
                found.setdefault(change.path, []).append([step.oid, change.mode, change.blob])
        return found

    @memoized
    def work(self, base: str, commit: str, path: str) -> list[list[str]]:
        return self._touching([commit, *(f"^{oid}" for oid in self._beyond(base))], path)

    @memoized
    def _beyond(self, base: str) -> list[str]:
        """The commits to exclude: the base, or trunk where the base was never shared, or was rewritten and lost."""
        if not base or self._ctx.store.resolve([base])[0] is not None:
            return [base] if base else []
        from gitcoord.claims.work_facts import trunk_tips

        return trunk_tips(self._ctx, self._snapshot)

    @memoized
    def had(self, released: str, at: str, path: str, mode: str, blob: str) -> bool:
        if self.at(at, path) == [mode, blob] and blob:
            return True
        base = self._merge_base(released, at)
        rows = self._touching([at, *([f"^{base}"] if base else [])], path)
        return any(left == blob and (not blob or kind == mode) for _, kind, left in rows)

    @memoized
    def absent(self, commits: list[str]) -> set[str]:
        if self._is_shallow():
            return set()
        return {commit for commit, oid in zip(commits, self._ctx.store.resolve(commits)) if oid is None}

    @memoized
    def stand_in(self, base: str, path: str, mode: str, blob: str) -> str:
        from gitcoord.claims.work_facts import trunk_tips

        for tip in (
            trunk_tips(self._ctx, self._snapshot) if base else ()
        ):  # without it, content from long before would do
            rows = self._touching([tip, *(f"^{oid}" for oid in self._beyond(base))], path)
            for commit, kind, left in reversed(rows):  # a later one may go back to it
                if left == blob and (not blob or kind == mode):
                    return commit
        return ""

    @memoized
    def _merge_base(self, one: str, other: str) -> str:
        return merge_base(self._env, one, other).text

    @memoized
    def left_again(self, at: str, path: str, mode: str, blob: str, bases: list[str]) -> bool:
        if self.at(at, path) == [mode, blob]:
            return False
        known = [f"^{base}" for base, oid in zip(bases, self._ctx.store.resolve(bases)) if oid is not None]
        return any(row[1:] == [mode, blob] for row in self._touching([at, *known], path))

    # --- merges

    @memoized
    def merged(self, ours: str, theirs: str, path: str) -> list[str] | None:
        tree = self._merge(ours, theirs)
        return self.at(tree, path) if is_oid(tree) else None

    @memoized
    def _merge(self, ours: str, theirs: str) -> str:
        """The tree of a clean merge; '' where it is not clean. Only the exit code shows conflicts of binary files, symbolic
        links and deletions: git keeps our side of them in the tree."""
        code, out, complaint = merge_tree(self._env, ours, theirs)
        # git prints a tree for every merge, clean or not. For an argument that is no commit it may exit as for a conflict.
        if not out and "unrelated histories" not in complaint:
            self._require(ours, theirs)
            raise CouldNotJudge(f"git cannot merge {ours[:12]} and {theirs[:12]} to compare them: {complaint}")
        return "" if code else out.decode().split("\0")[0]

    def conflicts(self, at: str, theirs: str) -> list[str]:
        """Only for a hint: where git cannot tell, there are none."""
        ours = at
        if not at:
            from gitcoord.git.commands.worktrees import with_index, write_tree

            tree = write_tree(with_index(self._env, self._index) if self._index else self._env).text
            ours = commit_stand_in(self._env, tree, "HEAD").text if tree else "HEAD"
        code, out, _ = merge_tree(self._env, ours or "HEAD", theirs)
        return [name for name in out.decode("utf-8", "surrogateescape").split("\0")[1:] if name] if code == 1 else []

    @memoized
    def picked(self, onto: str, commit: str, path: str) -> list[str] | None:
        stand_in = self._stand_in(onto, commit)
        return self.merged(stand_in, commit, path) if stand_in else None

    @memoized
    def _stand_in(self, onto: str, commit: str) -> str:
        """A cherry-pick is a merge whose base is the picked commit's parent. `git merge-tree` takes no base before 2.40, so
        the commit to pick onto is replaced by one with the same tree and that parent."""
        return commit_stand_in(self._env, f"{onto}^{{tree}}", f"{commit}^").text

    @memoized
    def changes_attributes(self, parent: str, path: str, blob: str) -> bool:
        # By id: a name such as commit:path cannot contain a newline.
        blobs = [file_at(self._ctx, parent, name)[1] if parent else "" for name in (path, ".gitattributes")]
        read = self._ctx.store.read([oid or "refs/none" for oid in (*blobs, blob)])
        old, top, new = (found.data if found is not None else b"" for found in read)
        return len(new) > _LARGE or not same_answers(old, new, top)
