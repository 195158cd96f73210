"""Facts that rules ask git for: heads, uncommitted work, the project's settings; and first sights of heartbeats."""

from __future__ import annotations

from gitcoord.base.durations import parse_duration
from gitcoord.base.errors import CouldNotJudge, StoreError, UsageError
from gitcoord.base.names import CONFIG, ROOT, ancestors, check_agent, fold, printable
from gitcoord.claims.model import MAX_TTL
from gitcoord.git.commands.objects import ls_tree
from gitcoord.git.commands.worktrees import start_status
from gitcoord.git.files import list_files, modified, read_file, remove_file, write_file
from gitcoord.git.host import runs_still
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.sessions import Heartbeat, Seen
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.ledger.world import Resource
from gitcoord.policy.model import invalid_setting
from gitcoord.startup.annotations import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.policy.model import Attributes

_CLEAN_EVERY = 64  # events
_DAY = 86400
_FEW = 64  # up to so many paths are named to git one by one


def note_first_sight(ctx: Context, agent: str, beat: Heartbeat | None, boot: str, mono: int) -> Seen:
    """The time at which this host first observed the current heartbeat (recorded on the first call)."""
    oid = beat.oid if beat is not None else ""
    path = ctx.scratch(f"seen/{agent}")
    words = read_file(path).decode("ascii", "replace").split("\n")
    if len(words) == 3 and words[0] == oid and words[1] == boot and words[2].isdecimal():
        return Seen(oid, boot, int(words[2]))
    write_file(path, f"{oid}\n{boot}\n{mono}".encode())
    return Seen(oid, boot, mono)


def note_grant(ctx: Context, token: int, boot: str, mono: int) -> int:
    """The time at which this host first saw the grant of this event unconfirmed (recorded on the first call)."""
    path = ctx.scratch(f"grants/{token}")
    words = read_file(path).decode("ascii", "replace").split("\n")
    if len(words) == 2 and words[0] == boot and words[1].isdecimal():
        return int(words[1])
    write_file(path, f"{boot}\n{mono}".encode())
    if token % _CLEAN_EVERY == 0:
        directory = path.rpartition("/")[0]
        old = [f"{directory}/{name}" for name in list_files(directory)]
        for note in (note for note in old if modified(note) < (ctx.host.wall() - _DAY) * 10**9):
            remove_file(note)  # if it is still unconfirmed, its time begins anew
    return mono


def gone_instance(ctx: Context, agent: str) -> str:
    """The instance that `git coord run` launched here for this agent, if it and its supervisor have died; else ''."""
    words = read_file(f"{ctx.repo.scratch}/runs/{agent}").decode("utf-8", "surrogateescape").split("\n")
    if len(words) != 4 or words[2] != ctx.host.boot or not words[1] or runs_still(words[0], words[1]):
        return ""
    for pid in list_files(f"{ctx.repo.scratch}/procs"):
        note = read_file(f"{ctx.repo.scratch}/procs/{pid}").decode("utf-8", "surrogateescape").split("\n")
        if len(note) == 5 and note[4] == words[3] and note[1] == ctx.host.boot and runs_still(pid, note[0]):
            return ""  # only its supervisor was killed
    return words[3]


def project_settings(ctx: Context, snapshot: Snapshot) -> list[tuple[str, str]]:
    from gitcoord.policy.cache import sync_policy_commit
    from gitcoord.policy.reader import Source

    return Source(ctx, sync_policy_commit(ctx, snapshot), case=folds_case(snapshot.state)).pairs


def classes(ctx: Context, snapshot: Snapshot, paths: list[str]) -> dict[str, dict[str, Attributes]]:
    """The attributes of each path, of a new file below it, and of the trunk's files below it.

    A claim covers all of them. Client and server must get the same answer, so no work tree is read.
    """
    from gitcoord.policy.cache import sync_policy_commit
    from gitcoord.policy.reader import Source

    commit = sync_policy_commit(ctx, snapshot)
    prefixes = {path: "" if path == ROOT else path + "/" for path in paths}
    few = len(paths) <= _FEW and ROOT not in prefixes
    listed = ls_tree(ctx.repo.env, commit, *(prefixes.values() if few else ()), names=True)
    names = listed.require(f"git cannot list the files of {commit[:12]}").entries
    covering = Covering(snapshot, paths)
    asked = {path: [path, f"{prefixes[path]}a-new-file", *covering.files(path, names)] for path in paths}
    source = Source(ctx, commit, case=folds_case(snapshot.state))
    found = source.attributes({name: None for names in asked.values() for name in names})
    return {path: {name: found[name] for name in names} for path, names in asked.items()}


def parse_resources(pairs: list[tuple[str, str]]) -> dict[str, Resource]:
    """The `[resource "name"]` sections, and the caps on workers, which are resources too."""
    found: dict[str, Resource] = {}
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "resource" and name:
            found[name] = _resource(found.get(name, Resource(declared=True)), name, setting, value)
    if any(key.startswith("workers.") for key, _ in pairs):
        from gitcoord.tasks.workers import cap_resources, parse_workers

        found.update(cap_resources(parse_workers(pairs)))
    return found


def _resource(resource: Resource, name: str, setting: str, value: str) -> Resource:
    """The resource with one more setting; CouldNotJudge for an invalid value."""
    if setting == "capacity":
        if not (value.isascii() and value.isdecimal() and len(value) < 7 and int(value)):
            raise invalid_setting(f'resource "{printable(name)}" has no usable capacity')
        return resource._replace(capacity=int(value))
    if setting == "ttl":
        try:
            ttl = parse_duration(value)
        except UsageError:
            ttl = 0
        if not 1 <= ttl <= MAX_TTL:
            raise invalid_setting(f'resource "{printable(name)}" has no usable ttl', "from 1s to 7d")
        return resource._replace(ttl=ttl)
    names = tuple(value.replace(",", " ").split())
    if setting == "read":
        return resource._replace(readers=resource.readers + names)
    if setting == "write":
        return resource._replace(writers=resource.writers + names)
    return resource


def parse_approvers(pairs: list[tuple[str, str]]) -> list[str]:
    try:
        return [check_agent(value) for key, value in pairs if key == "gitcoord.approver"]
    except UsageError as error:
        raise invalid_setting(f"gitcoord.approver: {error.message}") from None


def declared_resources(ctx: Context, snapshot: Snapshot) -> dict[str, Resource]:
    return parse_resources(project_settings(ctx, snapshot))


def deploy_refs(ctx: Context, snapshot: Snapshot) -> list[str]:
    """The refs, or patterns of refs, that `[deploy "name"]` sections deploy from."""
    found = []
    for key, value in project_settings(ctx, snapshot):
        if key.startswith("deploy.") and key.endswith(".ref"):
            if not value.startswith("refs/") or not value.isprintable() or " " in value:
                raise CouldNotJudge(f"{CONFIG}: {printable(key)} is no full ref: {printable(value)}")
            found.append(value)
    return found


class Covering:
    """Finds the files below claimed paths. Files and paths are compared by conflict key, whatever their spelling."""

    def __init__(self, snapshot: Snapshot, paths: list[str]) -> None:
        self._case = format_record(snapshot.state).case == "fold"
        self._keys = {path: fold(path, case=self._case) for path in paths}
        self._names: Iterable[str] = ()
        self._below: dict[str, list[str]] = {key: [] for key in self._keys.values()}
        # git can narrow the search only where there is one spelling.
        exact = not self._case and all(path.isascii() for path in paths)
        self.pathspecs = [_literal(path) for path in paths] if exact else [":/"]

    def files(self, path: str, names: Iterable[str]) -> list[str]:
        """The files below the path. One pass sorts all files for all paths."""
        if names is not self._names:
            self._names, self._below = names, {key: [] for key in self._keys.values()}
            for name in names:
                key = fold(name, case=self._case)
                for above in (*ancestors(key), key):
                    if above in self._below:
                        self._below[above].append(name)
        return self._below[self._keys[path]]


def start_dirty_check(ctx: Context, paths: list[str]) -> None:
    """Start `git status` for these paths while the ledger is read. For speed only."""
    if ctx.repo.worktree and paths and all(path.isascii() for path in paths):
        pathspecs = [_literal(path) for path in paths]
        ctx.started[tuple(pathspecs)] = start_status(ctx.repo.env, pathspecs)


def _literal(path: str) -> str:
    return f":(top,literal){'' if path == ROOT else path}"


def head_in(ctx: Context, tree: str) -> str:
    """HEAD of another work tree; '' if it has none."""
    from gitcoord.git.commands.refs import rev_parse

    return rev_parse(ctx.repo.env, "HEAD", tree).text


def dirty(ctx: Context, snapshot: Snapshot, tree: str, paths: list[str]) -> list[str]:
    """The claimed paths with uncommitted changes in this work tree, or in `tree`."""
    if not ctx.repo.worktree and not tree:
        return []
    covering = Covering(snapshot, paths)
    started = None if tree else ctx.started.pop(tuple(covering.pathspecs), None)
    child = started or start_status(ctx.repo.env, covering.pathspecs, tree)
    out = child.rest()
    if child.wait():
        raise StoreError(f"git status failed: {child.complaint()}")
    child.close()
    changed = [entry[3:] for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry]
    return [path for path in paths if covering.files(path, changed)]
