"""The steps that every transaction has, whoever is the authority: what to write, and what to do and tell afterwards."""

from __future__ import annotations

from gitcoord.base.codec import encode_file
from gitcoord.base.errors import CouldNotJudge, StoreError
from gitcoord.base.names import LEDGER, TIP, Oid, session_ref
from gitcoord.claims.model import FORMAT_MINOR, format_record
from gitcoord.git.store import Update, Verify, move
from gitcoord.git.tree import TreeEditor
from gitcoord.ledger.event import Decision, effects, encode_event
from gitcoord.ledger.kinds import kind_of
from gitcoord.ledger.refusal_counts import settle_refusals
from gitcoord.ledger.sessions import agent_record, encode_beat, is_torn_kill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitcoord.git.store import Operation
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.ledger.world import World

_GC_EVERY = 128


def require_known_format(snapshot: Snapshot) -> None:
    """A newer minor format may be read, not written."""
    if format_record(snapshot.state).minor > FORMAT_MINOR:
        raise CouldNotJudge("this ledger has a newer format", hints=("upgrade gitcoord on this side to write here",))


def prepare(ctx: Context, snapshot: Snapshot, decision: Decision) -> tuple[Oid, list[Operation]]:
    """Write all objects, pending until the swap or a flush; give the new head and the operations that lead there."""
    store, editor = ctx.store, TreeEditor(ctx.store, snapshot.trees)
    head, tree, state = snapshot.head, snapshot.commit.tree, snapshot.state
    wanted: dict[str, Oid | None] = {}
    for event in decision.events:
        changes = effects(state, event)
        blobs = {
            key: None if record is None else store.write("blob", encode_file(key, record))
            for key, record in changes.items()
        }
        tree = editor.edit(tree, blobs) or store.write("tree", b"")
        head = store.write("commit", event_commit(ctx, event, tree, head))
        for ref, present in kind_of(event.kind).refs(state, event).items():
            wanted[ref] = head if present else None
        state = state.patched(changes)
        state.seq = event.seq
    operations: list[Operation] = [] if head == snapshot.head else [Update(LEDGER, snapshot.head, head)]
    rows = [(ref, old, wanted[ref]) for ref, old in zip(wanted, store.resolve(list(wanted)))]
    for beat in decision.beats:
        rows.append((session_ref(beat.agent), snapshot.session_oid(beat.agent), ctx.write_beat(encode_beat(beat))))
    if operations:
        rows.append((TIP, snapshot.tip, head))
    else:
        operations.append(Verify(LEDGER, snapshot.head))  # a heartbeat counts only on the ledger that was read
    operations += [operation for row in rows if (operation := move(*row)) is not None]
    return head, operations


def event_commit(ctx: Context, event: Event, tree: Oid, parent: Oid | None) -> bytes:
    """The commit of an event, signed by its agent where the settings say so."""
    data = commit_bytes(event, tree, parent)
    if not ctx.settings.get("gitcoord.signing"):
        return data
    from gitcoord.ledger.signing import signed

    return signed(ctx, data, event.agent)


def commit_bytes(event: Event, tree: Oid, parent: Oid | None) -> bytes:
    who = f"{event.agent} <{event.agent}@gitcoord.invalid> {event.at} +0000"
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else []), f"author {who}", f"committer {who}"]
    return "\n".join(lines).encode() + b"\n\n" + encode_event(event)


def bury(snapshot: Snapshot, world: World, command: Any) -> Decision | None:
    """A tombstone that the ledger does not know is a kill that was torn: record it before anything else."""
    for agent, beat in list(snapshot.heartbeats.items()):
        if beat is not None and beat.killed:
            record = agent_record(snapshot.state, agent)
            if record is not None and is_torn_kill(record, beat):
                from gitcoord.sessions.events.kill import Kill, decide

                order = Kill(command.actor, agent, "a tombstone without a record", command.nonce)
                decision = decide(snapshot.state, order, world)
                return decision if isinstance(decision, Decision) else None
    return None


def afterwards(ctx: Context, snapshot: Snapshot, actor: str, decision: Decision) -> None:
    """Housekeeping that may be lost, and never makes a grant look failed."""
    try:
        _keep_house(ctx, snapshot, actor, decision)
    except (StoreError, OSError):
        pass


def _keep_house(ctx: Context, snapshot: Snapshot, actor: str, decision: Decision) -> None:
    """Old heartbeats, counted refusals, git's own maintenance."""
    if decision.beats:
        from gitcoord.ledger.heartbeat_gc import retire  # once a slot
    for beat in decision.beats:
        retire(ctx, beat.agent, snapshot.session_oids.get(beat.agent))
    if decision.events and ctx.settings.get("gitcoord.alert"):
        from gitcoord.ledger.alerts import alert_of_events  # only where somebody wants to know

        alert_of_events(ctx, decision.events)
    if decision.events:
        settle_refusals(ctx, actor, decision.events[0])
        if decision.events[-1].seq % _GC_EVERY == 0 and ctx.settings.flag("gitcoord.gc", default=True):
            ctx.store.maintain()


def told(snapshot: Snapshot, actor: str, decision: Decision) -> dict[str, object]:
    """The result, with what the actor lost since its last event."""
    record = agent_record(snapshot.state, actor)
    result = dict(decision.result)
    if record is not None and record.lost:
        result["lost"] = [row.to_json() for row in record.lost]
    return result
