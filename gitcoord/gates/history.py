"""Commits as git reports them: those of a push, the changes of each, the file at a path.

Replace refs are ignored, since one could hide an edit. A rename is two changes: a deletion and a new file.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import check_agent
from gitcoord.gates.judge import Change, CommitChange
from gitcoord.git.commands.objects import commit_stand_in, diff_index_raw, diff_raw, ls_tree_entry, merge_tree
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Iterable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.process import Child

NOTHING = "000000"


def finish_steps(child: Child) -> list[CommitChange]:
    """The commits that a running `git log` prints, parents first; they are parsed while git still searches."""
    try:
        steps = parse_log(child.chunks())
        if child.wait():
            raise CouldNotJudge(
                f"git cannot tell what is new: {child.complaint()}", hints=("git fetch, if history is missing here",)
            )
    finally:
        child.rest()  # git would block on a full pipe
        child.close()
    return steps[::-1]


def parse_log(chunks: Iterable[bytes]) -> list[CommitChange]:
    """The commits in git's order."""
    steps: list[CommitChange] = []
    changes: list[Change] = []
    head, words = "", _words(chunks)
    for word in words:
        word = word.lstrip("\n")
        if word.startswith("\x01"):
            if head:
                steps.append(_step(head, changes))
            head, changes = word[1:], []
        elif word.startswith(":"):
            changes.append(_change(word, next(words, "")))
        elif word:
            raise CouldNotJudge(
                "git log says something that cannot be read", hints=("git config --get-regexp '^log[.]'",)
            )
    if head:
        steps.append(_step(head, changes))
    return steps


def _words(chunks: Iterable[bytes]) -> Iterator[str]:
    """The words between NULs."""
    left = b""
    for chunk in chunks:
        whole, end, left = (left + chunk).rpartition(b"\0")
        if end:
            yield from whole.decode("utf-8", "surrogateescape").split("\0")
    yield left.decode("utf-8", "surrogateescape")


def _step(head: str, changes: list[Change]) -> CommitChange:
    ids, _, trailers = head.partition("\x02")
    oid, *parents = ids.split()
    return CommitChange(oid, tuple(parents), _agent(trailers.partition("\n")[0].strip()), tuple(changes))


def _agent(named: str) -> str:
    """The agent of a trailer; '' where that is no agent's name."""
    try:
        return check_agent(named) if named else ""
    except UsageError:
        return ""


def _change(meta: str, path: str) -> Change:
    """One line of raw output; a merge has a colon, a mode and an id for each parent."""
    parents = len(meta) - len(meta.lstrip(":"))
    fields = meta[parents:].split(" ")
    mode, blob = fields[parents], fields[2 * parents + 1]
    return Change(path, mode, "" if mode == NOTHING else blob)


def merge_changes(ctx: Context, step: CommitChange, index: bytes = b"") -> CommitChange:
    """The step with the merge's own changes: its differences from the tree that git alone makes of the parents.

    A step without an id is the index.
    """
    if len(step.parents) < 2:
        return step
    found = {change.path: change for change in step.changes}
    ours, conflicts, tree = step.parents[0], set[str](), ""
    for theirs in step.parents[1:]:
        code, out, complaint = merge_tree(ctx.repo.env, ours, theirs)
        if code not in (0, 1):
            if "unrelated histories" in complaint:
                return step
            raise CouldNotJudge(f"git cannot merge {ours[:12]} and {theirs[:12]} to compare: {complaint}")
        tree, *names = out.decode("utf-8", "surrogateescape").split("\0")
        conflicts.update(name for name in names if name and code)
        if theirs != step.parents[-1]:
            ours = commit_stand_in(ctx.repo.env, tree, ours, theirs).text
    for change in net_changes(ctx, tree, step.oid) if step.oid else common_changes([diff_index(ctx, tree, index)]):
        found.setdefault(change.path, change)
    for name in conflicts:
        if name not in found:  # the conflict was committed as git left it
            found[name] = Change(name, *file_at(ctx, tree, name))
    return step._replace(changes=tuple(found.values()))


def net_changes(ctx: Context, old: str, new: str) -> list[Change]:
    """The paths that differ between two commits."""
    answer = diff_raw(ctx.repo.env, old, new)
    words = answer.require(f"git cannot compare {old[:12]} with {new[:12]}", hints=("git fetch",)).entries
    return [_change(meta, path) for meta, path in zip(words[::2], words[1::2])]


def diff_index(ctx: Context, parent: str, index: bytes) -> bytes:
    """The changes of the index against a commit, in git's raw form."""
    env = dict(ctx.repo.env)
    if index:
        env[b"GIT_INDEX_FILE"] = index
    return diff_index_raw(env, parent).require("git cannot read the index").out


def staged_id(ctx: Context, path: str, index: bytes) -> str:
    """The blob of this path in the index; '' where there is none."""
    from gitcoord.git.commands.refs import rev_parse  # few changes need it

    env = {**ctx.repo.env, b"GIT_INDEX_FILE": index} if index else ctx.repo.env
    return rev_parse(env, f":{path}").text


def common_changes(diffs: list[bytes]) -> list[Change]:
    """The changes that all of these raw diffs have."""
    found: dict[str, Change] | None = None
    for diff in diffs:
        words = diff.decode("utf-8", "surrogateescape").split("\0")
        these = {path: _change(meta, path) for meta, path in zip(words[::2], words[1::2])}
        found = these if found is None else {path: change for path, change in found.items() if path in these}
    return list((found or {}).values())


def file_at(ctx: Context, tree: str, path: str) -> list[str]:
    """[mode, blob] of the file at a path of a commit or tree."""
    answer = ls_tree_entry(ctx.repo.env, tree, path).require(f"git cannot read {tree[:12]}")
    meta, _, name = answer.text.rstrip("\0").partition("\t")
    if not meta or name != path or meta.split(" ")[1] == "tree":
        return [NOTHING, ""]
    mode, _, blob = meta.split(" ")
    return [mode, blob]
