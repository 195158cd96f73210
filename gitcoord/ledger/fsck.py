"""fsck: replay the whole ledger with `apply`, compare tree, refs and sessions, name each difference.

The truth, in this order: the recorded root, the events that are legal one after the other, the tree they make, and the
refs that follow from it.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, NewerVersion, encode_file
from gitcoord.base.errors import CouldNotJudge, StoreError
from gitcoord.base.names import CLAIMS, LEDGER, SESSIONS, TIP, Oid, session_ref
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.loose_writer import ObjectHasher
from gitcoord.git.store import Reader, Store
from gitcoord.git.tree import TreeEditor, Trees
from gitcoord.ledger.commit import Commit, newer_ledger, refuse_newer
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event, Illegal, effects, refs_of
from gitcoord.ledger.format import format_record
from gitcoord.ledger.log import commits
from gitcoord.ledger.named_ledger import no_ledger, other_ledger
from gitcoord.ledger.sessions import KILLED, OPEN, Agent, Heartbeat, agent_records
from gitcoord.ledger.snapshot import parse_heartbeat
from gitcoord.ledger.state import Changes, State
from gitcoord.startup.annotations import Callable

Progress = Callable[[int], None]


class Replay:
    """The result of a replay: the state after the last legal event, and the commits that are no legal events.

    A commit that is not legal has no effect. Events above it count as far as they are legal without it, because their grants were
    acknowledged. A repair event names the commits that do not count.
    """

    def __init__(self) -> None:
        self.state = State()
        self.root: Oid = ""
        self.last: Commit | None = None
        self.grants: dict[str, Oid] = {}
        self.skipped: list[Oid] = []
        self.newer: NewerVersion | None = None  # of the first skipped commit that a newer version has written
        self.differences: list[str] = []
        self.count = 0
        self._gap = False  # the last commit was skipped

    def take(self, commit: Commit) -> Changes | None:
        """Replay one more commit. Gives its changes; None: it is not legal and is skipped, until a repair event names it."""
        self.root = self.root or commit.oid
        try:
            event = commit.event
            if len(commit.parents) > 1:
                raise Illegal(f"commit {commit.oid} is a merge")
            if event.kind == "repair":
                self._require_named(event)
            seq = self.state.seq
            if self._gap and event.seq > seq and event.kind != "repair":
                self.state.seq = event.seq - 1  # the skipped commit may have been an epoch
            try:
                changes = effects(self.state, event)
            finally:
                self.state.seq = seq
        except (CouldNotJudge, LookupError, TypeError, ValueError, AttributeError) as error:
            self._skip(commit, error)
            return None
        if event.kind == "repair":
            self._accept_repair()
        for ref, present in refs_of(self.state, event).items():
            if present:
                self.grants[ref] = commit.oid
            else:
                self.grants.pop(ref, None)
        self.state.patch(changes)
        self.state.seq = event.seq
        self.last = commit
        self.count += 1
        self._gap = False
        return changes

    def _skip(self, commit: Commit, why: Exception) -> None:
        if isinstance(why, NewerVersion):
            self.newer = self.newer or why
        self.skipped.append(commit.oid)
        self.differences.append(f"commit {commit.oid[:12]} is no legal event: {why}")
        self._gap = True

    def _require_named(self, event: Event) -> None:
        """Illegal unless the repair event names the skipped commits."""
        if event.body["skipped"] != self.skipped:
            raise Illegal(f"event {event.seq} stands on a commit that is no event")

    def _accept_repair(self) -> None:
        self.differences = self.differences[: len(self.differences) - len(self.skipped)]
        self.skipped, self.newer = [], None


def replay(ctx: Context, reader: Reader, progress: Progress | None = None, start: str = LEDGER) -> Replay:
    outcome = Replay()
    for commit in commits(ctx, reader, oldest_first=True, start=start):
        outcome.take(commit)
        if progress is not None and outcome.count % 1000 == 0:
            progress(outcome.count)
    return outcome


def fsck(ctx: Context, reader: Reader | None = None, progress: Progress | None = None) -> dict[str, object]:
    """Every difference between what the events say and what is there. Changes nothing."""
    found, _ = examine(ctx, reader or ctx.store, progress)
    return {"clean": not found["differences"], **found}


def examine(ctx: Context, reader: Reader, progress: Progress | None = None) -> tuple[dict[str, object], Replay]:
    head, tip = ctx.store.resolve([LEDGER, TIP])
    if head is None:
        if tip is None and not ctx.settings.get("gitcoord.root"):
            raise no_ledger(ctx)
        return {"differences": [f"the ledger ({LEDGER}) is missing", *_lacking(ctx)], "events": 0}, Replay()
    differences = []
    if tip is None:
        differences.append(f"{TIP} is missing")
    elif tip != head:
        behind = is_ancestor(ctx.repo.env, tip, head)
        differences.append(
            f"{TIP} is behind the ledger"
            if behind
            else "the ledger was rewound or replaced: its recorded tip is not in it"
        )
        differences += [] if behind else _lacking(ctx)
    try:
        outcome = replay(ctx, reader, progress)
    except StoreError as error:
        return {"differences": [*differences, error.message], "events": 0}, Replay()
    if outcome.newer is not None:
        raise newer_ledger(outcome.newer)
    refuse_newer(ctx.store, head)
    differences += outcome.differences
    known = ctx.settings.get("gitcoord.root")
    if known and outcome.root != known:
        differences.append(f"the ledger begins at {outcome.root[:12]}, not at {known[:12]} as recorded")
    if outcome.last is not None:
        other = other_ledger(ctx, format_record(outcome.state).sync)
        differences += [other.message] if other is not None else []
        differences += tree_differences(ctx, outcome)
        differences += _ref_differences(ctx, outcome)
        differences += _session_differences(ctx, outcome.state)
    return {"differences": differences, "events": outcome.count, "seq": outcome.state.seq}, outcome


def _lacking(ctx: Context) -> list[str]:
    """The events that the authority's server has lost."""
    if not ctx.remote:
        return []
    from gitcoord.ledger.remote.server_behind import differences

    return differences(ctx)


def tree_differences(ctx: Context, outcome: Replay) -> list[str]:
    assert outcome.last is not None
    hasher: Store = ObjectHasher(ctx.store.oid_length)  # type: ignore[assignment]
    wanted = blobs_of(hasher, outcome.state)
    shape = TreeEditor(hasher, Trees(hasher)).edit(None, dict(wanted))
    try:
        files = dict(Trees(ctx.store).files(("", outcome.last.tree)))
    except StoreError as error:
        return [error.message]
    if shape == outcome.last.tree:
        return _unreadable(ctx, outcome.state, files)
    found = [f"{key} is missing from the ledger's tree" for key in sorted(wanted.keys() - files.keys())]
    found += [f"{key} is in the ledger's tree but not in its events" for key in sorted(files.keys() - wanted.keys())]
    found += [
        f"{key} differs from what the events say"
        for key in sorted(wanted)
        if files.get(key, wanted[key]) != wanted[key]
    ]
    return found or ["the ledger's tree has another shape than its content asks for"]


def _unreadable(ctx: Context, state: State, files: dict[str, Oid]) -> list[str]:
    """The missing or damaged files of a tree with the right id."""
    found = []
    for key, oid in files.items():
        try:
            (blob,) = ctx.store.read([oid])
        except StoreError:
            blob = None
        if blob is None or blob.data != encode_file(key, state.files[key] or {}):
            found.append(f"{key} in the ledger cannot be read ({oid})")
    return found


def blobs_of(store: Store, state: State) -> dict[str, Oid]:
    return {
        key: store.write("blob", encode_file(key, record)) for key, record in state.files.items() if record is not None
    }


def _ref_differences(ctx: Context, outcome: Replay) -> list[str]:
    if ctx.remote and ctx.settings.get("gitcoord.namespaces") == "branches":
        return []  # the host keeps none, and this clone only those that it made itself
    there = ctx.store.list_refs(CLAIMS)
    wanted = outcome.grants
    found = [f"{ref} is missing" for ref in sorted(wanted.keys() - there.keys())]
    found += [f"{ref} stands for no claim" for ref in sorted(there.keys() - wanted.keys())]
    found += [
        f"{ref} does not point at its grant"
        for ref in sorted(wanted.keys() & there.keys())
        if wanted[ref] != there[ref]
    ]
    return found


def agents_of(state: State) -> dict[str, Agent]:
    return {record.agent: record for record in agent_records(state)}


def _session_differences(ctx: Context, state: State) -> list[str]:
    found = []
    known = agents_of(state)
    there = ctx.store.list_refs(SESSIONS)
    for ref in sorted(there):
        agent = ref.removeprefix(SESSIONS)
        try:
            beat = heartbeat_of(ctx, agent)
        except Malformed:
            found.append(f"{ref} is no heartbeat")
            continue
        if beat is None:
            found.append(f"{ref} cannot be read")
            continue
        record = known.get(agent)
        if record is None:
            found.append(f"{ref} belongs to no agent")
        elif record.state == KILLED and beat is not None and not beat.killed:
            found.append(f"{ref} should be a tombstone: '{agent}' was killed")
        elif record.state == OPEN and beat is not None and beat.killed and beat.session == record.session:
            found.append(f"{ref} is a tombstone, but the ledger has no kill of '{agent}'")
    found += [
        f"{session_ref(a)} is missing"
        for a, r in sorted(known.items())
        if r.state in (OPEN, KILLED) and session_ref(a) not in there
    ]
    return found


def heartbeat_of(ctx: Context, agent: str) -> Heartbeat | None:
    (found,) = ctx.store.read([session_ref(agent)])
    return None if found is None else parse_heartbeat(found)
