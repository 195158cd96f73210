"""The use cases of `git claim`: take, wait, leave, release, takeover."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Refused
from gitcoord.base.names import printable, shell_word, shown
from gitcoord.claims.model import Claim, Item
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import parts_for, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World
from gitcoord.sessions.worktree_notes import left_here, note_claims, note_tree
from gitcoord.startup.annotations import Any, Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.claims.events.leave import Leave
    from gitcoord.claims.events.wait import Wait
    from gitcoord.claims.take import Take  # a release does not load it


def take(ctx: Context, command: Take) -> dict[str, object]:
    """Grant all items, or raise Refused with every holder. Harmless to repeat."""
    ahead = parts_for(command.actor.agent, command.items)
    try:
        result = transact(ctx, _decide_take, command, prefetch=ahead)
    except Refused as refused:
        held: list[dict[str, object]] = refused.data.get("held", [])  # type: ignore[assignment]
        inherited = _inherited(ctx, command.actor, held) if refused.code == "held" else []
        if not inherited:
            raise
        result = {**transact(ctx, _decide_take, command, prefetch=ahead), "inherited": inherited}
    note_tree(ctx, command.actor.agent)
    if not result["renewed"]:
        note_claims(ctx, result["claims"])
    return _with_left(ctx, result)


def wait(ctx: Context, command: Wait, *, again: bool = False) -> dict[str, object]:
    """Grant all items, or a place in the queue (`waiting` in the result). Harmless to repeat: the place stays the same. `again`: it has a
    place already."""
    ahead = parts_for(command.actor.agent, command.items)
    result = transact(ctx, _decide_wait, command, prefetch=ahead, yields=not again)
    from gitcoord.claims.news import forget_waits, note_wait

    if "waiting" in result:
        ctx.host.defer_interrupts(False)  # it goes on after its first event
        inherited = _inherited(ctx, command.actor, result["held"])
        if not inherited:
            note_wait(ctx, command.actor.agent, result["ticket"], command.items)
            return _with_left(ctx, result)
        return wait(ctx, command) | {"inherited": inherited}
    forget_waits(ctx, command.actor.agent, command.items)
    note_tree(ctx, command.actor.agent)
    note_claims(ctx, result["claims"])
    return _with_left(ctx, result)


def leave(ctx: Context, command: Leave, *, gives_back: bool = True) -> dict[str, object]:
    """Withdraw requests. `gives_back`: release also what was granted meanwhile and not confirmed. Harmless to repeat."""
    from gitcoord.claims.events.leave import decide
    from gitcoord.claims.news import forget_waits

    result = transact(ctx, decide, command, prefetch=parts_for(command.actor.agent, command.items))
    forget_waits(ctx, command.actor.agent, command.items or None)
    granted = result.pop("unconfirmed")
    if granted and gives_back:
        result["returned"] = give_back(ctx, command.actor, granted)
    return result


def give_back(ctx: Context, actor: Actor, granted: list[Claim]) -> list[Record]:
    """Give back grants that the agent does not want any more. What it held before in a weaker mode, it holds again."""
    rows: list[Record] = []
    for claim, weaker in ((claim, claim.weaker()) for claim in granted):
        if weaker is not None:
            take_weaker(ctx, actor, weaker)
            nothing: Record = {"commit": "", "base": claim.base, "files": [], "landed": [], "kind": claim.space}
            rows.append({"path": shown(claim.path, claim.space), "token": claim.token, **nothing, "mode": weaker.mode})
    new = tuple(claim.item for claim in granted if claim.weaker() is None)
    released: list[Record] = release(ctx, actor, new, dirty=True)["released"] if new else []  # type: ignore[assignment]
    return rows + released


def take_weaker(ctx: Context, actor: Actor, weaker: Claim) -> None:
    """Hold this item again as it was held before."""
    from gitcoord.claims.take import Take, decide

    said = (weaker.mode, weaker.ttl, weaker.expected, weaker.reason, weaker.task, weaker.base, weaker.units)
    transact(ctx, decide, Take(actor, (weaker.item,), *said, dirty=True))


def _decide_wait(state: State, command: Wait, world: World) -> Decision:
    from gitcoord.claims.events.wait import decide

    decision = _decide(state, command._replace(base=world.head()), world, decide)
    return _with_notes(state, command, world, _with_expired(decision))


def _decide(state: State, command: Any, world: World, decide: Callable[[State, Any, World], Decision]) -> Decision:
    """The rule's answer; for a subagent without what it may write under its parent's claims."""
    below = None
    if "." in command.actor.agent:
        from gitcoord.claims.family import decide_below  # only for a subagent

        below = decide_below(state, command, world, decide)
    return below if below is not None else decide(state, command, world)


def _with_notes(state: State, command: Take | Wait, world: World, decision: Decision) -> Decision:
    """The same, with the notes on what was claimed that the agent has still to see."""
    if "claims" not in decision.result or not state.names("notes"):
        return decision
    from gitcoord.journal.model import unseen  # only where somebody has left a note

    paths = [item.name for item in command.items if item.space == "path"]
    notes = [note.to_json() for note in unseen(state, command.actor.agent, paths, world.wall)]
    return decision._replace(result={**decision.result, "notes": notes}) if notes else decision


def _with_expired(decision: Decision) -> Decision:
    """The same, with the claims on paths that it ends as expired."""
    rows = [row for event in decision.events if event.kind == "expire" for row in event.body["claims"]]
    found = [(row["path"], row["agent"]) for row in rows if row["space"] == "path"]
    return decision._replace(result={**decision.result, "expired": found}) if found else decision


def _with_left(ctx: Context, result: dict[str, object]) -> dict[str, object]:
    """The same, with what the holders of these expired claims left uncommitted in this work tree."""
    expired: list[tuple[str, str]] = result.pop("expired", [])  # type: ignore[assignment]
    if not expired or ctx.snapshot is None or not ctx.repo.worktree:
        return result
    dirty = ctx.world(ctx.snapshot).dirty([path for path, _ in expired])
    left = [{"path": path, "from": agent} for path, agent in expired if path in dirty]
    return {**result, "left": left} if left else result


def left_by_others(result: dict[str, object]) -> list[dict[str, str]]:
    """The paths of a grant on which the holder of an expired claim left uncommitted changes here, and that holder."""
    return result.get("left", [])  # type: ignore[return-value]


def left_words(row: dict[str, str]) -> str:
    return (
        f"{row['from']}, whose claim has expired, left uncommitted changes in {printable(row['path'])}; "
        f"look at them before you commit: git diff HEAD -- {shell_word(row['path'])}"
    )


def _inherited(ctx: Context, actor: Actor, held: list[dict[str, object]]) -> list[dict[str, str]]:
    """The claims that the actor inherits from ended sessions in this work tree, which hold what it asked for."""
    if not left_here(ctx):
        return []
    from gitcoord.sessions.inherit import inherit

    found = inherit(ctx, actor, {str(row["agent"]) for row in held})
    return [{"path": path, "from": holder} for path, holder in found.sources]


def _decide_take(state: State, command: Take, world: World) -> Decision:
    """Decide with the claimant's HEAD as the base of the claim."""
    from gitcoord.claims.take import decide

    decision = _decide(state, command._replace(base=world.head()), world, decide)
    return _with_notes(state, command, world, _with_expired(decision))


def would_take(ctx: Context, command: Take) -> dict[str, object]:
    """The result that `take` would have now, without changing anything."""
    snapshot = read_snapshot(ctx)
    return _with_left(ctx, _decide_take(snapshot.state, command, ctx.world(snapshot)).result)


def release(
    ctx: Context, actor: Actor, items: tuple[Item, ...], *, commit: str = "", dirty: bool = False
) -> dict[str, object]:
    """Release the items (none: everything), with the commit that carries the work."""
    if not dirty:
        from gitcoord.claims.facts import start_dirty_check

        start_dirty_check(ctx, [item.name for item in items if item.space == "path"])
    from gitcoord.claims.events.release import Release, decide

    result = transact(ctx, decide, Release(actor, items, commit, dirty), prefetch=parts_for(actor.agent, items))
    if ctx.may_have_news():
        from gitcoord.claims.news import forget_given_back

        forget_given_back(ctx, actor.agent, (row["path"] for row in result["released"]))
    return result


def release_unworked(ctx: Context, actor: Actor, items: tuple[Item, ...]) -> dict[str, object]:
    """Release claims under which nothing was done, such as a turn that others wait for: at once."""
    from gitcoord.claims.events.release import Release, decide

    command = Release(actor, items, dirty=True, unworked=True)
    return transact(ctx, decide, command, prefetch=parts_for(actor.agent, items), yields=False)


def takeover(ctx: Context, actor: Actor, item: Item, token: int, reason: str) -> dict[str, object]:
    """A person takes a live claim away, naming its token."""
    from gitcoord.claims.events.takeover import Takeover, decide

    return transact(
        ctx,
        lambda state, command, world: decide(state, command._replace(base=world.head()), world),
        Takeover(actor, item, token, reason),
        prefetch=parts_for(actor.agent, (item,)),
    )
