"""Symbolic refs, as git follows them: an update of one moves the ref at the end of the chain."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import RefName, printable
from gitcoord.git.files import close, is_symlink, lstat, open_to_read, read, readlink
from gitcoord.git.repo import Repo

_MOST = 5  # git's own limit
_NONE = (2, 20, 21)  # no such file, or a directory of that name: a plain ref is packed, or not there


def follow(repo: Repo, ref: RefName, *, files: bool = True) -> list[RefName]:
    """The ref, and the names to which it leads; the last one is no alias, and may not exist.

    `files`: refs are files, which are read here; else git is asked. CouldNotJudge where the chain cannot be followed.
    """
    chain = [ref]
    while target := _target(repo, chain[-1]) if files else _asked(repo, chain[-1]):
        valid = target == "HEAD" or (target.startswith("refs/") and not {"..", "."} & set(target.split("/")))
        if not valid or len(chain) > _MOST:
            raise CouldNotJudge(
                f"{printable(ref[:200])} is a symbolic ref that leads nowhere",
                hints=("the server's administrator fixes it: git symbolic-ref <name> <target>",),
            )
        chain.append(target)
    return chain


def branch_here(repo: Repo, *, files: bool = True) -> str:
    """The full name of the branch that is checked out; '' where HEAD is detached. `files`: see `follow`."""
    found = follow(repo, "HEAD", files=files)[-1]
    return "" if found == "HEAD" else found


def _target(repo: Repo, ref: RefName) -> str:
    """The target of a symbolic ref; '' for any other ref. git writes it as text; very old ones are links of the file system."""
    path = f"{repo.common_dir if ref.startswith('refs/') else repo.git_dir}/{ref}"
    try:
        if is_symlink(lstat(path)):
            link = readlink(path)
            if link.startswith("refs/"):
                return link
        fd = open_to_read(path, waits=False)
        try:
            data = read(fd, 4096)
        finally:
            close(fd)
    except OSError as error:
        if error.errno in _NONE:
            return ""
        raise CouldNotJudge(f"{printable(ref[:200])} cannot be read: {error.strerror}") from None
    text = data.decode("utf-8", "surrogateescape")
    return (text[4:].strip() or "?") if text.startswith("ref:") else ""


def _asked(repo: Repo, ref: RefName) -> str:
    from gitcoord.git.commands.refs import symbolic_ref

    answer = symbolic_ref(repo.env, ref)
    if answer.code > 1:
        raise CouldNotJudge(f"{printable(ref[:200])} cannot be read: {answer.complaint}")
    return answer.text
