"""A private index for one commit, and the shared index afterwards.

The private one begins as a copy of the shared index brought back to HEAD, as for `git commit --only`: nobody's staging
is in it, and sparse checkouts and git's notes about unchanged files stay. What happens to it touches nobody.
"""

from __future__ import annotations

from gitcoord.base.errors import Refused, StoreError, UsageError, refused
from gitcoord.base.names import ROOT, Oid, ancestors, quote
from gitcoord.git.commands.objects import empty_tree
from gitcoord.git.commands.worktrees import (
    add_files,
    ls_files,
    read_tree,
    staged_raw,
    update_index,
    with_index,
    write_tree,
)
from gitcoord.git.files import list_files, remove_file
from gitcoord.git.process import Env
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.worktrees.index import IndexLock, copy_index

GITLINK = "160000"
SCRATCH = "gitcoord-new-"  # begins the names of files that are there while a commit is made


class StagedFile(NamedTuple):
    """One changed file: what it was and what it is. A mode of zeros: there was, or is, none."""

    path: str
    was: str
    was_oid: str
    mode: str
    oid: str


class PrivateIndex:
    """An index that only this process and the hooks it runs know."""

    def __init__(self, ctx: Context, base: Oid | None) -> None:
        """An index as HEAD is; `base` None on an unborn branch."""
        self._ctx = ctx
        self.path = f"{ctx.repo.git_dir}/{SCRATCH}index-{ctx.host.random()[:12]}"
        self._env = with_index(ctx.repo.env, self.path)
        self.base = base or empty_tree(ctx.repo.env)
        try:
            copied = base is not None and copy_index(shared_index(ctx), self.path)
            self._read(base, reset=copied)
        except BaseException:
            self.remove()
            raise

    def _read(self, base: Oid | None, *, reset: bool) -> None:
        read_tree(self._env, base or "", reset=reset).require("git read-tree failed", StoreError)

    def _put(self, files: Iterable[tuple[str, str, str]]) -> None:
        update_index(self._env, _info(files), whole=True).require("git update-index failed", StoreError)

    def write_tree(self) -> str:
        return write_tree(self._env, whole=True).require("git write-tree failed", StoreError).text

    def add(self, paths: list[str], *, force: bool) -> None:
        """Take over what the work tree has of these paths: content, modes, links, and what is gone."""
        specs = [f":(top,literal){'' if path == ROOT else path}" for path in paths]
        answer = add_files(self._env, specs, force=force)
        if answer.code:
            raise _why_not(answer.complaint)

    def changes(self) -> list[StagedFile]:
        return changed(self._env, self.base)

    def put_back(self, rows: list[StagedFile]) -> None:
        """Put these files back as they were."""
        self._put((row.path, row.was, row.was_oid) for row in rows)

    def move(self, base: Oid | None, rows: list[StagedFile]) -> bool:
        """The same changes on top of another commit; False where they are not the same there."""
        self.base = base or empty_tree(self._ctx.repo.env)
        try:
            self._read(base, reset=True)
            self._put((row.path, row.mode, row.oid) for row in rows)
        except StoreError:
            return False  # a directory took the place of a file, say
        return self.changes() == rows

    def remove(self) -> None:
        remove_file(self.path)
        remove_file(self.path + ".lock")


def _why_not(complaint: str) -> Refused | UsageError | StoreError:
    """git add's words as ours. It was asked in English."""
    lines = [line for line in complaint.split("\n") if line and not line.startswith(("hint:", "warning:"))]
    first = lines[0].replace(":(top,literal)", "") if lines else "git add failed"
    if "ignored by one of your .gitignore files" in first:
        names = ", ".join(lines[1:4])
        return refused("ignored", f"{names} is ignored: nothing was committed", "commit it all the same: -f")
    if "did not match any files" in first or "beyond a symbolic link" in first:
        return UsageError(first)
    if "is in submodule" in first:
        return refused("submodule", first, "commit inside the submodule")
    if "sparse-checkout" in first:
        names = ", ".join(lines[1:4])
        return UsageError(f"outside of the sparse checkout: {names}", hints=("git sparse-checkout add <directory>",))
    return StoreError(f"git add failed: {first}", hints=("nothing was committed",))


def sweep(git_dir: str) -> None:
    """Remove what a commit that was killed left behind. The caller holds the queue of those who commit here."""
    for name in list_files(git_dir):
        if name.startswith(SCRATCH):
            remove_file(f"{git_dir}/{name}")


def shared_index(ctx: Context) -> str:
    return f"{ctx.repo.git_dir}/index"


def changed(env: Env, base: str) -> list[StagedFile]:
    """The files in which an index differs from a commit or tree, without those only intended to be added (`add -N`)."""
    words = staged_raw(env, base).require("git diff-index failed", StoreError).entries
    rows = []
    for meta, path in zip(words[::2], words[1::2]):
        was, mode, was_oid, oid, _ = meta.lstrip(":").split(" ")
        rows.append(StagedFile(path, was, was_oid, mode, oid))
    return rows


def refuse_conflicts(ctx: Context, named: set[str]) -> None:
    """Files that somebody's merge left in pieces are nobody's to commit."""
    answer = ls_files(ctx.repo.env, tree=ctx.repo.worktree, show="unmerged").require("git ls-files failed", StoreError)
    pieces = sorted({row.partition("\t")[2] for row in answer.entries} - {""})
    caught = [path for path in pieces if is_named(named, path)]
    if caught:
        raise refused("conflict", f"{quote(caught[0])} has conflicts: nothing was committed", "git status")


def is_named(named: set[str], path: str) -> bool:
    """Return whether the file, or a directory above it, is named."""
    return path in named or any(above in named for above in ancestors(path))


def follow(ctx: Context, base: str, rows: list[StagedFile]) -> tuple[bool, list[str]]:
    """Let the shared index follow the commit, under git's own lock: of the committed files only, and of these only where
    nobody staged something else. Whether that could be done, and the files of which something else stays staged.
    """
    new = f"{ctx.repo.git_dir}/{SCRATCH}index-{ctx.host.random()[:12]}"
    try:
        with IndexLock(shared_index(ctx)) as lock:
            if not lock.take(ctx.host.pause):
                return False, []
            copy_index(shared_index(ctx), new)
            staged = _advance(with_index(ctx.repo.env, new), base, rows)
            lock.replace(new)
            return True, staged
    except (StoreError, OSError):
        return False, []  # the commit stands; the caller reports it
    finally:
        remove_file(new)


def _advance(env: Env, base: str, rows: list[StagedFile]) -> list[str]:
    staged = {row.path: (row.mode, row.oid) for row in changed(env, base)}
    behind = [row for row in rows if row.path not in staged]
    data = _info((row.path, row.mode, row.oid) for row in behind)
    update_index(env, data).require("git update-index failed", StoreError)
    return [row.path for row in rows if staged.get(row.path, (row.mode, row.oid)) != (row.mode, row.oid)]


def _info(files: Iterable[tuple[str, str, str]]) -> bytes:
    """Input of `update-index --index-info`: deletions first, since a directory may take the place of a file."""
    rows = sorted((set(mode) != {"0"}, path, mode, oid) for path, mode, oid in files)
    lines = "".join(f"{mode if there else 0} {oid}\t{path}\0" for there, path, mode, oid in rows)
    return lines.encode("utf-8", "surrogateescape")
