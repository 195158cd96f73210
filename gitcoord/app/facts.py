"""Facts that rules ask for and only git can tell: heads, uncommitted work, what changed, the project's settings."""

from gitcoord.core.claims import MAX_TTL, format_record
from gitcoord.core.durations import parse_duration
from gitcoord.core.sessions import Seen
from gitcoord.core.state import Policy
from gitcoord.errors import CouldNotJudge, StoreError, UsageError
from gitcoord.names import ROOT, check_agent, covers, fold, is_oid, printable
from gitcoord.store.files import read_file, write_file
from gitcoord.store.process import Child, run
from gitcoord.store.settings import parse_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitcoord.app.context import Context
    from gitcoord.app.ledger import Snapshot
    from gitcoord.core.state import View

CONFIG = ".gitcoord/config"


def read_fact(ctx: "Context", snapshot: "Snapshot", view: "View", what: "tuple[str, ...]") -> None:
    kind, *rest = what
    if kind == "seen":
        view.seen[rest[0]] = _seen(ctx, view, rest[0])
    elif kind == "resources":
        view.resources = _resources(_project_settings(ctx, snapshot))
    elif kind == "approvers":
        view.facts[what] = _approvers(_project_settings(ctx, snapshot))
    elif kind == "head":
        view.facts[what] = snapshot.git_head or ""
    elif kind == "dirty":
        view.facts[what] = _dirty(ctx, snapshot, rest)
    elif kind == "changed":
        view.facts[what] = _changed(ctx, snapshot, rest[0], rest[1], rest[2:])
    elif kind == "landed":
        view.facts[what] = _landed(ctx, snapshot, rest)
    else:
        raise AssertionError(f"nobody knows {what}")


def _seen(ctx: "Context", view: "View", agent: str) -> Seen:
    """Since when this host has seen this heartbeat; noted at first sight."""
    beat = view.beat(agent)
    oid = beat.oid if beat is not None else ""
    path = ctx.scratch(f"seen/{agent}")
    words = read_file(path).decode("ascii", "replace").split("\n")
    if len(words) == 3 and words[0] == oid and words[1] == view.boot and words[2].isdecimal():
        return Seen(oid, view.boot, int(words[2]))
    write_file(path, f"{oid}\n{view.boot}\n{view.mono}".encode())
    return Seen(oid, view.boot, view.mono)


def _project_settings(ctx: "Context", snapshot: "Snapshot") -> "list[tuple[str, str]]":
    """`.gitcoord/config` of the sync branch, else of HEAD; nothing where neither has one."""
    sync = format_record(snapshot.state)["sync"]
    branch, head = ctx.store.read([f"refs/heads/{sync}:{CONFIG}", f"HEAD:{CONFIG}"])
    (has_branch,) = ctx.store.resolve([f"refs/heads/{sync}"])
    blob = branch if has_branch else head
    if blob is None:
        _require_absent(ctx, f"refs/heads/{sync}" if has_branch else "HEAD")
        return []
    code, out, complaint = run(["git", "config", "--blob", blob.oid, "--list", "-z"], ctx.repo.env)
    if code:
        raise CouldNotJudge(f"{CONFIG} of {sync} cannot be read: {complaint}", hints=("mend the file and commit it",))
    return parse_settings(out)


def _require_absent(ctx: "Context", commit: str) -> None:
    """Settings that are there but cannot be read are not "no settings"."""
    code, out, _ = run(["git", "--no-replace-objects", "ls-tree", "--full-tree", commit, CONFIG], ctx.repo.env)
    if out or (code and ctx.store.resolve([commit])[0] is not None):
        raise CouldNotJudge(f"{CONFIG} of {commit} cannot be read", hints=("git fsck tells more",))


def _resources(pairs: "list[tuple[str, str]]") -> "dict[str, Policy]":
    """The `[resource "name"]` sections."""
    found: dict[str, Policy] = {}
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "resource" and name:
            found[name] = _resource(found.get(name, Policy(declared=True)), name, setting, value)
    return found


def _resource(policy: Policy, name: str, setting: str, value: str) -> Policy:
    """One more setting of a resource; what makes no sense is never guessed at."""
    if setting == "capacity":
        if not (value.isascii() and value.isdecimal() and len(value) < 7 and int(value)):
            raise CouldNotJudge(f'{CONFIG}: resource "{printable(name)}" has no usable capacity')
        return policy._replace(capacity=int(value))
    if setting == "ttl":
        try:
            ttl = parse_duration(value)
        except UsageError:
            ttl = 0
        if not 1 <= ttl <= MAX_TTL:
            raise CouldNotJudge(f'{CONFIG}: resource "{printable(name)}" has no usable ttl', hints=("from 1s to 7d",))
        return policy._replace(ttl=ttl)
    names = tuple(value.replace(",", " ").split())
    if setting == "read":
        return policy._replace(readers=policy.readers + names)
    if setting == "write":
        return policy._replace(writers=policy.writers + names)
    return policy


def _approvers(pairs: "list[tuple[str, str]]") -> list[str]:
    try:
        return [check_agent(value) for key, value in pairs if key == "gitcoord.approver"]
    except UsageError as error:
        raise CouldNotJudge(f"{CONFIG}: gitcoord.approver: {error.message}") from None


def declared_resources(ctx: "Context", snapshot: "Snapshot") -> "dict[str, Policy]":
    return _resources(_project_settings(ctx, snapshot))


class _Covering:
    """Which of the claimed paths cover a file, whatever its spelling: claims and files meet by conflict key."""

    def __init__(self, snapshot: "Snapshot", paths: "list[str]") -> None:
        self._case = format_record(snapshot.state)["case"] == "fold"
        self._keys = {path: fold(path, case=self._case) for path in paths}
        # git narrows the search only where there is one spelling.
        exact = not self._case and all(path.isascii() for path in paths)
        self.pathspecs = [_literal(path) for path in paths] if exact else [":/"]

    def files(self, path: str, names: "Iterable[str]") -> list[str]:
        return [name for name in names if covers(self._keys[path], fold(name, case=self._case))]


def _start_status(ctx: "Context", pathspecs: "list[str]") -> Child:
    argv = ["git", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *pathspecs]
    child = Child(argv, ctx.repo.env)
    child.close_input()
    return child


def start_looking(ctx: "Context", paths: "list[str]") -> None:
    """A rule will ask whether these paths are dirty: let git look while we read the ledger. For speed only."""
    if ctx.repo.worktree and paths and all(path.isascii() for path in paths):
        pathspecs = [_literal(path) for path in paths]
        ctx.started[tuple(pathspecs)] = _start_status(ctx, pathspecs)


def _literal(path: str) -> str:
    return f":(top,literal){'' if path == ROOT else path}"


def _dirty(ctx: "Context", snapshot: "Snapshot", paths: "list[str]") -> list[str]:
    """Those of the claimed paths below which something is not committed."""
    if not ctx.repo.worktree:
        return []
    covering = _Covering(snapshot, paths)
    child = ctx.started.pop(tuple(covering.pathspecs), None) or _start_status(ctx, covering.pathspecs)
    out = child.rest()
    if child.wait():
        raise StoreError(f"git status failed: {child.complaint()}")
    child.close()
    changed = [entry[3:] for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry]
    return [path for path in paths if covering.files(path, changed)]


def _changed(
    ctx: "Context", snapshot: "Snapshot", base: str, commit: str, paths: "list[str]"
) -> "dict[str, list[list[str]]]":
    """Below each path, the files that differ between `base` (the merge base after a rebase) and `commit`."""
    covering = _Covering(snapshot, paths)
    argv = ["git", "--no-replace-objects", "diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev"]
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


def _parse_raw(data: bytes) -> "list[list[str]]":
    """[path, new mode, new blob] of each changed file; '' for the blob of a deleted one."""
    words = data.decode("utf-8", "surrogateescape").split("\0")
    files = []
    for meta, path in zip(words[::2], words[1::2]):
        _, mode, _, blob, _ = meta.lstrip(":").split(" ")
        files.append([path, mode, "" if set(blob) == {"0"} else blob])
    return files


def _landed(ctx: "Context", snapshot: "Snapshot", commits: "list[str]") -> list[str]:
    """Those of the commits that the sync branch contains. What git does not have has not landed as far as we know."""
    sync = f"refs/heads/{format_record(snapshot.state)['sync']}"
    there = [c for c, oid in zip(commits, ctx.store.resolve(commits)) if oid is not None and is_oid(c)]
    if not there or ctx.store.resolve([sync])[0] is None:
        return []
    argv = ["git", "--no-replace-objects", "rev-list", "--stdin"]
    code, out, complaint = run(argv, ctx.repo.env, "\n".join([*there, f"^{sync}", ""]).encode())
    if code:
        raise CouldNotJudge(f"git cannot tell what {sync} contains: {complaint}")
    outside = set(out.decode().split())
    return [commit for commit in there if commit not in outside]
