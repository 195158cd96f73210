"""Facts about commits that the judge asks for: who contains whom, what lay where, what a merge would leave.

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
from gitcoord.ledger.state import View
from gitcoord.policy.model import same_answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.judge import Step
    from gitcoord.ledger.context import Context

    Rows = dict[str, list[list[str]]]

_FEW = 4  # questions of one kind that are asked path by path
_LARGE = 1 << 20  # git ignores attributes files beyond a size


class Looking(View):
    """A view for one judgement: `paths` are those that are judged."""

    __slots__ = ("paths",)

    def __init__(self, wall: int, mono: int, boot: str, paths: set[str]) -> None:
        super().__init__(wall, mono, boot)
        self.paths = paths

    def trunk(self) -> list[str]:
        """Where the trunk stands; for whom it is told."""
        return []

    def often(self, what: tuple[str, ...]) -> bool:
        """Is it worth while to answer this for all paths at once?"""
        count = self.facts.get(("asked", *what), 0)
        assert isinstance(count, int)
        self.facts["asked", *what] = count + 1
        return count >= _FEW


def read_history_fact(ctx: Context, view: Looking, what: tuple[str, ...]) -> bool:
    """Answers what is about commits; False where the question is another."""
    kind, *rest = what
    if kind == "ancestor":
        view.facts[what] = _is_ancestor(ctx, rest[0], rest[1])
    elif kind == "contained":
        view.facts[what] = _contained(ctx, rest[0], rest[1:])
    elif kind == "containing":
        view.facts[what] = _containing(ctx, rest[0], rest[1:])
    elif kind == "at":
        view.facts[what] = _at(ctx, view, rest[0], rest[1])
    elif kind == "merged":
        view.facts[what] = _merged(ctx, view, *rest)
    elif kind == "picked":
        view.facts[what] = _picked(ctx, view, *rest)
    elif kind == "work":
        view.facts[what] = _work(ctx, view, *rest)
    elif kind == "had":
        view.facts[what] = _had(ctx, view, *rest)
    elif kind == "left again":
        view.facts[what] = _left_again(ctx, view, *rest[:4], bases=rest[4:])
    elif kind == "telling":
        view.facts[what] = _is_telling(ctx, *rest)
    else:
        return False
    return True


# --- who contains whom ----------------------------------------------------------------------------------------------


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


def _contained(ctx: Context, at: str, commits: list[str]) -> dict[str, bool]:
    """Which of these commits `at` contains; whatever is left out must be asked for by itself, and may not be known."""
    return _listed(ctx, commits, at, listed=False)


def _containing(ctx: Context, old: str, commits: list[str]) -> dict[str, bool]:
    """Which of these commits, of which `old` is none, contain it; what is left out as above."""
    return _listed(ctx, commits, old, listed=True)


def _listed(ctx: Context, commits: list[str], beyond: str, *, listed: bool) -> dict[str, bool]:
    there = [c for c, oid in zip(commits, ctx.store.resolve(commits)) if oid is not None]
    if _is_shallow(ctx):
        return {}
    answer = list_outside(ctx.repo.env, there, beyond, ancestry_path=listed)
    found = set(answer.lines)
    return {commit: (commit in found) == listed for commit in there} if not answer.code else {}


def _is_shallow(ctx: Context) -> bool:
    return bool(read_file(f"{ctx.repo.common_dir}/shallow", 1))


# --- what lay where -------------------------------------------------------------------------------------------------


def _at(ctx: Context, view: Looking, tree: str, path: str) -> list[str]:
    """[mode, blob] of what lies at a path of a commit or tree."""
    known = ("tree", tree)
    if known not in view.facts:
        if not view.often(known):
            return lying_at(ctx, tree, path)
        view.facts[known] = _tree(ctx, tree, view.paths)
    rows = view.facts[known]
    assert isinstance(rows, dict)
    return rows.get(path, [NOTHING, ""]) if path in view.paths else lying_at(ctx, tree, path)


def _tree(ctx: Context, tree: str, paths: set[str]) -> dict[str, list[str]]:
    found = {}
    for line in ls_tree(ctx.repo.env, tree).require(f"git cannot read {tree[:12]}").entries:
        meta, _, path = line.partition("\t")
        if path in paths:
            mode, _, blob = meta.split(" ")
            found[path] = [mode, blob]
    return found


def _touching(ctx: Context, view: Looking, commits: list[str], path: str) -> list[list[str]]:
    """[commit, mode, blob] of what each of these commits left at the path."""
    known = ("log", *commits)
    if known not in view.facts:
        if not view.often(known):
            return _rows(_log(ctx, commits, [path])).get(path, [])
        view.facts[known] = _rows(_log(ctx, commits, []))
    rows = view.facts[known]
    assert isinstance(rows, dict)
    found: list[list[str]] = rows.get(path, [])
    return found


def _log(ctx: Context, commits: list[str], paths: list[str]) -> list[Step]:
    code, out, complaint = log_steps(ctx.repo.env, commits, [f":(top,literal){path}" for path in paths])
    if code:
        _require(ctx, *(commit.lstrip("^") for commit in commits))
        raise CouldNotJudge(f"git cannot tell the history of {commits[0][:12]}: {complaint}")
    return parse_log([out])


def _rows(steps: list[Step]) -> Rows:
    found: Rows = {}
    for step in steps:
        for change in step.changes:
            found.setdefault(change.path, []).append([step.oid, change.mode, change.blob])
    return found


def _work(ctx: Context, view: Looking, base: str, commit: str, path: str) -> list[list[str]]:
    """[commit, mode, blob] of what each commit since `base` left at the path.

    A base that is not here was never shared, or rewritten and lost: then it is what the trunk does not have.
    """
    known = ("beyond", base)
    if known not in view.facts:
        is_here = not base or ctx.store.resolve([base])[0] is not None
        view.facts[known] = ([base] if base else []) if is_here else view.trunk()
    beyond = view.facts[known]
    assert isinstance(beyond, list)
    return _touching(ctx, view, [commit, *(f"^{oid}" for oid in beyond)], path)


def _had(ctx: Context, view: Looking, released: str, at: str, path: str, mode: str, blob: str) -> bool:
    """Did some commit since the merge base with the release have exactly its mode and blob?"""
    if _at(ctx, view, at, path) == [mode, blob] and blob:
        return True
    known = ("base", released, at)
    if known not in view.facts:
        view.facts[known] = merge_base(ctx.repo.env, released, at).text
    base = str(view.facts[known])
    rows = _touching(ctx, view, [at, *([f"^{base}"] if base else [])], path)
    return any(left == blob and (not blob or kind == mode) for _, kind, left in rows)


def _left_again(ctx: Context, view: Looking, at: str, path: str, mode: str, blob: str, *, bases: list[str]) -> bool:
    """Did some commit of `at` since the bases have this mode and blob, and is something else there now?"""
    if _at(ctx, view, at, path) == [mode, blob]:
        return False
    known = [f"^{base}" for base, oid in zip(bases, ctx.store.resolve(bases)) if oid is not None]
    return any(row[1:] == [mode, blob] for row in _touching(ctx, view, [at, *known], path))


# --- what a merge would leave ---------------------------------------------------------------------------------------


def _merged(ctx: Context, view: Looking, ours: str, theirs: str, path: str) -> list[str] | None:
    """[mode, blob] that a clean merge leaves at a path; None where it is not clean. The exit code counts: git keeps our
    side of binary files, symbolic links and deletions, and says so there only."""
    known = ("merge", ours, theirs)
    if known not in view.facts:
        code, out, complaint = merge_tree(ctx.repo.env, ours, theirs)
        # git prints a tree wherever it merged, clean or not; for what is no commit its exit code may be that of a conflict.
        if not out and "unrelated histories" not in complaint:
            _require(ctx, ours, theirs)
            raise CouldNotJudge(f"git cannot merge {ours[:12]} and {theirs[:12]} to compare them: {complaint}")
        view.facts[known] = "" if code else out.decode().split("\n")[0]
    tree = str(view.facts[known])
    return _at(ctx, view, tree, path) if is_oid(tree) else None


def _picked(ctx: Context, view: Looking, onto: str, commit: str, path: str) -> list[str] | None:
    """[mode, blob] that a clean cherry-pick leaves at a path: a merge whose base is the picked commit's parent.

    Before 2.40 git takes no base, so the commit onto which it is picked gets a stand-in with that parent.
    """
    known = ("stand-in", onto, commit)
    if known not in view.facts:
        view.facts[known] = commit_stand_in(ctx.repo.env, f"{onto}^{{tree}}", f"{commit}^").text
    standing = str(view.facts[known])
    return _merged(ctx, view, standing, commit, path) if standing else None


def _is_telling(ctx: Context, parent: str, path: str, blob: str) -> bool:
    """Does this version of an attributes file change what gitcoord is told?"""
    # By id: a name of the kind commit:path cannot hold a line end.
    blobs = [lying_at(ctx, parent, name)[1] if parent else "" for name in (path, ".gitattributes")]
    read = ctx.store.read([oid or "refs/none" for oid in (*blobs, blob)])
    old, top, new = (found.data if found is not None else b"" for found in read)
    return len(new) > _LARGE or not same_answers(old, new, top)
