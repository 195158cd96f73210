"""Facts about released work: its base, its changed files, and which commits landed or are not pushed."""

from __future__ import annotations

from gitcoord.base.names import is_oid
from gitcoord.claims.facts import Covering
from gitcoord.git.commands.objects import (
    diff_names,
    diff_raw,
    empty_tree,
    list_outside,
    log_agents,
    merge_base,
    rev_list,
)
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.ledger.world import Files

_NEAR = 32  # commits


def changed(ctx: Context, snapshot: Snapshot, base: str, commit: str, paths: list[str]) -> dict[str, Files]:
    """Below each path, the files that differ between `base` (the merge base after a rebase) and `commit`."""
    covering = Covering(snapshot, paths)
    env, specs = ctx.repo.env, covering.pathspecs
    if base:
        answer = diff_raw(env, base, commit, *specs, since_fork=True)
        if answer.code:  # no common ancestor
            answer = diff_raw(env, base, commit, *specs)
    else:
        answer = diff_raw(env, empty_tree(env), commit, *specs)
    failure = f"git cannot compare {base[:12]} with {commit[:12]}"
    answer.require(failure, hints=("git fetch, if history is missing here",))
    files = {row[0]: row for row in parse_raw(answer.out)}
    return {path: [files[name] for name in covering.files(path, files)] for path in paths}


def since(ctx: Context, snapshot: Snapshot, base: str, commit: str) -> str:
    """The commit with which `commit` is compared, for a claim that was made on `base`. `commit` contains it.

    If the base was rewritten, it is the merge base. If the base is missing here, it is the point where `commit` left the trunk;
    once `commit` has landed, that point is unknown and all files count, because recording too little would let work be undone.
    """
    if not base:
        return ""
    if _is_near(ctx, base, commit):
        return base
    common = merge_base(ctx.repo.env, base, commit)
    if common.code in (0, 1):
        return common.text or base  # no common history: compare them directly
    left = _left_trunk(ctx, snapshot, commit)
    return left if left != commit else ""


def _is_near(ctx: Context, base: str, commit: str) -> bool:
    """Is the base among the last few first parents of the commit? It usually is, and no git process is needed to see it."""
    for _ in range(_NEAR):
        if commit == base:
            return True
        (found,) = ctx.store.read([commit])
        head = found.data.partition(b"\n\n")[0].split(b"\n") if found is not None and found.kind == "commit" else []
        commit = next((line[len(b"parent ") :].decode() for line in head if line.startswith(b"parent ")), "")
        if not commit:
            break
    return False


def usual_remote(ctx: Context, snapshot: Snapshot) -> str:
    """The remote of the trunk: its configured remote, else origin, else the only one, else ''."""
    urls = [key for key, _ in ctx.settings.pairs if key.startswith("remote.") and key.endswith(".url")]
    remotes = {key[len("remote.") : -len(".url")]: None for key in urls}
    for name in (ctx.settings.get(f"branch.{format_record(snapshot.state).sync}.remote"), "origin"):
        if name in remotes:
            return name
    return next(iter(remotes)) if len(remotes) == 1 else ""


def trunk_tips(ctx: Context, snapshot: Snapshot) -> list[str]:
    """The tips of the trunk here and at its remote, as last fetched."""
    name = format_record(snapshot.state).sync
    remote = usual_remote(ctx, snapshot)
    refs = [f"refs/heads/{name}", *([f"refs/remotes/{remote}/{name}"] if remote else [])]
    return list(dict.fromkeys(oid for oid in map(ctx.store.target, refs) if oid))


def _left_trunk(ctx: Context, snapshot: Snapshot, commit: str) -> str:
    """The last commit of the trunk that `commit` contains: `commit` itself once it has landed; '' if there is none."""
    if ctx.store.target(f"refs/heads/{format_record(snapshot.state).sync}") == commit:
        return commit  # the usual case, without a process
    found = ""
    for tip in trunk_tips(ctx, snapshot):
        left = merge_base(ctx.repo.env, tip, commit).text
        if not found or (left and found in within(ctx, [left], [found])):
            found = left or found
    return found


def unlanded(ctx: Context, snapshot: Snapshot, commit: str, paths: list[str]) -> dict[str, tuple[str, Files]]:
    """By path, the base and the files that `commit` changed and the trunk does not have."""
    base = _left_trunk(ctx, snapshot, commit)
    if not base or base == commit:
        return {}
    return {path: (base, files) for path, files in changed(ctx, snapshot, base, commit, paths).items() if files}


def within(ctx: Context, places: list[str], commits: list[str]) -> list[str]:
    """The commits that all of these places contain. A commit that git does not have is in none."""
    named = [commit for commit in commits if is_oid(commit)]
    there = [commit for commit, oid in zip(named, ctx.store.resolve(named)) if oid is not None]
    outside: set[str] = set()
    for place in places:
        asked = [commit for commit in there if commit != place]
        if not asked:
            continue
        answer = list_outside(ctx.repo.env, asked, place)
        outside.update(answer.require(f"git cannot tell what {place} contains").lines)
    return [commit for commit in there if commit not in outside]


def parse_raw(data: bytes) -> list[list[str]]:
    """[path, new mode, new blob] of each changed file; '' for the blob of a deleted one."""
    words = data.decode("utf-8", "surrogateescape").split("\0")
    files = []
    for meta, path in zip(words[::2], words[1::2]):
        _, mode, _, blob, _ = meta.lstrip(":").split(" ")
        files.append([path, mode, "" if set(blob) == {"0"} else blob])
    return files


def lacking(ctx: Context, commits: list[str]) -> list[str]:
    """The commits that the authority's remote lacks, as far as this clone knows."""
    answer = rev_list(ctx.repo.env, *commits, "--not", f"--remotes={ctx.remote}")
    outside = set(answer.require(f"git cannot tell what '{ctx.remote}' has").lines)
    return [commit for commit in commits if commit in outside]


def shared_sync(ctx: Context, snapshot: Snapshot) -> str:
    """The ref of the trunk at its remote, as last fetched; the local branch if it has no remote.

    Commits that are not pushed yet are still to be judged there.
    """
    name = format_record(snapshot.state).sync
    remote = usual_remote(ctx, snapshot)
    return f"refs/remotes/{remote}/{name}" if remote else f"refs/heads/{name}"


def touched(ctx: Context, old: str, new: str) -> list[str]:
    """The paths that differ between two commits: of a rename, both."""
    answer = diff_names(ctx.repo.env, old, new)
    return answer.require(f"git cannot compare {old[:12]} with {new[:12]}", hints=("git fetch",)).entries


def agents_of(ctx: Context, old: str, new: str) -> list[str]:
    """The agents that `Agent:` trailers name, of the commits that `new` contains and `old` does not."""
    answer = log_agents(ctx.repo.env, old, new).require("git cannot tell whose commits these are")
    return sorted({line.strip() for line in answer.lines if line.strip()})
