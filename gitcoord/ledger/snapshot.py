"""Reading the ledger: its head, whether it may be trusted, and its parts when a rule asks for them."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, decode_file
from gitcoord.base.errors import CouldNotJudge, GitcoordError, NotInitialised, ServerBehind
from gitcoord.base.names import LEDGER, TIP, Oid, fold, is_oid, session_ref, shell_word
from gitcoord.claims.model import Item, parts_around
from gitcoord.git.store import Object, Reader
from gitcoord.git.tree import TreeEntry, Trees
from gitcoord.ledger.commit import REPAIR, Commit, refuse_newer
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.sessions import Heartbeat, decode_heartbeat
from gitcoord.ledger.state import Part, State
from gitcoord.startup.annotations import Iterable

_WALK = 10_000


class Snapshot:
    """The ledger at one moment, and the heartbeats beside it, each as it was when first asked for.

    `tip` is where `refs/gitcoord/tip` pointed just before the ledger was read. `server` is the server's ledger where it lacks the tip
    and the tip is shown.
    """

    def __init__(self, reader: Reader, tip: Oid | None, commit: Commit) -> None:
        self.reader = reader
        self.tip = tip
        self.commit = commit
        self.server: Object | None = None
        self.head = commit.oid
        self.event = commit.event
        self.state = State(seq=self.event.seq, source=self._load)
        self.trees = Trees(reader)
        self.sessions: dict[str, Object] = {}  # heartbeats read on the way, not yet asked for
        self.heartbeats: dict[str, Heartbeat | None] = {}
        self.session_oids: dict[str, Oid | None] = {}

    # --- heartbeats

    def heartbeat(self, agent: str) -> Heartbeat | None:
        """The agent's last heartbeat; None where its ref is missing or unreadable."""
        if agent not in self.heartbeats:
            self.prefetch_heartbeats((agent,))
        return self.heartbeats[agent]

    def session_oid(self, agent: str) -> Oid | None:
        """The value of the agent's session ref when its heartbeat was read."""
        self.heartbeat(agent)
        return self.session_oids[agent]

    def prefetch_heartbeats(self, agents: Iterable[str]) -> None:
        """Read those of these heartbeats that were not read yet, all together."""
        missing = [agent for agent in dict.fromkeys(agents) if agent not in self.heartbeats]
        asked = [agent for agent in missing if agent not in self.sessions]
        found = dict(zip(asked, self.reader.read([session_ref(agent) for agent in asked]))) if asked else {}
        for agent in missing:
            object = self.sessions.get(agent) or found[agent]
            self.session_oids[agent], self.heartbeats[agent] = _heartbeat_in(self.reader, agent, object)

    # --- parts of the tree

    def files(self, directory: str) -> dict[str, Oid]:
        """The files below this directory and their ids: only trees are read."""
        return self._files("below", directory, self.trees.walk(self.commit.tree, [directory])[directory])

    def _load(self, state: State, parts: list[Part]) -> None:
        """Read parts into the state: all trees on the way together, then all files together."""
        entries = self.trees.walk(self.commit.tree, [directory_of(path) for _, path in parts])
        self.trees.load([entry.oid for entry in entries.values() if entry is not None and entry.is_tree])
        files = {part: self._files(*part, entries[directory_of(part[1])]) for part in parts}
        records = self._records({key: oid for some in files.values() for key, oid in some.items()})
        for (kind, path), some in files.items():
            if kind == "file":
                state.load_file(path, records.get(path))
            elif kind == "names":
                entry = entries[path]
                tree = entry.oid if entry is not None and entry.is_tree else None
                state.load_names(path, sorted(self.trees.children(tree)))
            else:
                state.load_part(kind, path, {key: records[key] for key in some})

    def _files(self, kind: str, path: str, entry: TreeEntry | None) -> dict[str, Oid]:
        """The files that one part consists of."""
        if entry is None or kind == "names":
            return {}
        if entry.is_tree == (kind == "file"):
            raise CouldNotJudge(f"{path} in the ledger is not what it should be", hints=REPAIR)
        if kind == "file":
            return {path: entry.oid}
        if kind == "leaves":
            return {f"{path}/{name}": leaf.oid for name, leaf in self.trees.leaves(entry.oid).items()}
        directory, _, name = path.partition("//")
        below = self.trees.files((directory + "/", entry.oid))
        return {key: oid for key, oid in below if key.endswith(f"/{name}")} if name else dict(below)

    def _records(self, files: dict[str, Oid]) -> dict[str, Record]:
        records = {}
        for (key, oid), found in zip(files.items(), self.reader.read(list(files.values())) if files else ()):
            if found is None or found.kind != "blob":
                raise CouldNotJudge(f"{key} in the ledger cannot be read ({oid})", hints=REPAIR)
            try:
                records[key] = decode_file(key, found.data)
            except Malformed as error:
                raise CouldNotJudge(f"{key} in the ledger: {error.message}", hints=error.hints + REPAIR) from None
        return records


def directory_of(path: str) -> str:
    """The directory of a part: without the name that a part of the kind "named" has."""
    return path.partition("//")[0]


def read_heartbeat(reader: Reader, agent: str) -> tuple[Oid | None, Heartbeat | None]:
    """The current value of the agent's session ref, and its heartbeat; None where it is missing or unreadable."""
    return _heartbeat_in(reader, agent, reader.read([session_ref(agent)])[0])


def _heartbeat_in(reader: Reader, agent: str, found: Object | None) -> tuple[Oid | None, Heartbeat | None]:
    """An unreadable heartbeat is none: it counts as seen for the first time, which expires nobody early."""
    if found is None:
        return reader.resolve([session_ref(agent)])[0], None
    try:
        beat = parse_heartbeat(found)
    except Malformed:
        return found.oid, None
    return found.oid, beat if beat.agent == agent else None


def read_snapshot(
    ctx: Context, *, agent: str = "", prefetch: tuple[Part, ...] = (), trusting: bool = False, copied: bool = False
) -> Snapshot:
    """The ledger now, as `_read_snapshot` says. With a remote authority, a mirror that is inconsistent may have been torn by
    a `git fetch` that was overtaken: it is fetched once more before the error is raised.
    """
    try:
        ctx.snapshot = _read_snapshot(ctx, agent, prefetch, trusting=trusting, copied=copied)
    except CouldNotJudge as error:
        if not ctx.remote or trusting or not _renew(ctx):
            raise error
        ctx.snapshot = _read_snapshot(ctx, agent, prefetch, trusting=trusting, copied=copied)
    return ctx.snapshot


def _renew(ctx: Context) -> bool:
    """Fetch without the push lock: the caller may hold the queue, which is taken after that lock."""
    from gitcoord.ledger.remote.fetch import fetch
    from gitcoord.ledger.remote.mirror_store import MirrorStore

    try:
        if isinstance(ctx.store, MirrorStore):
            fetch(ctx)
            return True
    except ServerBehind:
        raise  # this says what is wrong, and what helps
    except GitcoordError:
        pass
    return False


def _read_snapshot(ctx: Context, agent: str, prefetch: tuple[Part, ...], *, trusting: bool, copied: bool) -> Snapshot:
    """The ledger now. The tip is read first: read the other way round, the two would differ under every writer.

    `agent`'s heartbeat and the parts to `prefetch` are read on the way, because the rule will ask for them.
    NotInitialised if there never was a ledger here; CouldNotJudge if it is missing, rewound, foreign or no event stands
    on top. `trusting` skips what only matters for a verdict, so that people can look at a ledger that may not be used.
    """
    parts = (("file", "format"), *prefetch)
    names = [TIP, LEDGER, *([session_ref(agent)] if agent else ())]
    tip, found, *beats = ctx.store.read(names)
    server: Object | None = None
    if trusting and ctx.remote and tip is not None and (found is None or found.oid != tip.oid):
        from gitcoord.ledger.remote.server_behind import lacks

        if found is None or lacks(ctx.store, found, tip):
            server, found = found, tip  # what was seen here is shown
    if found is None:
        if tip is None and not ctx.settings.get("gitcoord.root"):
            from gitcoord.ledger.named_ledger import no_ledger

            raise no_ledger(ctx)
        raise CouldNotJudge(f"the ledger ({LEDGER}) is missing", hints=REPAIR)
    try:
        snapshot = Snapshot(ctx.store, tip.oid if tip is not None else None, Commit(found, LEDGER))
    except Malformed as error:
        refuse_newer(ctx.store, found.oid)
        refuse_own_branch(ctx, tip is not None)
        raise CouldNotJudge(
            f"the commit on top of the ledger is no event: {error.message}", hints=error.hints + REPAIR
        ) from None
    snapshot.server = server
    if beats and beats[0] is not None:
        snapshot.sessions[agent] = beats[0]
    if not trusting:
        if tip is None and snapshot.commit.parents and ctx.store.resolve([TIP])[0] is not None:
            return _read_snapshot(ctx, agent, prefetch, trusting=trusting, copied=copied)  # it was made meanwhile
        _require_ancestor(ctx, snapshot, copied=copied)
    snapshot.state.prefetch(parts)
    if not trusting:
        _require_authority(ctx, snapshot, copied=copied)
    return snapshot


def server_snapshot(ctx: Context, shown: Snapshot) -> Snapshot | None:
    """The server's ledger, if it has events that the shown one lacks."""
    from gitcoord.git.commands.objects import is_ancestor

    assert shown.server is not None
    if is_ancestor(ctx.repo.env, shown.server.oid, shown.head):
        return None
    return Snapshot(ctx.store, shown.tip, Commit(shown.server, LEDGER))


def refuse_own_branch(ctx: Context, noted: bool) -> None:
    """NotInitialised if there is no other trace of a ledger: the branch is then the user's own."""
    if noted or ctx.settings.get("gitcoord.root"):
        return
    free = free_branch(ctx, "refs/remotes/origin/")
    raise NotInitialised(
        "gitcoord is not set up in this repository, and its branch 'gitcoord' is somebody's own: the ledger needs that name",
        hints=(f"rename it: git branch -m gitcoord {free}", "then set it up: git coord setup"),
    )


def free_branch(ctx: Context, below: str) -> str:
    """A name that no branch has yet, here or below this prefix."""
    taken = {*ctx.store.list_refs("refs/heads/"), *ctx.store.list_refs(below)}
    number, name = 1, "gitcoord-branch"
    while any(f"{prefix}{name}" in taken for prefix in ("refs/heads/", below)):
        number += 1
        name = f"gitcoord-branch-{number}"
    return name


def parts_for(agent: str, items: Iterable[Item]) -> tuple[Part, ...]:
    """The parts of the state that a rule about these items will ask for, as far as known before reading."""
    parts: dict[Part, None] = {("file", "halt"): None, ("file", f"agents/{agent}"): None}
    for space, name in items:
        parts.update(dict.fromkeys(parts_around(space, fold(name, case=False))))
    return tuple(parts)


def _require_ancestor(ctx: Context, snapshot: Snapshot, *, copied: bool) -> None:
    """A tip among the ledger's ancestors is fine: a writer was between its two refs."""
    if snapshot.tip == snapshot.head:
        return
    if snapshot.tip is None:
        # Only a torn `init` or an adopted clone has none: anything else may be a rewound ledger whose witness is gone.
        if snapshot.commit.parents and not copied:
            raise CouldNotJudge(f"{TIP} is missing: whether the ledger was rewound cannot be told", hints=REPAIR)
        return
    commit = snapshot.commit
    for _ in range(_WALK):
        if snapshot.tip in commit.parents:
            _require_growth(ctx, snapshot)
            return
        if len(commit.parents) != 1:
            break
        commit = Commit(ctx.store.read(commit.parents)[0], "the ledger's history")
    raise CouldNotJudge("the ledger was rewound or replaced: its recorded tip is not in it", hints=REPAIR)


def _require_growth(ctx: Context, snapshot: Snapshot) -> None:
    """Check commits above the tip: a torn transaction, a fetch or a forger put them there without moving it."""
    if Commit(ctx.store.read([snapshot.tip or ""])[0], TIP).event.seq >= snapshot.event.seq:
        raise CouldNotJudge("the numbers of the ledger's events go back", hints=REPAIR)


def _require_authority(ctx: Context, snapshot: Snapshot, *, copied: bool) -> None:
    record = format_record(snapshot.state)
    known = ctx.settings.get("gitcoord.ledger")
    if known and known != record.ledger:
        raise CouldNotJudge("this is not the ledger that was set up here", hints=REPAIR)
    if not copied and not ctx.is_authority(record.authority):
        raise CouldNotJudge(
            "this repository is a copy: its ledger belongs to another one",
            hints=(
                f"use the one it belongs to: git coord init --remote {_policy_remote(ctx)}",
                "make this one an authority of its own: git coord init --adopt",
            ),
        )
    if not copied and ctx.may_name_another_ledger():
        _require_named(ctx, snapshot)


def _policy_remote(ctx: Context) -> str:
    name = ctx.policy_setting("authority")
    return shell_word(name) if name not in ("", "local") else "<remote>"


def _require_named(ctx: Context, snapshot: Snapshot) -> None:
    """Refuse a ledger where the policy names another."""
    from gitcoord.ledger.named_ledger import other_ledger

    error = other_ledger(ctx, format_record(snapshot.state).sync)
    if error is not None:
        raise error


def parse_heartbeat(found: Object) -> Heartbeat:
    """The heartbeat in a session ref's object: a blob, or the message of a commit where only branches may be pushed."""
    if found.kind not in ("blob", "commit"):
        raise Malformed("no heartbeat")
    return decode_heartbeat(found.oid, found.data if found.kind == "blob" else found.data.partition(b"\n\n")[2])


def history(ctx: Context, start: Oid, stop: Oid | None = None, limit: int = _WALK) -> list[Commit]:
    """Commits from `start` back to, without, `stop`: newest first."""
    commits: list[Commit] = []
    oid = start
    while oid != stop and len(commits) < limit:
        if not is_oid(oid):
            break
        commits.append(Commit(ctx.store.read([oid])[0], "the ledger's history"))
        if not commits[-1].parents:
            break
        oid = commits[-1].parents[0]
    return commits
