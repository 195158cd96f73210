"""The address of a remote: as it is recorded in the ledger, and compared with others."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote
from gitcoord.git.commands.refs import common_dir
from gitcoord.git.commands.remotes import remote_url
from gitcoord.git.commands.worktrees import without_location
from gitcoord.ledger.context import Context


def url_of(ctx: Context, name: str) -> str:
    answer = remote_url(ctx.repo.env, name)
    if answer.code or name.startswith("-"):
        raise UsageError(f"{quote(name[:80])} is not a remote of this clone", hints=("those it has: git remote -v",))
    return without_secrets(directory(ctx, answer.text.strip()))


def directory(ctx: Context, url: str) -> str:
    """The whole path of a repository on this machine: a relative address means something in this clone alone. Others stay."""
    path = url if url.startswith("/") else f"{ctx.repo.worktree or ctx.repo.git_dir}/{url}"
    found = common_dir(without_location(ctx.repo.env), path) if "://" not in url else None
    return found.text if found is not None and not found.code else url


def without_secrets(url: str) -> str:
    """The address without user name, password or token: it is recorded in the ledger, which everybody reads."""
    scheme, sep, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    if not sep or "@" not in host:
        return url
    user, _, host = host.rpartition("@")
    kept = f"{user.partition(':')[0]}@" if scheme not in ("http", "https") else ""
    return f"{scheme}://{kept}{host}{slash}{path}"


def place(url: str) -> str:
    """Host and path of an address, without scheme, user, port and '.git'."""
    scheme, sep, rest = url.partition("://")
    if not sep:
        host, colon, path = url.partition(":")
        rest = f"{host}/{path.lstrip('/')}" if colon and "/" not in host else url
    elif scheme == "file":
        rest = rest[rest.index("/") :] if "/" in rest else rest
    host, slash, path = rest.partition("/")
    host = host.rpartition("@")[2].partition(":")[0].lower()
    return f"{host}{slash}{path}".rstrip("/").removesuffix(".git").rstrip("/")


def by_ssh(ctx: Context, name: str) -> bool:
    """Return whether this remote is reached by ssh."""
    url = url_of(ctx, name)
    scheme, sep, _ = url.partition("://")
    host, colon, _ = url.partition(":")
    return scheme in ("ssh", "git+ssh", "ssh+git") if sep else bool(colon) and "/" not in host
