"""A refused move of the branch that is checked out, by a fast-forward, a reset or `checkout -B`: git has written index and work tree before
it asks whether the branch may move.

The changes are put back where that cannot touch other work: all of them, or none. Otherwise the tip is noted, and
pre-commit refuses its content until it has landed or is put back (docs/adr/0047).
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, Refusal
from gitcoord.base.names import printable
from gitcoord.gates.commit_note import NOTED_MERGES
from gitcoord.gates.history import common_changes, diff_index, net_changes
from gitcoord.gates.judge import Change
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.commands.refs import update_ref
from gitcoord.git.commands.worktrees import apply_stash, changed_files, differing_files, switch_tree
from gitcoord.git.files import (
    create_directory,
    exists,
    is_directory,
    list_files,
    lstat,
    read_file,
    remove_file,
    rename,
    write_file,
)
from gitcoord.git.host import TICK_NS, getppid, isatty, started_at
from gitcoord.git.operations import Operation, operation
from gitcoord.git.process import Environ
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Iterator
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
_FORWARD, _FILES, _INDEX = (
    "forward",
    "files",
    "index",
)  # a fast-forward; a move to any commit; the same, where files stay
_ASIDE = "MERGE_AUTOSTASH"
_MOST = 20  # noted tips
_SHOWN = 5
_SUBMODULE = "160000"
_LARGEST = 1 << 26


class Cleaned(NamedTuple):
    """The outcome after a refusal. `why`: the reason why nothing was put back, '' if it was; `paths`: the files that git wrote; `hints`: how
    to put back what was not."""

    new: str
    why: str
    paths: list[str]
    hints: tuple[str, ...]
    lost: str  # in words: what git has changed besides, and nothing brings back; '' for nothing


def clean_up(ctx: Context, environ: Environ, moves: list[RefUpdate]) -> Cleaned | None:
    """Put back the files that a refused move wrote, else note its tip. None for other commands."""
    start, words = _parent()
    kind = _written_by(words)
    move = _move_of_tree(ctx, kind, moves) if start and kind and ctx.repo.worktree else None
    if move is None or not _existed(ctx, move.new, start):
        return None
    if kind == _FORWARD and is_ancestor(ctx.repo.env, move.old, move.new) is not True:
        return None
    changes = net_changes(ctx, move.old, move.new)
    if not changes:
        return None
    why = _not_as_written(ctx, environ, move, changes, start if kind != _INDEX else 0)
    if not why:
        answer = switch_tree(ctx.repo.env, move.new, move.old, ctx.repo.worktree, files=kind != _INDEX)
        why = answer.complaint if answer.code else ""
    if why and kind != _INDEX:
        _note(ctx, move)
    aside = _bring_back(ctx, tries=not why) if kind == _FORWARD else ()
    hints = ("the index is that of the other commit; put it back: git reset",) if kind == _INDEX else _hints(ctx, move)
    lost = "what was staged is staged no more; the files are as they were" if kind == _INDEX else ""
    lost = "reset --hard discards what is not committed before anybody is asked" if "--hard" in words else lost
    return Cleaned(move.new, why, [change.path for change in changes], (*hints, *aside) if why else aside, lost)


def _bring_back(ctx: Context, *, tries: bool) -> tuple[str, ...]:
    """Bring back what `--autostash` put aside, as git does at the end of a merge; it dies at a refusal. A hint where that is left to do."""
    file = f"{ctx.repo.git_dir}/{_ASIDE}"
    oid = read_file(file, 100).decode("ascii", "replace").strip()
    if not oid:
        return ()
    if tries and not apply_stash(ctx.repo.env, oid, ctx.repo.worktree).code:
        remove_file(file)
        return ()
    return (f"what you had not committed was put aside; bring it back: git stash apply {oid[:12]}",)


# --- which command is it, and is all of it as that left it?


def _written_by(words: list[str]) -> str:
    """The kind of what a git command of these words has written before it moves a branch; '' for nothing, or for another command."""
    verb = _verb(words)
    if verb in ("merge", "pull"):
        return "" if any(option in words for option in _OTHER) else _FORWARD
    if verb == "reset":
        written = _FILES if {"--hard", "--keep", "--merge"} & {*words} else _INDEX
        return "" if "--soft" in words else written
    return _FILES if verb in ("checkout", "switch") else ""


def _move_of_tree(ctx: Context, kind: str, moves: list[RefUpdate]) -> RefUpdate | None:
    """The move of this work tree from the commit of HEAD, which stays. `checkout -B` may move another branch than the one checked out."""
    here = read_file(f"{ctx.repo.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
    old = ctx.store.target("HEAD")
    for move in moves:
        if old and move.new and (here == f"ref: {move.ref}" or kind == _FILES):
            return RefUpdate(move.ref, old, move.new)
    return None


def restore_renamed(ctx: Context) -> tuple[str, str, bool] | None:
    """Bring back what `git branch -m` took away before this refusal, at which git dies: the log of the old name, and where another
    branch was to take the new name, the old branch itself. Gives its name and tip, and whether it is back; None if it is there."""
    _, words = _parent()
    log = f"{ctx.repo.common_dir}/logs/refs/.tmp-renamed-log"
    last = read_file(log, _LARGEST).rstrip(b"\n").rpartition(b"\n")[2].split(b" ")
    if _verb(words) != "branch" or not {"-m", "-M", "--move"} & {*words} or len(last) < 2:
        return None
    names = [word for word in words[words.index("branch") + 1 :] if word and not word.startswith("-")]
    here = read_file(f"{ctx.repo.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
    ref = f"refs/heads/{names[0]}" if len(names) == 2 else here.removeprefix("ref: ")
    if not exists(f"{ctx.repo.common_dir}/logs/{ref}"):
        create_directory(f"{ctx.repo.common_dir}/logs/{ref}".rpartition("/")[0])
        rename(log, f"{ctx.repo.common_dir}/logs/{ref}")
    tip = last[1].decode("ascii", "replace")
    if ctx.store.resolve([ref])[0] is not None:
        return None
    code, _, _ = update_ref(ctx.repo, ctx.notes, ref, tip, "0" * len(tip), "branch: not renamed")
    return ref.removeprefix("refs/heads/"), tip, not code


def refused_pick(git_dir: str) -> Operation | None:
    """How to end the refused commit of a `git revert` or `git cherry-pick`, whose result git leaves staged; None for other commands.

    Git wants a clean index before it picks, so `reset --merge` puts back what it wrote, and nothing else.
    """
    gits = [words for _, words in _gits()]
    if gits and _verb(gits[0]) == "commit":  # with an editor git starts it to make the commit
        gits = gits[1:]
    words = gits[0] if gits else []
    name = _verb(words)
    if name not in ("revert", "cherry-pick") or "--ff" in words:
        return None
    found = operation(name)
    if name == "cherry-pick":
        return found
    commit = "git commit" if isatty(2) else "git commit --no-edit"  # git keeps the message, and no sign of the revert
    if not is_directory(f"{git_dir}/sequencer"):
        return Operation(name, commit, "git reset --merge")
    return found._replace(go_on=f"{commit}, then {found.go_on}")


def _parent() -> tuple[int, list[str]]:
    """The start time of the git process that runs this hook, and its words after `git`; none if unknown."""
    return next(_gits(), (0, []))


def _gits() -> Iterator[tuple[int, list[str]]]:
    """The git processes around this hook, as `_parent` gives the innermost."""
    pid = getppid()
    for _ in range(4):
        name, _, rest = read_file(f"/proc/{pid}/stat").partition(b"(")[2].rpartition(b") ")
        if not rest:
            break
        if name == b"git":
            words = read_file(f"/proc/{pid}/cmdline").decode("utf-8", "surrogateescape").split("\0")
            yield started_at(pid), words[1:]
        pid = int(rest.split()[1])


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
    """The reason why index and files may hold more than git wrote since `start`; '' if they do not. 0: it wrote the index alone."""
    if environ.get(b"GIT_INDEX_FILE") or exists(f"{ctx.repo.git_dir}/index.lock"):
        return "another process may be writing the index"
    if any(change.mode == _SUBMODULE for change in changes):
        return "a submodule changed"
    paths = {change.path for change in changes}
    other = {change.path for change in common_changes([diff_index(ctx, move.new, b"")])}
    if start:
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
    """A refused move from `old` to `new`, in the work tree whose git directory has this name."""

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
            move = RefUpdate("", row.old, row.new)
            what = "merge of" if _is_forward(ctx, move) else "move to"
            message = f"{printable(', '.join(found[:_SHOWN]))}{more}: left by a {what} {row.new[:12]} that was refused"
            refusal = Refusal("refused-merge", message, hints=_hints(ctx, move))
    if over:
        _write(ctx, [row for row in rows if row not in over])
    return refusal


def drop_ended(ctx: Context) -> None:
    """Drop the notes of this work tree whose paths are all as in HEAD again: what is made there from now on is one's own."""
    head = ctx.store.target("HEAD")
    if head and ctx.repo.worktree:
        find_leftovers(ctx, b"", [head])


def _changes_of(ctx: Context, row: _Noted, heads: list[str]) -> list[Change]:
    """The changes that the tip brought; none where it has landed, or is gone."""
    try:
        landed = any(is_ancestor(ctx.repo.env, row.new, head) for head in heads)
        if landed and not is_ancestor(ctx.repo.env, row.new, row.old):  # a move back goes to what has landed before
            return []
        return net_changes(ctx, row.old, row.new)
    except GitcoordError:
        return []


def _is_forward(ctx: Context, move: RefUpdate) -> bool:
    try:
        return is_ancestor(ctx.repo.env, move.old, move.new) is True
    except GitcoordError:
        return False


def _hints(ctx: Context, move: RefUpdate) -> tuple[str, ...]:
    new = move.new[:12]
    back = f"put it back; git stops where a file holds something of yours: git read-tree -m -u {new} HEAD"
    return (back, f"or, once the merge is allowed, make it: git merge {new}") if _is_forward(ctx, move) else (back,)
