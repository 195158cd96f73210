"""The refs that follow from the ledger's events: claim refs, heartbeats and tombstones."""

from __future__ import annotations

from gitcoord.base.codec import Malformed
from gitcoord.base.names import CLAIMS, SESSIONS, Oid, session_ref
from gitcoord.ledger.context import Context
from gitcoord.ledger.fsck import Replay, agents_of, heartbeat_of
from gitcoord.ledger.sessions import KILLED, OPEN, SLOT_MS, Agent, Heartbeat, encode_heartbeat

Row = tuple[str, "Oid | None", "Oid | None"]


def projection_rows(ctx: Context, outcome: Replay) -> list[Row]:
    """Each ref, where it is and where it should be; those that are right are left out."""
    there = ctx.store.list_refs(CLAIMS)
    rows: list[Row] = [(ref, there.get(ref), outcome.grants.get(ref)) for ref in sorted({*there, *outcome.grants})]
    known = agents_of(outcome.state)
    strangers = {
        ref: oid for ref, oid in ctx.store.list_refs(SESSIONS).items() if ref.removeprefix(SESSIONS) not in known
    }
    rows += [(ref, oid, None) for ref, oid in sorted(strangers.items())]
    for agent, record in known.items():
        rows += _session_row(ctx, agent, record)
    return [row for row in rows if row[1] != row[2]]


def _session_row(ctx: Context, agent: str, record: Agent) -> list[Row]:
    old = ctx.store.resolve([session_ref(agent)])[0]
    try:
        beat = heartbeat_of(ctx, agent)
    except Malformed:
        beat = None
    if record.state == KILLED and (beat is None or not beat.killed):
        tomb = Heartbeat("", agent, ctx.host.boot, record.session, ctx.host.mono(), ctx.host.wall(), 1, killed=1)
        return [(session_ref(agent), old, ctx.write_heartbeat(encode_heartbeat(tomb)))]
    if record.state == OPEN and beat is None:
        fresh = Heartbeat("", agent, ctx.host.boot, record.session, ctx.host.mono(), ctx.host.wall(), SLOT_MS)
        return [(session_ref(agent), old, ctx.write_heartbeat(encode_heartbeat(fresh)))]
    return []
