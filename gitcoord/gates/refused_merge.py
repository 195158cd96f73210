"""A refused fast-forward: git has written index and work tree before it asks whether the branch may move.

The merge's changes are put back where that cannot touch other work: all of them, or none. Otherwise the tip is noted, and
pre-commit refuses its content until it has landed or is put back (docs/adr/0047).
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, Refusal
from gitcoord.base.names import printable
from gitcoord.gates.commit_note import NOTED_MERGES
from gitcoord.gates.history import common_changes, diff_index, net_changes
from gitcoord.gates.judge import Change
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.commands.worktrees import changed_files, differing_files, switch_tree
from gitcoord.git.files import exists, list_files, lstat, read_file, remove_file, write_file
from gitcoord.git.host import TICK_NS, getppid, started_at
from gitcoord.git.process import Environ
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.context import Context
from gitcoord.startup.namedtuple import NamedTuple

_VALUES = (
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
)
_OTHER = ("--continue", "--abort", "--quit", "--squash")  # `git merge --continue` commits what a person resolved
_MOST = 20  # noted tips
_SHOWN = 5
_SUBMODULE = "160000"


class Cleaned(NamedTuple):
    """The outcome after a refusal. `why`: the reason why nothing was put back, '' if it was; `paths`: the files that the merge wrote."""

    new: str
    why: str
    paths: list[str]


def clean_up(ctx: Context, environ: Environ, moves: list[RefUpdate]) -> Cleaned | None:
    """Put back the files that a refused fast-forward wrote, else note its tip. None for other commands."""
    here = read_file(f"{ctx.repo.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
    move = next((move for move in moves if here == f"ref: {move.ref}" and move.old and move.new), None)
    start = _merge_start() if move is not None and ctx.repo.worktree else 0
    if move is None or not start or not _existed(ctx, move.new, start):
        return None
    if is_ancestor(ctx.repo.env, move.old, move.new) is not True:
        return None
    changes = net_changes(ctx, move.old, move.new)
    if not changes:
        return None
    why = _not_as_written(ctx, environ, move, changes, start)
    if not why:
        answer = switch_tree(ctx.repo.env, move.new, move.old, ctx.repo.worktree)
        why = answer.complaint if answer.code else ""
    if why:
        _note(ctx, move)
    return Cleaned(move.new, why, [change.path for change in changes])


# --- is it a fast-forward, and is all of it as the merge left it?


def was_reset() -> bool:
    """Return whether the git process that runs this hook is `git reset --hard`, which has written index and files already."""
    _, words = _parent()
    return _verb(words) == "reset" and "--hard" in words


def _merge_start() -> int:
    """The start time of the git process that runs this hook, if it merges; 0 for another one, or if unknown."""
    start, words = _parent()
    return start if _verb(words) in ("merge", "pull") and not any(option in words for option in _OTHER) else 0


def _parent() -> tuple[int, list[str]]:
    """The start time of the git process that runs this hook, and its words after `git`; none if unknown."""
    pid = getppid()
    for _ in range(4):
        name, _, rest = read_file(f"/proc/{pid}/stat").partition(b"(")[2].rpartition(b") ")
        if not rest:
            break
        if name == b"git":
            words = read_file(f"/proc/{pid}/cmdline").decode("utf-8", "surrogateescape").split("\0")
            return started_at(pid), words[1:]
        pid = int(rest.split()[1])
    return 0, []


def _verb(words: list[str]) -> str:
    """The command among these words after `git`."""
    rest = iter(words)
    for word in rest:
        if word in _VALUES:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def _existed(ctx: Context, oid: str, start: int) -> bool:
    """Return whether the commit was there before that process: then the process did not make it."""
    objects = f"{ctx.repo.common_dir}/objects"
    loose = f"{objects}/{oid[:2]}/{oid[2:]}"
    files = [loose] if exists(loose) else [f"{objects}/pack/{name}" for name in list_files(f"{objects}/pack")]
    return all(lstat(file).st_ctime_ns < start + TICK_NS for file in files if file == loose or file.endswith(".pack"))


def _not_as_written(ctx: Context, environ: Environ, move: RefUpdate, changes: list[Change], start: int) -> str:
    """The reason why index and files may hold more than the merge wrote; '' if they do not."""
    if environ.get(b"GIT_INDEX_FILE") or exists(f"{ctx.repo.git_dir}/index.lock"):
        return "another process may be writing the index"
    if any(change.mode == _SUBMODULE for change in changes):
        return "a submodule changed"
    paths = {change.path for change in changes}
    other = {change.path for change in common_changes([diff_index(ctx, move.new, b"")])}
    other |= set(differing_files(ctx.repo.env, ctx.repo.worktree).require("git cannot compare the files").entries)
    other |= {change.path for change in changes if not _was_written(ctx, change, start)}
    found = sorted(paths & other)
    return f"{printable(found[0])} may hold something of yours" if found else ""


def _was_written(ctx: Context, change: Change, start: int) -> bool:
    """Return whether the file changed after that process began, within a tick of the file clock."""
    try:
        found = lstat(f"{ctx.repo.worktree}/{change.path}")
    except OSError:
        return not change.blob
    return bool(change.blob) and found.st_ctime_ns >= start - TICK_NS // 2


# --- the note


class _Noted(NamedTuple):
    """A refused fast-forward from `old` to `new`, in the work tree whose git directory has this name."""

    tree: str
    old: str
    new: str


def _all_noted(ctx: Context) -> list[_Noted]:
    lines = read_file(f"{ctx.repo.scratch}/{NOTED_MERGES}").decode("utf-8", "surrogateescape").split("\n")
    return [_Noted(*words) for line in lines if len(words := line.split(" ")) == 3]


def _tree(ctx: Context) -> str:
    return ctx.repo.git_dir.rpartition("/")[2]


def _note(ctx: Context, move: RefUpdate) -> None:
    row = _Noted(_tree(ctx), move.old, move.new)
    _write(ctx, [*(other for other in _all_noted(ctx) if other != row), row])


def _write(ctx: Context, rows: list[_Noted]) -> None:
    file = ctx.scratch(NOTED_MERGES)
    if rows:
        write_file(file, "".join(" ".join(row) + "\n" for row in rows[-_MOST:]).encode("utf-8", "surrogateescape"))
    else:
        remove_file(file)


def find_leftovers(ctx: Context, index: bytes, heads: list[str]) -> Refusal | None:
    """The refusal of a commit of content that a noted tip brought. Notes of tips that landed or were put back are dropped."""
    rows = _all_noted(ctx)
    staged = set(common_changes([diff_index(ctx, heads[0], index)])) if heads else set()
    refusal = None
    over = []
    for row in rows:
        if row.tree != _tree(ctx) or not heads:
            continue
        changes = _changes_of(ctx, row, heads)
        left = set(changed_files(ctx.repo.env, heads[0], ctx.repo.worktree).entries) & {each.path for each in changes}
        if not left:
            over.append(row)
        found = sorted(each.path for each in staged & set(changes))
        if found:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            message = (
                f"{printable(', '.join(found[:_SHOWN]))}{more}: left by a merge of {row.new[:12]} that was refused"
            )
            refusal = Refusal("refused-merge", message, hints=hints(row.new))
    if over:
        _write(ctx, [row for row in rows if row not in over])
    return refusal


def _changes_of(ctx: Context, row: _Noted, heads: list[str]) -> list[Change]:
    """The changes that the tip brought; none where it has landed, or is gone."""
    try:
        landed = any(is_ancestor(ctx.repo.env, row.new, head) for head in heads)
        return [] if landed else net_changes(ctx, row.old, row.new)
    except GitcoordError:
        return []


def hints(new: str) -> tuple[str, ...]:
    return (
        f"put it back; git stops where a file holds something of yours: git read-tree -m -u {new[:12]} HEAD",
        f"or, once the merge is allowed, make it: git merge {new[:12]}",
    )
