"""The use cases of sessions: start, stop, heartbeat."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, LockHeld, Refused, StoreError, Unreachable
from gitcoord.claims.model import Grant, claims_part
from gitcoord.git.store import SwapFailed
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision
from gitcoord.ledger.heartbeat import due_heartbeat
from gitcoord.ledger.heartbeat_gc import retire
from gitcoord.ledger.sessions import OPEN, Actor, agent_record
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World
from gitcoord.sessions.events.start import Start
from gitcoord.sessions.worktree_notes import note_claims, note_left, note_tree


def start(ctx: Context, actor: Actor, *, fresh: bool = False) -> dict[str, object]:
    """Open the actor's session, or continue the open one; `fresh` requires a session of its own.

    Claims that expired and are still free are taken again, as they were.
    """
    from gitcoord.sessions.events.start import Start
    from gitcoord.sessions.events.start import decide as decide_start

    def decide(state: State, command: Start, world: World) -> Decision:
        return decide_start(state, command._replace(again=_lost(state, world, actor.agent)), world)

    ahead = (("file", "halt"), ("file", f"agents/{actor.agent}"), claims_part(actor.agent))
    result = transact(ctx, decide, Start(actor, fresh), prefetch=ahead)
    if result["again"]:
        note_tree(ctx, actor.agent)
        note_claims(ctx, [claim for claim in result["claims"] if claim["path"] in result["again"]])
    return result


def _lost(state: State, world: World, agent: str) -> tuple[Grant, ...]:
    """The grants of claims that the agent lost by expiry since its last event."""
    record = agent_record(state, agent)
    lost = [row for row in record.lost if row.cause == "expire"] if record is not None else []
    if not lost:
        return ()
    found = world.grants(sorted({row.token for row in lost}))
    wanted = {(row.token, row.space, row.path) for row in lost}
    return tuple(row for row in found if (row.token, row.space, row.path) in wanted)


def stop(ctx: Context, actor: Actor, *, keep: bool = False) -> dict[str, object]:
    """End the session and release its claims; `keep` lets claims with uncommitted work stay until they expire.

    With `keep` it always ends: if the work cannot be compared, or the authority disagrees about it, every claim that may carry
    work stays until it expires.
    """
    from gitcoord.sessions.events.stop import Stop, decide

    try:
        return _noted(ctx, transact(ctx, decide, Stop(actor, keep)))
    except (StoreError, Refused) as error:
        if (
            not keep
            or isinstance(error, (LockHeld, Unreachable))
            or (isinstance(error, Refused) and error.code != "host")
        ):
            raise
    return _noted(ctx, transact(ctx, decide, Stop(actor, keep, blind=True)))


def _noted(ctx: Context, result: dict[str, object]) -> dict[str, object]:
    """The result of a stop. Where the session had subagents or left work, the next session here looks for it."""
    if result["stopped"]:
        note_left(ctx, str(result["agent"]))
    return result


def beat(ctx: Context, actor: Actor, *, patient: bool = False, confirms: int = 0) -> bool:
    """Send a heartbeat if one is due. True if the session is alive, False if none is open; Refused if it was killed.

    It does not queue: the swap on the agent's own ref is enough. If that fails, another process judged or sent the heartbeat.
    `patient`: the caller comes again soon, so a remote authority may get the heartbeat with the next push. `confirms`: the token
    of a grant that the heartbeat confirms.
    """
    if ctx.remote:
        from gitcoord.ledger.remote.transaction import push_heartbeat

        session = push_heartbeat(ctx, lambda: due_heartbeat(ctx, actor, confirms), actor.agent, patient=patient)
    else:
        session = _beat_here(ctx, actor, confirms)
    if session is None:
        return True
    # It counts only if the ledger, read after the swap, still has this session open.
    now = agent_record(read_snapshot(ctx).state, actor.agent)
    return bool(session) and now is not None and now.state == OPEN and now.session == session


def _beat_here(ctx: Context, actor: Actor, confirms: int) -> int | None:
    """The session of the heartbeat that was sent; 0 if none is open, None if no heartbeat was due."""
    due = due_heartbeat(ctx, actor, confirms)
    if due.operation is None:
        return None if due.session else 0
    try:
        ctx.store.swap([due.operation])
    except SwapFailed:
        pass
    else:
        retire(ctx, actor.agent, due.old)
    return due.session


def beat_quietly(ctx: Context, actor: Actor) -> None:
    """Send a heartbeat for a command that changes nothing. Failures are ignored."""
    if ctx.remote:
        from gitcoord.ledger.remote.fetch import failed_ago

        if failed_ago(ctx) is not None:
            return  # do not wait for a remote that has just failed
    try:
        beat(ctx, actor)
    except (GitcoordError, OSError):
        pass
