"""The use cases of sessions: start, stop, the heartbeat; and of those who watch over them: kill, revive, halt, sweep."""

from gitcoord.app.ledger import read_snapshot, settle
from gitcoord.app.retired import retire
from gitcoord.app.transact import transact
from gitcoord.core.kinds import kind_module
from gitcoord.core.sessions import OPEN, admit_or_none, agent_record, dead, encode_beat, next_beat
from gitcoord.errors import GitcoordError, Refused
from gitcoord.names import session_ref
from gitcoord.store.interface import SwapFailed, move

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.core.sessions import Actor


def start(ctx: "Context", actor: "Actor", *, fresh: bool = False) -> "dict[str, object]":
    """Open the actor's session, or go on with the open one; `fresh` insists on one of its own."""
    kind = kind_module("start")
    return transact(ctx, kind.decide, kind.Start(actor, fresh))


def stop(ctx: "Context", actor: "Actor", *, keep: bool = False) -> "dict[str, object]":
    """End the session and release what it holds; `keep` leaves claims with uncommitted work to their ttl."""
    kind = kind_module("stop")
    return transact(ctx, kind.decide, kind.Stop(actor, keep))


def kill(ctx: "Context", actor: "Actor", target: str, reason: str) -> "dict[str, object]":
    kind = kind_module("kill")
    return transact(ctx, kind.decide, kind.Kill(actor, target, reason))


def revive(ctx: "Context", actor: "Actor", target: str) -> "dict[str, object]":
    kind = kind_module("revive")
    return transact(ctx, kind.decide, kind.Revive(actor, target))


def halt(ctx: "Context", actor: "Actor", reason: str) -> "dict[str, object]":
    kind = kind_module("halt")
    return transact(ctx, kind.decide, kind.Halt(actor, reason))


def unhalt(ctx: "Context", actor: "Actor") -> "dict[str, object]":
    kind = kind_module("unhalt")
    return transact(ctx, kind.decide, kind.Unhalt(actor))


def sweep(ctx: "Context", actor: "Actor") -> "dict[str, object]":
    """Expire every claim whose holder has been silent for longer than the claim survives."""
    kind = kind_module("expire")
    return transact(ctx, kind.decide, kind.Sweep(actor))


def beat(ctx: "Context", actor: "Actor") -> bool:
    """A heartbeat, if one is due. True if the session is alive, False if there is none open; Refused if it was killed.

    It does not queue: the swap on the agent's own ref is enough, and whoever moved that ref judged it or beat for us.
    """
    snapshot = read_snapshot(ctx)
    view = ctx.view()
    refusal = settle(ctx, snapshot, view, lambda state, view: dead(state, view, actor.agent))
    if refusal is not None:
        raise Refused(refusal)
    record = settle(ctx, snapshot, view, lambda state, view: agent_record(state, actor.agent))
    stranger = settle(ctx, snapshot, view, lambda state, view: admit_or_none(state, actor, view))
    if record is None or record["state"] != OPEN or stranger is not None:
        return False
    due = settle(
        ctx, snapshot, view, lambda state, view: next_beat(view.beat(actor.agent), actor.agent, record["session"], view)
    )
    if due is None:
        return True
    old = snapshot.session_oids[actor.agent]
    oid = ctx.store.write("blob", encode_beat(due))
    ctx.store.flush()
    operation = move(session_ref(actor.agent), old, oid)
    if operation is None:
        return True
    try:
        ctx.store.swap([operation])
    except SwapFailed:
        pass
    else:
        retire(ctx, actor.agent, old)
    # It counts only if the ledger, read after the swap, still shows what it keeps alive.
    after = read_snapshot(ctx)
    now = settle(ctx, after, ctx.view(), lambda state, view: agent_record(state, actor.agent))
    return now is not None and now["state"] == OPEN and now["session"] == record["session"]


def beat_quietly(ctx: "Context", actor: "Actor") -> None:
    """The heartbeat that rides on a command which only looks: its failure is not that command's."""
    try:
        beat(ctx, actor)
    except (GitcoordError, OSError):
        pass
