"""Facts about the work that is given back: from where it is judged, what it changed, what has landed, what is only here."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import is_oid
from gitcoord.claims.facts import Covering
from gitcoord.claims.model import format_record
from gitcoord.git.process import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.ledger.world import Files

GIT = ["git", "--no-replace-objects"]


def changed(ctx: Context, snapshot: Snapshot, base: str, commit: str, paths: list[str]) -> dict[str, Files]:
    """Below each path, the files that differ between `base` (the merge base after a rebase) and `commit`."""
    covering = Covering(snapshot, paths)
    argv = [*GIT, "diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev"]
    argv += ["--ignore-submodules=none"]
    specs = ["--", *covering.pathspecs]
    if base:
        code, out, complaint = run([*argv, "--merge-base", base, commit, *specs], ctx.repo.env)
        if code:  # no common ancestor
            code, out, complaint = run([*argv, base, commit, *specs], ctx.repo.env)
    else:
        code, empty, complaint = run(["git", "hash-object", "-t", "tree", "/dev/null"], ctx.repo.env)
        code, out, complaint = run([*argv, empty.decode().strip(), commit, *specs], ctx.repo.env)
    if code:
        raise CouldNotJudge(
            f"git cannot compare {base[:12]} with {commit[:12]}: {complaint}",
            hints=("git fetch, if history is missing here",),
        )
    files = {row[0]: row for row in _parse_raw(out)}
    return {path: [files[name] for name in covering.files(path, files)] for path in paths}


def since(ctx: Context, snapshot: Snapshot, base: str, commit: str) -> str:
    """The commit from which `commit` is judged for a claim that was made on `base`: one that it contains.

    Where the base was rewritten, that is what both have in common. Where it is not here, the trunk must tell: from where the
    commit left the trunk. Once it has landed nobody can tell any more; then all that lies there counts, since to record too
    little would let it be undone.
    """
    if not base:
        return ""
    code, out, _ = run([*GIT, "merge-base", base, commit], ctx.repo.env)
    if code in (0, 1):
        return out.decode().strip() or base  # nothing in common: they are compared as they are
    left = _left_trunk(ctx, snapshot, commit)
    return left if left != commit else ""


def usual_remote(ctx: Context, snapshot: Snapshot) -> str:
    """The remote of the trunk: its own, else origin, else the only one; '' where there is none."""
    code, out, _ = run([*GIT, "config", "-z", "--get-regexp", r"^(remote\..*\.url|branch\..*\.remote)$"], ctx.repo.env)
    pairs = [entry.partition("\n") for entry in out.decode("utf-8", "surrogateescape").split("\0")] if not code else []
    remotes = {key[len("remote.") : -len(".url")]: None for key, _, _ in pairs if key.startswith("remote.")}
    upstream = [value for key, _, value in pairs if key == f"branch.{format_record(snapshot.state).sync}.remote"]
    for name in (*upstream[-1:], "origin"):
        if name in remotes:
            return name
    return next(iter(remotes)) if len(remotes) == 1 else ""


def trunk_tips(ctx: Context, snapshot: Snapshot) -> list[str]:
    """The commits of the trunk here and at its remote, as this clone last saw it."""
    name = format_record(snapshot.state).sync
    remote = usual_remote(ctx, snapshot)
    refs = [f"refs/heads/{name}", *([f"refs/remotes/{remote}/{name}"] if remote else [])]
    return list(dict.fromkeys(oid for oid in map(ctx.store.target, refs) if oid))


def _left_trunk(ctx: Context, snapshot: Snapshot, commit: str) -> str:
    """The last commit of the trunk that `commit` builds on: itself once it has landed; '' where there is none."""
    if ctx.store.target(f"refs/heads/{format_record(snapshot.state).sync}") == commit:
        return commit  # the usual case, without a process
    found = ""
    for tip in trunk_tips(ctx, snapshot):
        code, out, _ = run([*GIT, "merge-base", tip, commit], ctx.repo.env)
        left = out.decode().strip() if not code else ""
        if not found or (left and found in within(ctx, [left], [found])):
            found = left or found
    return found


def unlanded(ctx: Context, snapshot: Snapshot, commit: str, paths: list[str]) -> dict[str, tuple[str, Files]]:
    """Below each path, what `commit` has that the trunk does not, and since which commit."""
    base = _left_trunk(ctx, snapshot, commit)
    if not base or base == commit:
        return {}
    return {path: (base, files) for path, files in changed(ctx, snapshot, base, commit, paths).items() if files}


def within(ctx: Context, places: list[str], commits: list[str]) -> list[str]:
    """Those of the commits that all of these places contain. What git does not have is in none of them."""
    named = [commit for commit in commits if is_oid(commit)]
    there = [commit for commit, oid in zip(named, ctx.store.resolve(named)) if oid is not None]
    outside: set[str] = set()
    for place in places if there else ():
        code, out, complaint = run(
            [*GIT, "rev-list", "--stdin"], ctx.repo.env, "\n".join([*there, f"^{place}", ""]).encode()
        )
        if code:
            raise CouldNotJudge(f"git cannot tell what {place} contains: {complaint}")
        outside.update(out.decode().split())
    return [commit for commit in there if commit not in outside]


def _parse_raw(data: bytes) -> list[list[str]]:
    """[path, new mode, new blob] of each changed file; '' for the blob of a deleted one."""
    words = data.decode("utf-8", "surrogateescape").split("\0")
    files = []
    for meta, path in zip(words[::2], words[1::2]):
        _, mode, _, blob, _ = meta.lstrip(":").split(" ")
        files.append([path, mode, "" if set(blob) == {"0"} else blob])
    return files


def lacking(ctx: Context, commits: list[str]) -> list[str]:
    """Those of the commits that, as far as this clone knows, the remote that decides does not have."""
    argv = [*GIT, "rev-list", *commits, "--not", f"--remotes={ctx.remote}"]
    code, out, complaint = run(argv, ctx.repo.env)
    if code:
        raise CouldNotJudge(f"git cannot tell what '{ctx.remote}' has: {complaint}")
    outside = set(out.decode().split())
    return [commit for commit in commits if commit in outside]


def shared_sync(ctx: Context, snapshot: Snapshot) -> str:
    """The sync branch at its remote, as this clone last saw it; here where it has none.

    What was not pushed yet is still to be judged there.
    """
    name = format_record(snapshot.state).sync
    remote = usual_remote(ctx, snapshot)
    return f"refs/remotes/{remote}/{name}" if remote else f"refs/heads/{name}"
