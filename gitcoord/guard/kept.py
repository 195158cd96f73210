"""Content of files before and after a command that changed them, kept under refs that plain git reads."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import KEPT
from gitcoord.git.commands.worktrees import read_tree, restore_file, update_index, with_index, write_tree
from gitcoord.git.files import (
    close,
    is_executable,
    is_link,
    make_directory,
    open_emptied,
    random_hex,
    read_if_file,
    remove_file,
    write_all,
)
from gitcoord.git.store import Create, Delete
from gitcoord.ledger.context import Context
from gitcoord.startup.namedtuple import NamedTuple

MAX_REFS = 400  # two for each incident; the oldest are deleted


class Kept(NamedTuple):
    before: str = ""  # a ref to a commit with the files as they were; '' where none could be kept
    after: str = ""
    commit: str = ""  # of `before`


def keep(ctx: Context, agent: str, before: dict[str, str], after: dict[str, str]) -> Kept:
    """Keep these blobs, by path. Nothing is raised: what cannot be kept is told to be lost."""
    try:
        name = f"{KEPT}{ctx.host.wall()}-{agent}-{random_hex(2)}"
        old, new = _commit(ctx, agent, before), _commit(ctx, agent, after)
        ctx.local.swap([Create(f"{name}/before", old), Create(f"{name}/after", new)])
        refs = ctx.local.list_refs(KEPT)
        if len(refs) > MAX_REFS:
            ctx.local.swap([Delete(ref, refs[ref]) for ref in sorted(refs)[: len(refs) - MAX_REFS]])
    except (GitcoordError, OSError):
        return Kept()
    return Kept(f"{name}/before", f"{name}/after", old)


def _commit(ctx: Context, agent: str, blobs: dict[str, str]) -> str:
    """A commit with these files and nothing else, by a private index."""
    index = ctx.scratch(f"guard/index.{random_hex(6)}")
    env = with_index(ctx.repo.env, index)
    ctx.local.flush()
    try:
        read_tree(env, "").require("git cannot make an index")
        top = ctx.repo.worktree
        modes = {path: "100755" if is_executable(f"{top}/{path}") else "100644" for path in blobs}
        rows = "".join(f"{modes[path]} {blob}\t{path}\0" for path, blob in blobs.items() if blob)
        update_index(env, rows.encode("utf-8", "surrogateescape"), whole=True).require("git cannot fill an index")
        tree = write_tree(env, whole=True).require("git cannot write a tree").text
    finally:
        remove_file(index)
    who = f"gitcoord <kept@gitcoord.invalid> {ctx.host.wall()} +0000"
    return ctx.local.write(
        "commit", f"tree {tree}\nauthor {who}\ncommitter {who}\n\nkept from a command of {agent}\n".encode()
    )


def put_back(ctx: Context, path: str, before: str, after: str, *, clean: bool) -> bool:
    """Put the content before back, if the file still is what the command left. `clean`: it equalled HEAD."""
    file = f"{ctx.repo.worktree}/{path}"
    data = None if is_link(file) else read_if_file(file)
    present = ctx.local.write("blob", data) if data is not None else ""
    if present != after or is_link(file):
        return False
    if clean:
        return not restore_file(ctx.repo.env, ctx.repo.worktree, path).code
    if not before:
        return False
    found = ctx.local.read([before])[0]
    if found is None:
        return False
    try:
        make_directory(file.rpartition("/")[0])
        _write_in_place(file, found.data)
    except OSError:
        return False
    return True


def _write_in_place(file: str, data: bytes) -> None:
    """With the mode that the file has; a new one where the command deleted it."""
    fd = open_emptied(file)
    try:
        write_all(fd, data)
    finally:
        close(fd)
