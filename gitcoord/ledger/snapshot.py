"""Reading the ledger: where it stands, whether it may be trusted, and the parts of it that a rule asked for."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, decode_file
from gitcoord.base.errors import CouldNotJudge, GitcoordError, NotInitialised, ServerBehind
from gitcoord.base.names import LEDGER, TIP, Oid, fold, is_oid, session_ref
from gitcoord.claims.model import format_record, parts_around
from gitcoord.git.tree import Trees
from gitcoord.ledger.event import decode_event
from gitcoord.ledger.sessions import decode_beat
from gitcoord.ledger.state import NotLoaded, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from gitcoord.base.codec import Record
    from gitcoord.claims.model import Item
    from gitcoord.git.store import Object, Reader
    from gitcoord.git.tree import Entry
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.sessions import Beat
    from gitcoord.ledger.state import View

    T = TypeVar("T")
    What = tuple[str, ...]

_WALK = 10_000
_AHEAD = 64
_IN_TREE = ("file", "leaves", "below", "names")
REPAIR = ("look at it: git coord fsck; mend it: git coord fsck --repair",)


class Commit:
    """A ledger commit, taken apart. `event` raises Malformed where the commit is none."""

    __slots__ = ("_event", "oid", "tree", "parents", "message")

    def __init__(self, found: Object | None, name: str) -> None:
        if found is None or found.kind != "commit":
            raise CouldNotJudge(f"{name} is not a commit that can be read", hints=REPAIR)
        head, _, self.message = found.data.partition(b"\n\n")
        self.oid: Oid = found.oid
        self.tree: Oid = ""
        self.parents: list[Oid] = []
        self._event: Event | None = None
        for line in head.decode("utf-8", "surrogateescape").split("\n"):
            key, _, value = line.partition(" ")
            if key == "tree":
                self.tree = value
            elif key == "parent":
                self.parents.append(value)

    @property
    def event(self) -> Event:
        if self._event is None:
            self._event = decode_event(self.message)
        return self._event


class Snapshot:
    """The ledger at one moment. `tip` is where `refs/gitcoord/tip` pointed just before."""

    __slots__ = ("commit", "event", "head", "session_oids", "sessions", "state", "tip", "trees")

    def __init__(self, reader: Reader, tip: Oid | None, commit: Commit) -> None:
        self.tip = tip
        self.commit = commit
        self.head = commit.oid
        self.event = commit.event
        self.state = State(seq=self.event.seq)
        self.trees = Trees(reader)
        self.sessions: dict[str, Object | None] = {}  # heartbeats read on the way, not yet asked for
        self.session_oids: dict[str, Oid | None] = {}


def read_snapshot(
    ctx: Context, *, agent: str = "", ahead: tuple[What, ...] = (), trusting: bool = False, copied: bool = False
) -> Snapshot:
    """The ledger now, as `_read_snapshot` says. Where a remote decides, what does not fit together here is only a copy, and
    may have been torn by a `git fetch` that was overtaken: a look there brings it in order, or shows that it is so.
    """
    try:
        return _read_snapshot(ctx, agent, ahead, trusting=trusting, copied=copied)
    except CouldNotJudge as error:
        if not ctx.remote or trusting or not _renew(ctx):
            raise error
    return _read_snapshot(ctx, agent, ahead, trusting=trusting, copied=copied)


def _renew(ctx: Context) -> bool:
    """Without the carrier's lock: whoever reads may hold the queue, which comes after it."""
    from gitcoord.ledger.remote.fetch import look
    from gitcoord.ledger.remote.mirror_store import RemoteStore

    try:
        if isinstance(ctx.store, RemoteStore):
            look(ctx)
            return True
    except ServerBehind:
        raise  # this says what is wrong, and what helps
    except GitcoordError:
        pass
    return False


def _read_snapshot(ctx: Context, agent: str, ahead: tuple[What, ...], *, trusting: bool, copied: bool) -> Snapshot:
    """The ledger now. The tip is read first: read the other way round, the two would differ under every writer.

    `agent`'s heartbeat and the parts named `ahead` are read on the way, because the rule will ask for them.
    NotInitialised if there never was a ledger here; CouldNotJudge if it is missing, rewound, foreign or no event stands
    on top. `trusting` skips what only matters for a verdict, so that people can look at a ledger that may not be used.
    """
    parts = (("file", "format"), *ahead)
    names = [TIP, LEDGER, *([session_ref(agent)] if agent else ())]
    tip, found, *beats = ctx.store.read(names, ahead=_on_the_way(parts))
    if trusting and ctx.remote and tip is not None and (found is None or found.oid != tip.oid):
        from gitcoord.ledger.remote.restored import lacks

        found = tip if found is None or lacks(ctx.store, found, tip) else found  # the newer state that was seen here
    if found is None:
        if tip is None and not ctx.settings.get("gitcoord.root"):
            _require_no_policy(ctx)
            raise NotInitialised("gitcoord is not set up in this repository", hints=("set it up: git coord init",))
        raise CouldNotJudge(f"the ledger ({LEDGER}) is missing", hints=REPAIR)
    try:
        snapshot = Snapshot(ctx.store, tip.oid if tip is not None else None, Commit(found, LEDGER))
    except Malformed as error:
        refuse_own_branch(ctx, tip is not None)
        raise CouldNotJudge(
            f"the commit on top of the ledger is no event: {error.message}", hints=error.hints + REPAIR
        ) from None
    if beats and beats[0] is not None:
        snapshot.sessions[agent] = beats[0]
    if not trusting:
        _require_ancestor(ctx, snapshot, copied=copied)
    load(ctx, snapshot, ctx.view(), *parts)
    if not trusting:
        _require_authority(ctx, snapshot, copied=copied)
    return snapshot


def refuse_own_branch(ctx: Context, noted: bool) -> None:
    """Where no trace of a ledger is left besides, the branch is the user's own, and was there before gitcoord."""
    if noted or ctx.settings.get("gitcoord.root"):
        return
    from gitcoord.ledger.setup import free_branch

    free = free_branch(ctx, "refs/remotes/origin/")
    raise NotInitialised(
        "gitcoord is not set up in this repository, and its branch 'gitcoord' is somebody's own: the ledger needs that name",
        hints=(f"rename it: git branch -m gitcoord {free}", "then set it up: git coord init"),
    )


def _require_no_policy(ctx: Context) -> None:
    """A clone of a project whose policy names a ledger has to join it: it is not one that has none."""
    if not ctx.repo.worktree:
        return
    from gitcoord.ledger.remote.membership import policy_setting

    if policy_setting(ctx, "root"):
        where = policy_setting(ctx, "authority")
        raise CouldNotJudge(
            "this project has a ledger, which this clone has not joined",
            hints=(f"join it: git coord init{'' if where else ' --remote <remote>'}",),
        )


def _on_the_way(parts: tuple[What, ...]) -> list[str]:
    """Where these parts lie as long as no directory is split into buckets."""
    paths: dict[str, None] = {"": None}
    for kind, path in parts[:_AHEAD]:
        if kind in _IN_TREE:
            for end in [index for index, char in enumerate(path) if char == "/"]:
                paths[path[:end]] = None
            paths[path] = None
    return [f"{LEDGER}:{path}" for path in list(paths)[:_AHEAD]]


def ahead_of(agent: str, items: Iterable[Item]) -> tuple[What, ...]:
    """What a rule about these items will ask for, as far as that can be known before reading."""
    whats: dict[What, None] = {("file", "halt"): None, ("file", f"agents/{agent}"): None}
    for space, name in items:
        whats.update(dict.fromkeys(parts_around(space, fold(name, case=False))))
    return tuple(whats)


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
    """What is above the tip was put there without it: by a torn transaction, a fetch, or a hand that forged it."""
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
                "use the one it belongs to: git coord init --remote <remote>",
                "make this one an authority of its own: git coord init --adopt",
            ),
        )


def settle(ctx: Context, snapshot: Snapshot, view: View, rule: Callable[[State, View], T]) -> T:
    """Run a pure rule, reading whatever it finds missing and starting it again, until it has an answer."""
    asked: set[What] = set()
    while True:
        try:
            return rule(snapshot.state, view)
        except NotLoaded as need:
            if need.what in asked:
                raise AssertionError(f"asked twice for {need.what}") from need
            asked.add(need.what)
            load(ctx, snapshot, view, need.what)


def load(ctx: Context, snapshot: Snapshot, view: View, *whats: What) -> None:
    """Read parts into the state or the view: all trees on the way together, then all files together."""
    several = [part for what in whats if what[0] == "parts" for part in zip(what[1::2], what[2::2])]
    whats = (*(what for what in whats if what[0] != "parts"), *several)
    entries = snapshot.trees.walk(snapshot.commit.tree, [what[1] for what in whats if what[0] in _IN_TREE])
    snapshot.trees.load([e.oid for e in entries.values() if e is not None and e.is_tree])
    wanted: dict[What, dict[str, Oid]] = {}
    for what in whats:
        if what[0] == "beat":
            _load_beat(ctx, snapshot, view, what[1])
        elif what[0] == "beats":
            for agent in what[1:]:
                _load_beat(ctx, snapshot, view, agent)
        elif what[0] == "head":
            view.facts[what] = ctx.store.target("HEAD") or ""
        elif what[0] == "restrictions":
            from gitcoord.policy.cache import restrictions  # of what changes something, only a claim asks for it

            view.facts[what] = restrictions(ctx, snapshot)
        elif what[0] not in _IN_TREE:
            from gitcoord.claims.facts import read_fact  # a plain claim asks for none

            read_fact(ctx, snapshot, view, what)
        else:
            wanted[what] = _files(snapshot, what, entries[what[1]])
    records = _records(ctx, {key: oid for files in wanted.values() for key, oid in files.items()})
    for what, files in wanted.items():
        _enter(snapshot, what, {key: records[key] for key in files}, entries[what[1]])


def _files(snapshot: Snapshot, what: What, entry: Entry | None) -> dict[str, Oid]:
    """The files that one part consists of."""
    kind, path = what
    if entry is None or kind == "names":
        return {}
    if entry.is_tree == (kind == "file"):
        raise CouldNotJudge(f"{path} in the ledger is not what it should be", hints=REPAIR)
    if kind == "file":
        return {path: entry.oid}
    if kind == "leaves":
        return {f"{path}/{name}": leaf.oid for name, leaf in snapshot.trees.leaves(entry.oid).items()}
    return dict(snapshot.trees.files((path + "/", entry.oid)))


def _enter(snapshot: Snapshot, what: What, records: dict[str, Record], entry: Entry | None) -> None:
    kind, path = what
    if kind == "file":
        snapshot.state.load_file(path, records.get(path))
    elif kind == "leaves":
        snapshot.state.load_leaves(path, records)
    elif kind == "below":
        snapshot.state.load_below(path, records)
    else:
        tree = entry.oid if entry is not None and entry.is_tree else None
        snapshot.state.load_names(path, sorted(snapshot.trees.children(tree)))


def _records(ctx: Context, files: dict[str, Oid]) -> dict[str, Record]:
    records = {}
    for (key, oid), found in zip(files.items(), ctx.store.read(list(files.values()))):
        if found is None or found.kind != "blob":
            raise CouldNotJudge(f"{key} in the ledger cannot be read ({oid})", hints=REPAIR)
        try:
            records[key] = decode_file(key, found.data)
        except Malformed as error:
            raise CouldNotJudge(f"{key} in the ledger: {error.message}", hints=error.hints + REPAIR) from None
    return records


def _load_beat(ctx: Context, snapshot: Snapshot, view: View, agent: str) -> None:
    """An unreadable heartbeat is none: it counts as seen for the first time, which expires nobody early."""
    found = snapshot.sessions.pop(agent, None) or ctx.store.read([session_ref(agent)])[0]
    snapshot.session_oids[agent] = found.oid if found is not None else ctx.store.resolve([session_ref(agent)])[0]
    view.beats[agent] = None
    if found is not None:
        try:
            beat = read_beat(found)
        except Malformed:
            return
        view.beats[agent] = beat if beat.agent == agent else None


def read_beat(found: Object) -> Beat:
    """The heartbeat in a session ref's object: a blob, or the message of a commit where only branches may be pushed."""
    if found.kind not in ("blob", "commit"):
        raise Malformed("no heartbeat")
    return decode_beat(found.oid, found.data if found.kind == "blob" else found.data.partition(b"\n\n")[2])


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
