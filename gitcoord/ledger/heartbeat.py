"""The next heartbeat of an agent: whether it is due, and the operation that writes it."""

from __future__ import annotations

from gitcoord.base.errors import Refused
from gitcoord.base.names import Oid, session_ref
from gitcoord.git.store import Operation, move
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import OPEN, Actor, admit_or_none, agent_record, dead, encode_heartbeat, next_heartbeat
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.startup.namedtuple import NamedTuple


class Due(NamedTuple):
    """The open session (0: none), and the operation that writes its next heartbeat (None: not due)."""

    session: int
    operation: Operation | None = None
    old: Oid | None = None


def due_heartbeat(ctx: Context, actor: Actor, confirms: int = 0) -> Due:
    """The heartbeat that the actor has to send now, with its object written. Refused if the actor was killed.

    `confirms`: the token of a grant that it confirms.
    """
    snapshot = read_snapshot(ctx)
    state, world = snapshot.state, ctx.world(snapshot)
    refusal = dead(state, world, actor.agent)
    if refusal is not None:
        raise Refused(refusal)
    record = agent_record(state, actor.agent)
    if record is None or record.state != OPEN or admit_or_none(state, actor, world) is not None:
        return Due(0)
    session = record.session
    beat = next_heartbeat(world.heartbeat(actor.agent), actor.agent, session, world, confirms=confirms)
    if beat is None:
        return Due(session)
    old = snapshot.session_oid(actor.agent)
    oid = ctx.write_heartbeat(encode_heartbeat(beat))
    ctx.store.flush()
    return Due(session, move(session_ref(actor.agent), old, oid), old)
