"""The use case of inheriting: the claims that ended sessions left in this work tree pass to the actor.

A session that ends with uncommitted work leaves a note of its work tree (`sessions/worktree_notes.py`). Where no note is, nothing is read.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, Refused, StoreError
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import ENDED, Actor, agent_record, agent_records
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World
from gitcoord.sessions.worktree_notes import forget_left, left_here, note_claims, note_left, note_tree
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.claims.model import Claim


class Inherited(NamedTuple):
    """The claims that passed, as `--json` shows them, and (path, earlier holder) of each."""

    claims: tuple[dict[str, object], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()


def inherit(ctx: Context, actor: Actor, holders: Iterable[str] | None = None) -> Inherited:
    """Go on with what ended sessions left uncommitted in this work tree; `holders`: only with what these left.

    Harmless to repeat. Nothing passes where the authority does not answer or does not know of it.
    """
    noted = left_here(ctx)
    if not noted:
        return Inherited()
    wanted = None if holders is None else set(holders)
    try:
        snapshot = read_snapshot(ctx)
        world = ctx.world(snapshot)
        names = _names(ctx, snapshot.state, noted)
        claims = [
            claim
            for name in names
            if wanted is None or name in wanted
            for claim in _of_this_tree(snapshot.state, world, actor, name)
        ]
        return _pass_on(ctx, actor, claims)
    except (Refused, StoreError, CouldNotJudge):
        return Inherited()


def inherit_from_subagent(ctx: Context, parent: Actor, subagent: str) -> Inherited:
    """A subagent has ended: its parent goes on with what it left."""
    note_left(ctx, subagent)
    return inherit(ctx, parent, (subagent,))


def _names(ctx: Context, state: State, noted: list[str]) -> list[str]:
    """The ended agents among those noted, and their subagents, which ended with them. Notes of others are over."""
    found: dict[str, None] = {}
    records = agent_records(state)
    for name in noted:
        record = agent_record(state, name)
        below = [one.agent for one in records if one.agent.startswith(f"{name}.") and one.kept]
        if record is None or record.state != ENDED or not (record.kept or below):
            forget_left(ctx, name)
            continue
        found.update(dict.fromkeys((name, *below)))
    return list(found)


def _of_this_tree(state: State, world: World, actor: Actor, holder: str) -> list[Claim]:
    """The holder's claims with uncommitted work in this work tree; an agent may have claimed in several."""
    from gitcoord.sessions.events.inherit import inheritable

    claims = inheritable(state, world, actor, holder)
    if claims and world.other_trees(holder):
        dirty = set(world.dirty([claim.path for claim in claims]))
        claims = [claim for claim in claims if claim.path in dirty]
    return claims


def _pass_on(ctx: Context, actor: Actor, claims: list[Claim]) -> Inherited:
    if not claims:
        return Inherited()
    from gitcoord.sessions.events.inherit import Inherit, decide

    pairs = tuple((claim.path, claim.agent) for claim in claims)
    result = transact(ctx, decide, Inherit(actor, pairs))
    note_tree(ctx, actor.agent)
    note_claims(ctx, result["claims"])
    return Inherited(tuple(result["claims"]), pairs)
