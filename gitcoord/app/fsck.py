"""fsck: replay the whole ledger with `apply`, compare tree, refs and sessions, name each difference, mend on request.

The truth, in this order: the recorded root, the events that are legal one after the other, the tree they make, and the
refs that follow from it. What is mended is never thrown away: a ledger that is replaced stays below refs/gitcoord/lost/.
"""

from gitcoord.app.ledger import Commit
from gitcoord.app.log import commits
from gitcoord.app.transact import commit_bytes
from gitcoord.core.codec import Malformed, encode_file
from gitcoord.core.events import Event, Illegal, effects
from gitcoord.core.kinds import kind_module
from gitcoord.core.kinds.epoch import LEAP
from gitcoord.core.sessions import KILLED, OPEN, Beat, decode_beat, encode_beat
from gitcoord.core.state import State
from gitcoord.errors import CouldNotJudge, NotInitialised, StoreError
from gitcoord.names import CLAIMS, LEDGER, LOST, SESSIONS, TIP, Oid, session_ref
from gitcoord.store.interface import SwapFailed, Verify, move
from gitcoord.store.objects import framed, hasher
from gitcoord.store.process import run
from gitcoord.store.tree import TreeEditor, Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gitcoord.app.context import Context
    from gitcoord.core.codec import Record
    from gitcoord.core.sessions import Actor
    from gitcoord.store.interface import Object, Reader, Store

    Progress = Callable[[int], None]


class Replay:
    """The outcome of replaying: the state, where it stands, what stood in between that is no event."""

    def __init__(self) -> None:
        self.state = State(complete=True)
        self.root: Oid = ""
        self.last: Commit | None = None
        self.grants: dict[str, Oid] = {}
        self.skipped: list[Oid] = []
        self.differences: list[str] = []
        self.count = 0

    def take(self, commit: Commit) -> None:
        """One commit more. What is not legal is set aside; a repair event that names it makes it good."""
        self.root = self.root or commit.oid
        try:
            event = commit.event
            if len(commit.parents) > 1:
                raise Illegal(f"commit {commit.oid} is a merge")
            named = event.body["skipped"] if event.kind == "repair" else []
            if named != self.skipped:
                raise Illegal(f"event {event.seq} stands on a commit that is no event")
            changes = effects(self.state, event)
        except (Malformed, Illegal, KeyError, TypeError, ValueError, CouldNotJudge) as error:
            self.skipped.append(commit.oid)
            self.differences.append(f"commit {commit.oid[:12]} is no legal event: {error}")
            return
        if self.skipped:
            del self.differences[-len(self.skipped) :]
            self.skipped = []
        for ref, present in kind_module(event.kind).refs(self.state, event).items():
            if present:
                self.grants[ref] = commit.oid
            else:
                self.grants.pop(ref, None)
        self.state.patch(changes)
        self.state.seq = event.seq
        self.last = commit
        self.count += 1


def replay(ctx: "Context", reader: "Reader", progress: "Progress | None" = None) -> Replay:
    outcome = Replay()
    for commit in commits(ctx, reader, oldest_first=True):
        outcome.take(commit)
        if progress is not None and outcome.count % 1000 == 0:
            progress(outcome.count)
    return outcome


def fsck(ctx: "Context", reader: "Reader | None" = None, progress: "Progress | None" = None) -> "dict[str, object]":
    """Every difference between what the events say and what is there. Changes nothing."""
    found, _ = examine(ctx, reader or ctx.store, progress)
    return {"clean": not found["differences"], **found}


def examine(ctx: "Context", reader: "Reader", progress: "Progress | None" = None) -> "tuple[dict[str, object], Replay]":
    head, tip = ctx.store.resolve([LEDGER, TIP])
    if head is None:
        if tip is None and not ctx.settings.get("gitcoord.root"):
            raise NotInitialised("gitcoord is not set up in this repository", hints=("set it up: git coord init",))
        return {"differences": [f"the ledger ({LEDGER}) is missing"], "events": 0}, Replay()
    differences = []
    if tip is None:
        differences.append(f"{TIP} is missing")
    elif tip != head:
        behind = _is_ancestor(ctx, tip, head)
        differences.append(
            f"{TIP} is behind the ledger"
            if behind
            else "the ledger was rewound or replaced: its recorded tip is not in it"
        )
    try:
        outcome = replay(ctx, reader, progress)
    except StoreError as error:
        return {"differences": [*differences, error.message], "events": 0}, Replay()
    differences += outcome.differences
    known = ctx.settings.get("gitcoord.root")
    if known and outcome.root != known:
        differences.append(f"the ledger begins at {outcome.root[:12]}, not at {known[:12]} as recorded")
    if outcome.last is not None:
        differences += _tree_differences(ctx, outcome)
        differences += _ref_differences(ctx, outcome)
        differences += _session_differences(ctx, outcome.state)
    return {"differences": differences, "events": outcome.count, "seq": outcome.state.seq}, outcome


def _is_ancestor(ctx: "Context", old: Oid, new: Oid) -> bool:
    code, _, _ = run(["git", "--no-replace-objects", "merge-base", "--is-ancestor", old, new], ctx.repo.env)
    return code == 0


class _Scales:
    """A store that only weighs: it tells the id that an object would have."""

    def __init__(self, oid_length: int) -> None:
        self.oid_length = oid_length
        self._hash = hasher(oid_length)

    def read(self, names: "Sequence[str]") -> "list[Object | None]":
        return [None for _ in names]

    def write(self, kind: str, data: bytes) -> Oid:
        oid: Oid = self._hash(framed(kind, data)).hexdigest()
        return oid


def _tree_differences(ctx: "Context", outcome: Replay) -> list[str]:
    assert outcome.last is not None
    scales: Store = _Scales(ctx.store.oid_length)  # type: ignore[assignment]
    wanted = _blobs(scales, outcome.state)
    shape = TreeEditor(scales, Trees(scales)).edit(None, dict(wanted))
    if shape == outcome.last.tree:
        return []
    try:
        files = dict(Trees(ctx.store).files(("", outcome.last.tree)))
    except StoreError as error:
        return [error.message]
    found = [f"{key} is missing from the ledger's tree" for key in sorted(wanted.keys() - files.keys())]
    found += [f"{key} is in the ledger's tree but not in its events" for key in sorted(files.keys() - wanted.keys())]
    found += [
        f"{key} differs from what the events say"
        for key in sorted(wanted)
        if files.get(key, wanted[key]) != wanted[key]
    ]
    return found or ["the ledger's tree has another shape than its content asks for"]


def _blobs(store: "Store", state: State) -> "dict[str, Oid]":
    return {
        key: store.write("blob", encode_file(key, record)) for key, record in state.files.items() if record is not None
    }


def _ref_differences(ctx: "Context", outcome: Replay) -> list[str]:
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


def _agents(state: State) -> "dict[str, Record]":
    return {
        record["agent"]: record
        for key, record in state.files.items()
        if record is not None and key.startswith("agents/")
    }


def _session_differences(ctx: "Context", state: State) -> list[str]:
    found = []
    known = _agents(state)
    there = ctx.store.list_refs(SESSIONS)
    for ref in sorted(there):
        agent = ref.removeprefix(SESSIONS)
        try:
            beat = _beat(ctx, agent)
        except Malformed:
            found.append(f"{ref} is no heartbeat")
            continue
        record = known.get(agent)
        if record is None:
            found.append(f"{ref} belongs to no agent")
        elif record["state"] == KILLED and beat is not None and not beat.killed:
            found.append(f"{ref} should be a tombstone: '{agent}' was killed")
        elif record["state"] == OPEN and beat is not None and beat.killed and beat.session == record["session"]:
            found.append(f"{ref} is a tombstone, but the ledger has no kill of '{agent}'")
    found += [
        f"{session_ref(a)} is missing"
        for a, r in sorted(known.items())
        if r["state"] in (OPEN, KILLED) and session_ref(a) not in there
    ]
    return found


def _beat(ctx: "Context", agent: str) -> "Beat | None":
    (found,) = ctx.store.read([session_ref(agent)])
    return None if found is None else decode_beat(found.oid, found.data)


# --- repair -------------------------------------------------------------------------------------------------------


def repair(ctx: "Context", actor: "Actor", reader: "Reader | None" = None) -> "dict[str, object]":
    """Mend what `fsck` names, under the writers' queue; tells what was done and what is left."""
    done: list[str] = []
    with ctx.queue():
        _clear_locks(ctx, done)
        _restore_ledger(ctx, actor, done)
        _, outcome = examine(ctx, reader or ctx.store)
        _append_repair(ctx, actor, outcome, done)
        _, outcome = examine(ctx, reader or ctx.store)
        _project(ctx, outcome, done)
    found, _ = examine(ctx, reader or ctx.store)
    return {"clean": not found["differences"], "repaired": done, **found}


def _clear_locks(ctx: "Context", done: list[str]) -> None:
    if ctx.store.recover([Verify(LEDGER, ""), Verify(TIP, "")]):
        done.append("removed lock files of a dead git process")


def _swap(ctx: "Context", *rows: "tuple[str, Oid | None, Oid | None]") -> None:
    operations = [operation for row in rows if (operation := move(*row)) is not None]
    if operations:
        try:
            ctx.store.swap(operations)
        except SwapFailed as failure:
            raise StoreError(
                f"the repair could not move the refs: {failure.message}", hints=("run it again",)
            ) from None


def _restore_ledger(ctx: "Context", actor: "Actor", done: list[str]) -> None:
    """A ledger that is gone, rewound or replaced goes back to its recorded tip; without one, to the newest grant left."""
    head, tip = ctx.store.resolve([LEDGER, TIP])
    if tip is not None and head is not None and (head == tip or _is_ancestor(ctx, tip, head)):
        return
    if tip is not None:
        if head is not None and not _is_ancestor(ctx, head, tip):
            _swap(ctx, (LOST + head, ctx.store.resolve([LOST + head])[0], head))
            done.append(f"kept the replaced ledger at {LOST}{head}")
        _swap(ctx, (LEDGER, head, tip))
        done.append(f"put the ledger back to its recorded tip {tip[:12]}")
        return
    if head is not None:
        return  # only the tip is missing: it is set again below
    newest = _newest_grant(ctx)
    if newest is None:
        raise CouldNotJudge(
            "no trace of the ledger is left in this repository", hints=("restore it from a backup or a clone",)
        )
    # Events after this one may be lost: leap, so that none of their tokens is ever given again.
    event = Event(
        "epoch",
        newest.event.seq + LEAP,
        actor.agent,
        ctx.host.wall(),
        ctx.host.random(),
        0,
        {"reason": "the ledger was lost"},
    )
    commit = ctx.store.write("commit", commit_bytes(event, newest.tree, newest.oid))
    ctx.store.flush()
    _swap(ctx, (LEDGER, None, commit), (TIP, None, commit))
    done.append(f"restored the ledger from the newest claim left ({newest.oid[:12]}) and leapt to event {event.seq}")


def _newest_grant(ctx: "Context") -> "Commit | None":
    best: Commit | None = None
    for found in ctx.store.read(sorted(set(ctx.store.list_refs(CLAIMS).values()))):
        try:
            commit = Commit(found, "a claim")
            if best is None or commit.event.seq > best.event.seq:
                best = commit
        except CouldNotJudge:
            continue
    return best


def _append_repair(ctx: "Context", actor: "Actor", outcome: Replay, done: list[str]) -> None:
    """Go on over commits that are no events, or over a tree that its events did not make."""
    if outcome.last is None:
        return
    head = ctx.store.resolve([LEDGER])[0]
    assert head is not None
    if not outcome.skipped and not _tree_differences(ctx, outcome):
        return
    tree = TreeEditor(ctx.store, Trees(ctx.store)).edit(None, dict(_blobs(ctx.store, outcome.state)))
    assert tree is not None
    body = {"skipped": outcome.skipped, "reason": "fsck --repair"}
    event = Event("repair", outcome.state.seq + 1, actor.agent, ctx.host.wall(), ctx.host.random(), 0, body)
    commit = ctx.store.write("commit", commit_bytes(event, tree, head))
    ctx.store.flush()
    _swap(ctx, (LEDGER, head, commit), (TIP, ctx.store.resolve([TIP])[0], commit))
    done.append(f"appended repair event {event.seq} over {len(outcome.skipped)} commit(s)")


def _project(ctx: "Context", outcome: Replay, done: list[str]) -> None:
    """Claim refs, tip and tombstones as the events say."""
    if outcome.last is None:
        return
    head, tip = ctx.store.resolve([LEDGER, TIP])
    there = ctx.store.list_refs(CLAIMS)
    rows = [(ref, there.get(ref), outcome.grants.get(ref)) for ref in sorted({*there, *outcome.grants})]
    rows.append((TIP, tip, head))
    for agent, record in _agents(outcome.state).items():
        rows += _session_row(ctx, agent, record)
    changed = [row for row in rows if row[1] != row[2]]
    ctx.store.flush()
    if changed:
        _swap(ctx, *changed)
        done.append(f"set {len(changed)} ref(s) again")


def _session_row(ctx: "Context", agent: str, record: "Record") -> "list[tuple[str, Oid | None, Oid | None]]":
    old = ctx.store.resolve([session_ref(agent)])[0]
    try:
        beat = _beat(ctx, agent)
    except Malformed:
        beat = None
    if record["state"] == KILLED and (beat is None or not beat.killed):
        tomb = Beat("", agent, ctx.host.boot, record["session"], ctx.host.mono(), ctx.host.wall(), 1, killed=1)
        return [(session_ref(agent), old, ctx.store.write("blob", encode_beat(tomb)))]
    if record["state"] == OPEN and beat is None:
        fresh = Beat("", agent, ctx.host.boot, record["session"], ctx.host.mono(), ctx.host.wall(), 30_000)
        return [(session_ref(agent), old, ctx.store.write("blob", encode_beat(fresh)))]
    return []
