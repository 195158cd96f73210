"""Facts that rules ask for and only git can tell: heads, uncommitted work, what changed, the project's settings."""

from gitcoord.core.sessions import Seen
from gitcoord.core.state import Policy
from gitcoord.errors import CouldNotJudge, StoreError
from gitcoord.names import check_agent, is_oid
from gitcoord.store.files import read_file, write_file
from gitcoord.store.process import run
from gitcoord.store.repo import parse_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        pairs = _project_settings(ctx, snapshot)
        view.facts[what] = [check_agent(value) for key, value in pairs if key == "gitcoord.approver"]
    elif kind == "head":
        view.facts[what] = snapshot.git_head or ""
    elif kind == "dirty":
        view.facts[what] = _dirty(ctx, rest)
    elif kind == "changed":
        view.facts[what] = _changed(ctx, rest[0], rest[1], rest[2:])
    elif kind == "landed":
        view.facts[what] = _landed(ctx, snapshot, rest[0])
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
    from gitcoord.core.claims import format_record

    sync = format_record(snapshot.state)["sync"]
    branch, head = ctx.store.read([f"refs/heads/{sync}:{CONFIG}", f"HEAD:{CONFIG}"])
    (has_branch,) = ctx.store.resolve([f"refs/heads/{sync}"])
    blob = branch if has_branch else head
    if blob is None:
        return []
    code, out, complaint = run(["git", "config", "--blob", blob.oid, "--list", "-z"], ctx.repo.env)
    if code:
        raise CouldNotJudge(f"{CONFIG} of {sync} cannot be read: {complaint}", hints=("mend the file and commit it",))
    return parse_settings(out)


def _resources(pairs: "list[tuple[str, str]]") -> "dict[str, Policy]":
    """The `[resource "name"]` sections."""
    from gitcoord.core.durations import parse_duration

    found: dict[str, Policy] = {}
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section != "resource" or not name:
            continue
        policy = found.get(name, Policy(declared=True))
        names = tuple(value.replace(",", " ").split())
        if setting == "capacity":
            if not value.isdecimal() or not 1 <= int(value[:7]) <= 1_000_000:
                raise CouldNotJudge(f'{CONFIG}: resource "{name}" has no usable capacity')
            policy = policy._replace(capacity=int(value))
        elif setting == "ttl":
            policy = policy._replace(ttl=parse_duration(value))
        elif setting == "read":
            policy = policy._replace(readers=policy.readers + names)
        elif setting == "write":
            policy = policy._replace(writers=policy.writers + names)
        found[name] = policy
    return found


def declared_resources(ctx: "Context", snapshot: "Snapshot") -> "dict[str, Policy]":
    return _resources(_project_settings(ctx, snapshot))


def _top_pathspecs(paths: "list[str]") -> list[str]:
    return [f":(top,literal){'' if path == '.' else path}" for path in paths]


def _dirty(ctx: "Context", paths: "list[str]") -> list[str]:
    """Those of the claimed paths below which something is not committed."""
    if not ctx.repo.worktree:
        return []
    argv = ["git", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *_top_pathspecs(paths)]
    code, out, complaint = run(argv, ctx.repo.env)
    if code:
        raise StoreError(f"git status failed: {complaint}")
    changed = [entry[3:] for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry]
    return [p for p in paths if p == "." and changed or any(c == p or c.startswith(p + "/") for c in changed)]


def _changed(ctx: "Context", base: str, commit: str, paths: "list[str]") -> "dict[str, list[list[str]]]":
    """Below each path, the files that differ between `base` (the merge base after a rebase) and `commit`."""
    argv = [
        "git",
        "--no-replace-objects",
        "diff-tree",
        "-r",
        "--raw",
        "-z",
        "--no-renames",
        "--no-abbrev",
        "--ignore-submodules=none",
    ]
    specs = ["--", *_top_pathspecs(paths)]
    if base:
        code, out, complaint = run([*argv, "--merge-base", base, commit, *specs], ctx.repo.env)
        if code:
            code, out, complaint = run([*argv, base, commit, *specs], ctx.repo.env)
    else:
        code, empty, complaint = run(["git", "hash-object", "-t", "tree", "/dev/null"], ctx.repo.env)
        code, out, complaint = run([*argv, empty.decode().strip(), commit, *specs], ctx.repo.env)
    if code:
        raise CouldNotJudge(
            f"git cannot compare {base[:12]} with {commit[:12]}: {complaint}",
            hints=("git fetch, if history is missing here",),
        )
    files = _parse_raw(out)
    found: dict[str, list[list[str]]] = {}
    for path in paths:
        found[path] = [f for f in files if path == "." or f[0] == path or f[0].startswith(path + "/")]
    return found


def _parse_raw(data: bytes) -> "list[list[str]]":
    """[path, new mode, new blob] of each changed file; '' for the blob of a deleted one."""
    words = data.decode("utf-8", "surrogateescape").split("\0")
    files = []
    for meta, path in zip(words[::2], words[1::2]):
        _, mode, _, blob, _ = meta.lstrip(":").split(" ")
        files.append([path, mode, "" if set(blob) == {"0"} else blob])
    return files


def _landed(ctx: "Context", snapshot: "Snapshot", commit: str) -> bool:
    from gitcoord.core.claims import format_record

    sync = format_record(snapshot.state)["sync"]
    if not is_oid(commit):
        return False
    code, _, _ = run(["git", "merge-base", "--is-ancestor", commit, f"refs/heads/{sync}"], ctx.repo.env)
    return code == 0
