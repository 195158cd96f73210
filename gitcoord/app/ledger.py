"""Reading the ledger: where it stands, whether it may be trusted, and the parts of it that a rule asked for."""

from gitcoord.app.facts import read_fact
from gitcoord.core.claims import format_record
from gitcoord.core.codec import Malformed, decode_file
from gitcoord.core.events import decode_event
from gitcoord.core.sessions import decode_beat
from gitcoord.core.state import NotLoaded, State
from gitcoord.errors import CouldNotJudge, NotInitialised
from gitcoord.names import LEDGER, TIP, Oid, is_oid, session_ref
from gitcoord.store.tree import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from gitcoord.app.context import Context
    from gitcoord.core.codec import Record
    from gitcoord.core.events import Event
    from gitcoord.core.state import View
    from gitcoord.store.interface import Object, Reader

    T = TypeVar("T")

_WALK = 10_000
REPAIR = ("look at it: git coord fsck; mend it: git coord fsck --repair",)


class Commit:
    """A ledger commit, taken apart. `event` raises Malformed where the commit is none."""

    __slots__ = ("oid", "tree", "parents", "message")

    def __init__(self, found: "Object | None", name: str) -> None:
        if found is None or found.kind != "commit":
            raise CouldNotJudge(f"{name} is not a commit that can be read", hints=REPAIR)
        head, _, self.message = found.data.partition(b"\n\n")
        self.oid: Oid = found.oid
        self.tree: Oid = ""
        self.parents: list[Oid] = []
        for line in head.decode("utf-8", "surrogateescape").split("\n"):
            key, _, value = line.partition(" ")
            if key == "tree":
                self.tree = value
            elif key == "parent":
                self.parents.append(value)

    @property
    def event(self) -> "Event":
        return decode_event(self.message)


class Snapshot:
    """The ledger at one moment. `tip` is where `refs/gitcoord/tip` pointed just before."""

    __slots__ = ("tip", "head", "commit", "event", "state", "trees", "blobs", "session_oids", "git_head")

    def __init__(self, reader: "Reader", tip: "Oid | None", git_head: "Oid | None", commit: Commit) -> None:
        self.tip = tip
        self.git_head = git_head
        self.commit = commit
        self.head = commit.oid
        self.event = commit.event
        self.state = State(seq=self.event.seq)
        self.trees = Trees(reader)
        self.session_oids: dict[str, Oid | None] = {}


def read_snapshot(ctx: "Context", *, trusting: bool = False, copied: bool = False) -> Snapshot:
    """The ledger now. The tip is read first: read the other way round, the two would differ under every writer.

    NotInitialised if there never was one here; CouldNotJudge if it is missing, rewound, foreign or no event stands on
    top. `trusting` skips what only matters for a verdict, so that people can look at a ledger that may not be used.
    """
    tip, git_head = ctx.store.resolve([TIP, "HEAD"])
    (found,) = ctx.store.read([LEDGER])
    if found is None:
        if tip is None and not ctx.settings.get("gitcoord.root"):
            raise NotInitialised("gitcoord is not set up in this repository", hints=("set it up: git coord init",))
        raise CouldNotJudge(f"the ledger ({LEDGER}) is missing", hints=REPAIR)
    try:
        snapshot = Snapshot(ctx.store, tip, git_head, Commit(found, LEDGER))
    except Malformed as error:
        raise CouldNotJudge(f"the commit on top of the ledger is no event: {error.message}", hints=error.hints + REPAIR) from None
    if not trusting:
        _require_ancestor(ctx, snapshot)
        _require_authority(ctx, snapshot, copied=copied)
    return snapshot


def _require_ancestor(ctx: "Context", snapshot: Snapshot) -> None:
    """A tip among the ledger's ancestors is fine: a writer was between its two refs."""
    if snapshot.tip in (None, snapshot.head):
        return
    commit = snapshot.commit
    for _ in range(_WALK):
        if snapshot.tip in commit.parents:
            return
        if len(commit.parents) != 1:
            break
        commit = Commit(ctx.store.read(commit.parents)[0], "the ledger's history")
    raise CouldNotJudge("the ledger was rewound or replaced: its recorded tip is not in it", hints=REPAIR)


def _require_authority(ctx: "Context", snapshot: Snapshot, *, copied: bool) -> None:
    load(ctx, snapshot, ctx.view(), ("file", "format"))
    record = format_record(snapshot.state)
    known = ctx.settings.get("gitcoord.ledger")
    if known and known != record["ledger"]:
        raise CouldNotJudge("this is not the ledger that was set up here", hints=REPAIR)
    if record["authority"] != ctx.authority() and not copied:
        raise CouldNotJudge(
            "this repository is a copy: its ledger belongs to another one",
            hints=("make this one an authority of its own: git coord init --adopt",),
        )


def settle(ctx: "Context", snapshot: Snapshot, view: "View", rule: "Callable[[State, View], T]") -> "T":
    """Run a pure rule, reading whatever it finds missing and starting it again, until it has an answer."""
    asked: set[tuple[str, ...]] = set()
    while True:
        try:
            return rule(snapshot.state, view)
        except NotLoaded as need:
            if need.what in asked:
                raise AssertionError(f"asked twice for {need.what}") from need
            asked.add(need.what)
            load(ctx, snapshot, view, need.what)


def load(ctx: "Context", snapshot: Snapshot, view: "View", what: "tuple[str, ...]") -> None:
    """Read one part into the state or the view."""
    kind, state, trees = what[0], snapshot.state, snapshot.trees
    if kind == "beat":
        _load_beat(ctx, snapshot, view, what[1])
    elif kind == "file":
        entry = trees.find(snapshot.commit.tree, what[1])
        found = _records(ctx, {what[1]: entry.oid}) if entry is not None and not entry.is_tree else {}
        state.load_file(what[1], found.get(what[1]))
    elif kind in ("leaves", "below", "names"):
        entry = trees.find(snapshot.commit.tree, what[1])
        root = entry.oid if entry is not None and entry.is_tree else None
        if kind == "names":
            state.load_names(what[1], sorted(trees.children(root)))
        elif kind == "leaves":
            leaves = {f"{what[1]}/{name}": e.oid for name, e in trees.leaves(root).items()}
            state.load_leaves(what[1], _records(ctx, leaves))
        else:
            files = {f"{what[1]}/{path}": oid for path, oid in trees.files(root)}
            state.load_below(what[1], _records(ctx, files))
    else:
        read_fact(ctx, snapshot, view, what)


def _records(ctx: "Context", files: "dict[str, Oid]") -> "dict[str, Record]":
    records = {}
    for (key, oid), found in zip(files.items(), ctx.store.read(list(files.values()))):
        if found is None or found.kind != "blob":
            raise CouldNotJudge(f"{key} in the ledger cannot be read ({oid})", hints=REPAIR)
        try:
            records[key] = decode_file(key, found.data)
        except Malformed as error:
            raise CouldNotJudge(f"{key} in the ledger: {error.message}", hints=error.hints + REPAIR) from None
    return records


def _load_beat(ctx: "Context", snapshot: Snapshot, view: "View", agent: str) -> None:
    """An unreadable heartbeat is none: it counts as seen for the first time, which expires nobody early."""
    (found,) = ctx.store.read([session_ref(agent)])
    snapshot.session_oids[agent] = found.oid if found is not None else ctx.store.resolve([session_ref(agent)])[0]
    view.beats[agent] = None
    if found is not None and found.kind == "blob":
        try:
            beat = decode_beat(found.oid, found.data)
        except Malformed:
            return
        view.beats[agent] = beat if beat.agent == agent else None


def history(ctx: "Context", start: Oid, stop: "Oid | None" = None, limit: int = _WALK) -> "list[Commit]":
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
