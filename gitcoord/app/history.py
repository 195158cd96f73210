"""What git tells about commits: the steps of a push, what lay where, who contains whom.

Replace refs never count: one of them could hide an edit. Renames are two changes, a deletion and a new file.
"""

from gitcoord.core.judge import Change, Step
from gitcoord.core.policy import same_answers
from gitcoord.errors import CouldNotJudge, UsageError
from gitcoord.names import check_agent, is_oid
from gitcoord.store.files import read_file
from gitcoord.store.process import Child, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitcoord.app.context import Context
    from gitcoord.core.state import View

GIT = ["git", "--no-replace-objects"]
_RAW = ["--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=none"]
_FORMAT = "--format=%x01%H %P%x02%(trailers:key=Agent,valueonly,separator=%x0A)"
_LOG = [*GIT, "log", "--no-show-signature", "--encoding=UTF-8", "--root", "-c", *_RAW, _FORMAT]
_NOBODY = ["-c", "user.name=gitcoord", "-c", "user.email=gitcoord@gitcoord.invalid", "-c", "commit.gpgSign=false"]
_NEVER = {b"GIT_AUTHOR_DATE": b"@0 +0000", b"GIT_COMMITTER_DATE": b"@0 +0000"}  # the same stand-in each time
_NOTHING = "000000"
_LARGE = 1 << 20  # git ignores attributes files beyond a size


def start_steps(ctx: "Context", new: str, known: "Iterable[str]") -> Child:
    """Ask for the commits of `new` that none of the known commits contains."""
    child = Child([*_LOG, "--topo-order", "--reverse", "--stdin"], ctx.repo.env)
    child.send("".join(f"{line}\n" for line in [new, *(f"^{oid}" for oid in known)]).encode())
    child.close_input()
    return child


def finish_steps(child: Child) -> list[Step]:
    out = child.rest()
    if child.wait():
        complaint = child.complaint()
        child.close()
        raise CouldNotJudge(
            f"git cannot tell what is new: {complaint}", hints=("git fetch, if history is missing here",)
        )
    child.close()
    return parse_log(out)


def parse_log(data: bytes) -> list[Step]:
    steps: list[Step] = []
    words = data.decode("utf-8", "surrogateescape").split("\0")
    changes: list[Change] = []
    head, index = "", 0
    while index < len(words):
        word = words[index].lstrip("\n")
        if word.startswith("\x01"):
            if head:
                steps.append(_step(head, changes))
            head, changes = word[1:], []
        elif word.startswith(":"):
            index += 1
            changes.append(_change(word, words[index]))
        elif word:
            raise CouldNotJudge(
                "git log says something that cannot be read", hints=("git config --get-regexp '^log[.]'",)
            )
        index += 1
    if head:
        steps.append(_step(head, changes))
    return steps


def _step(head: str, changes: list[Change]) -> Step:
    ids, _, trailers = head.partition("\x02")
    oid, *parents = ids.split()
    return Step(oid, tuple(parents), _agent(trailers.partition("\n")[0].strip()), tuple(changes))


def _agent(named: str) -> str:
    """Whom a trailer names; what is no agent's name names nobody."""
    try:
        return check_agent(named) if named else ""
    except UsageError:
        return ""


def _change(meta: str, path: str) -> Change:
    """One line of raw output; a merge has a colon, a mode and an id for each parent."""
    parents = len(meta) - len(meta.lstrip(":"))
    fields = meta[parents:].split(" ")
    mode, blob = fields[parents], fields[2 * parents + 1]
    return Change(path, mode, "" if mode == _NOTHING else blob)


def merge_changes(ctx: "Context", step: Step) -> Step:
    """A merge's own changes: whatever differs from what git alone would have made of its parents, one after the other."""
    if len(step.parents) < 2:
        return step
    found = {change.path: change for change in step.changes}
    ours, conflicts, tree = step.parents[0], set[str](), ""
    for theirs in step.parents[1:]:
        argv = [*GIT, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs]
        code, out, complaint = run(argv, ctx.repo.env)
        if code not in (0, 1):
            if "unrelated histories" in complaint:
                return step
            raise CouldNotJudge(f"git cannot merge the parents of {step.oid[:12]} to compare: {complaint}")
        tree, *names = out.decode("utf-8", "surrogateescape").split("\0")
        conflicts.update(name for name in names if name and code)
        if theirs != step.parents[-1]:
            ours = _stand_in(ctx, tree, ours, theirs)
    for change in net_changes(ctx, tree, step.oid):
        found.setdefault(change.path, change)
    for name in conflicts:
        if name not in found:
            found[name] = Change(name, *tree_entry(ctx, step.oid, name))
    return step._replace(changes=tuple(found.values()))


def _stand_in(ctx: "Context", tree: str, *parents: str) -> str:
    """A commit that nobody sees, with this tree and these parents; '' where git cannot make it."""
    argv = [
        *GIT,
        *_NOBODY,
        "commit-tree",
        tree,
        *(word for parent in parents for word in ("-p", parent)),
        "-m",
        "stand-in",
    ]
    code, out, _ = run(argv, {**ctx.repo.env, **_NEVER})
    return out.decode().strip() if not code else ""


def net_changes(ctx: "Context", old: str, new: str) -> list[Change]:
    """What differs between two commits."""
    code, out, complaint = run([*GIT, "diff-tree", "-r", *_RAW, old, new], ctx.repo.env)
    if code:
        raise CouldNotJudge(f"git cannot compare {old[:12]} with {new[:12]}: {complaint}", hints=("git fetch",))
    words = out.decode("utf-8", "surrogateescape").split("\0")
    return [_change(meta, path) for meta, path in zip(words[::2], words[1::2])]


def index_changes(ctx: "Context", parents: "Iterable[str]", index: bytes) -> list[Change]:
    """What the index changes against every one of these commits."""
    env = dict(ctx.repo.env)
    if index:
        env[b"GIT_INDEX_FILE"] = index
    found: dict[str, Change] | None = None
    for parent in parents:
        code, out, complaint = run([*GIT, "diff-index", "--cached", *_RAW, parent, "--"], env)
        if code:
            raise CouldNotJudge(f"git cannot read the index: {complaint}")
        words = out.decode("utf-8", "surrogateescape").split("\0")
        these = {path: _change(meta, path) for meta, path in zip(words[::2], words[1::2])}
        found = these if found is None else {path: change for path, change in found.items() if path in these}
    return list((found or {}).values())


# --- facts that the judge asks for ----------------------------------------------------------------------------------


def read_history_fact(ctx: "Context", view: "View", what: "tuple[str, ...]") -> bool:
    """Answers what is about commits; False where the question is another."""
    kind, *rest = what
    if kind == "ancestor":
        view.facts[what] = _is_ancestor(ctx, rest[0], rest[1])
    elif kind == "at":
        view.facts[what] = tree_entry(ctx, rest[0], rest[1])
    elif kind == "merged":
        view.facts[what] = _merged(ctx, view, *rest)
    elif kind == "picked":
        view.facts[what] = _picked(ctx, view, *rest)
    elif kind == "work":
        view.facts[what] = _work(ctx, *rest)
    elif kind == "had":
        view.facts[what] = _had(ctx, *rest)
    elif kind == "telling":
        view.facts[what] = _is_telling(ctx, *rest)
    else:
        return False
    return True


def _require(ctx: "Context", *commits: str) -> None:
    for commit, oid in zip(commits, ctx.store.resolve(commits)):
        if oid is None:
            raise CouldNotJudge(
                f"{commit[:12]} is not in this repository, so what it holds cannot be compared",
                hints=(
                    "fetch it: git fetch --all",
                    "or, if that work was abandoned: git claim disown <path> --reason '...'",
                ),
            )


def _is_ancestor(ctx: "Context", old: str, new: str) -> bool:
    code, _, complaint = run([*GIT, "merge-base", "--is-ancestor", old, new], ctx.repo.env)
    if code not in (0, 1):
        _require(ctx, old, new)
        raise CouldNotJudge(f"git cannot compare {old[:12]} with {new[:12]}: {complaint}")
    if code and _is_shallow(ctx):
        raise CouldNotJudge("this clone is shallow: history is missing", hints=("git fetch --unshallow",))
    return not code


def _is_shallow(ctx: "Context") -> bool:
    return bool(read_file(f"{ctx.repo.common_dir}/shallow", 1))


def tree_entry(ctx: "Context", tree: str, path: str) -> list[str]:
    """[mode, blob] of what lies at a path of a commit or tree."""
    code, out, complaint = run(
        [*GIT, "--literal-pathspecs", "ls-tree", "-z", "--full-tree", tree, "--", path], ctx.repo.env
    )
    if code:
        raise CouldNotJudge(f"git cannot read {tree[:12]}: {complaint}")
    meta, _, name = out.decode("utf-8", "surrogateescape").rstrip("\0").partition("\t")
    if not meta or name != path or meta.split(" ")[1] == "tree":
        return [_NOTHING, ""]
    mode, _, blob = meta.split(" ")
    return [mode, blob]


def _merged(ctx: "Context", view: "View", ours: str, theirs: str, path: str) -> "list[str] | None":
    """[mode, blob] that a clean merge leaves at a path; None where it is not clean. The exit code counts: git keeps our
    side of binary files, symbolic links and deletions, and says so there only."""
    known = ("merge", ours, theirs)
    if known not in view.facts:
        argv = [*GIT, "merge-tree", "--write-tree", "--no-messages", ours, theirs]
        code, out, complaint = run(argv, ctx.repo.env)
        if code not in (0, 1):
            if "unrelated histories" not in complaint:
                _require(ctx, ours, theirs)
                raise CouldNotJudge(f"git cannot merge {ours[:12]} and {theirs[:12]} to compare them: {complaint}")
            code = 1
        view.facts[known] = "" if code else out.decode().split("\n")[0]
    tree = str(view.facts[known])
    return tree_entry(ctx, tree, path) if is_oid(tree) else None


def _picked(ctx: "Context", view: "View", onto: str, commit: str, path: str) -> "list[str] | None":
    """[mode, blob] that a clean cherry-pick leaves at a path: a merge whose base is the picked commit's parent.

    Before 2.40 git takes no base, so the commit onto which it is picked gets a stand-in with that parent.
    """
    known = ("stand-in", onto, commit)
    if known not in view.facts:
        view.facts[known] = _stand_in(ctx, f"{onto}^{{tree}}", f"{commit}^")
    stand_in = str(view.facts[known])
    return _merged(ctx, view, stand_in, commit, path) if stand_in else None


def _touching(ctx: "Context", commits: list[str], path: str) -> list[Step]:
    argv = [*_LOG, "--full-history", *commits, "--", f":(top,literal){path}"]
    code, out, complaint = run(argv, ctx.repo.env)
    if code:
        _require(ctx, *(commit.lstrip("^") for commit in commits))
        raise CouldNotJudge(f"git cannot tell the history of {path}: {complaint}")
    return parse_log(out)


def _work(ctx: "Context", base: str, commit: str, path: str) -> "list[list[str]]":
    """[commit, mode, blob] of what each commit since `base` left at the path."""
    steps = _touching(ctx, [commit, *([f"^{base}"] if base else [])], path)
    return [[step.oid, change.mode, change.blob] for step in steps for change in step.changes]


def _had(ctx: "Context", released: str, at: str, path: str, mode: str, blob: str) -> bool:
    """Did some commit since the merge base with the release have exactly its mode and blob?"""
    if tree_entry(ctx, at, path) == [mode or _NOTHING, blob] and blob:
        return True
    code, out, _ = run([*GIT, "merge-base", released, at], ctx.repo.env)
    base = out.decode().strip() if not code else ""
    steps = _touching(ctx, [at, *([f"^{base}"] if base else [])], path)
    return any(change.blob == blob and (not blob or change.mode == mode) for step in steps for change in step.changes)


def _is_telling(ctx: "Context", parent: str, path: str, blob: str) -> bool:
    """Does this version of an attributes file change what gitcoord is told?"""
    names = [f"{parent}:{path}", f"{parent}:.gitattributes"] if parent else ["refs/none", "refs/none"]
    old, top, new = (
        found.data if found is not None else b"" for found in ctx.store.read([*names, blob or "refs/none"])
    )
    return len(new) > _LARGE or not same_answers(old, new, top)
