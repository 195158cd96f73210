"""The use cases of `git handoff`: offer, accept, list and show."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import CouldNotJudge, refused
from gitcoord.base.names import printable, shell_word, shown
from gitcoord.claims.model import overlapping, prefetch_around
from gitcoord.git.commands.objects import has_commit
from gitcoord.handoff.events.handoff import New
from gitcoord.handoff.model import (
    OPEN,
    SECTIONS,
    Handoff,
    Waiting,
    all_handoffs,
    is_for,
    open_handoffs,
    parse_document,
    the_handoff,
)
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision
from gitcoord.ledger.remote.user_refs import fetch_sync
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World
from gitcoord.sessions.worktree_notes import note_claims, note_tree


def would_offer(ctx: Context, command: New) -> tuple[list[Record], Record]:
    """The claims that such a handoff would pass on, and the facts of the work, before its document is written.

    Refused if it cannot be made, whatever the document says.
    """
    from gitcoord.handoff.events.handoff import decide
    from gitcoord.handoff.survey import survey

    snapshot = read_snapshot(ctx)
    fit = command._replace(sections={section.key: "to be written" for section in SECTIONS})
    claims = decide(snapshot.state, fit, ctx.world(snapshot)).events[-1].body["claims"]
    return claims, survey(ctx, snapshot, claims)


def offer(ctx: Context, command: New) -> Record:
    """Make the handoff; the facts are gathered now. Nothing changes hands until it is accepted.

    Refused where a validator says no to the document.
    """
    from gitcoord.gates.validation import publish
    from gitcoord.handoff.events.handoff import decide

    def act() -> Record:
        _, facts = would_offer(ctx, command)
        return transact(ctx, decide, command._replace(facts=facts))

    return publish(ctx, command.actor, "handoff", command.sections, act)


class _Lacking(Exception):
    """The commits that are handed over are not in this copy."""


def accept(ctx: Context, actor: Actor, id: str, *, without_commits: bool = False) -> Record:
    """All that was handed over becomes the actor's, in one event; or Refused, and nothing has changed.

    Refused also where commits that were at no remote when they were handed over are in no place that this copy can reach:
    afterwards the giver may not push them any more. `without_commits`: do without them.
    """
    from gitcoord.handoff.events.accept import Accept, decide

    lacking: list[Handoff] = []

    def rule(state: State, command: Accept, world: World) -> Decision:
        decision = decide(state, command, world)
        record = the_handoff(state, command.handoff)
        if (
            record.state == OPEN
            and record.unpushed
            and not without_commits
            and not has_commit(ctx.repo.env, record.head)
        ):
            lacking.append(record)
            raise _Lacking
        return decision

    try:
        result = transact(ctx, rule, Accept(actor, id))
    except _Lacking:
        _fetch_commits(ctx, lacking[0])
        result = transact(ctx, decide, Accept(actor, id))
    note_tree(ctx, actor.agent)
    note_claims(ctx, result["claims"])
    return result


def _fetch_commits(ctx: Context, record: Handoff) -> None:
    """Fetch the branch of a handoff from the remote that decides; Refused where its commits are not there."""
    if ctx.remote and record.branch:
        try:
            fetch_sync(ctx, ctx.remote, record.branch)
        except CouldNotJudge:
            pass  # it is not there
    if not has_commit(ctx.repo.env, record.head):
        push = f"git push {shell_word(ctx.remote or 'origin')} {shell_word(record.branch or 'HEAD')}"
        raise refused(
            "lacking-commits",
            f"{record.unpushed} commit(s) of {record.giver}, up to {record.head[:12]}, are not in this copy: nothing was accepted",
            f"{printable(record.giver)} pushes them: {push}",
            f"or take over what there is: git handoff accept {record.id} --without-commits",
        )


# --- looking -------------------------------------------------------------------------------------------------------


def listing(ctx: Context, actor: Actor | None, *, everything: bool = False) -> Record:
    """The open handoffs, oldest first; with `everything` also those that were accepted, declined or withdrawn."""
    snapshot = read_snapshot(ctx, trusting=True, prefetch=(("leaves", "waiting"),))
    return {"handoffs": rows(snapshot.state, ctx.world(snapshot), actor, everything=everything)}


def rows(state: State, world: World, actor: Actor | None, *, everything: bool = False) -> list[Record]:
    def for_you(one: Handoff | Waiting) -> bool:
        return actor is not None and is_for(state, world, one, actor.agent, person=actor.person)

    if not everything:
        return [{**_waiting(one), "for_you": for_you(one)} for one in open_handoffs(state)]
    return [{**_any(one), "for_you": one.state == OPEN and for_you(one)} for one in all_handoffs(state)]


def _row(one: Handoff | Waiting) -> Record:
    return {"id": one.id, "from": one.giver, "to": one.to, "role": one.role, "task": one.task, "at": one.at}


def _waiting(one: Waiting) -> Record:
    return {**_row(one), "state": OPEN, "next": one.next, "claims": [shown(name, space) for space, name in one.claims]}


def _any(one: Handoff) -> Record:
    first = parse_document(one.text)["next"].split("\n")[0]
    return {**_row(one), "state": one.state, "next": first, "claims": [shown(c.path, c.space) for c in one.claims]}


def show(ctx: Context, actor: Actor | None, id: str) -> Record:
    """One handoff with its document, and who holds its paths now."""
    snapshot = read_snapshot(ctx, trusting=True)
    state = snapshot.state
    record = the_handoff(state, id)
    claims = []
    prefetch_around(state, [claim.item for claim in record.claims])
    for claim in record.claims:
        names = {c.agent for c in overlapping(state, claim.item)}
        row = {"mode": claim.mode, "token": claim.token, "base": claim.base}
        claims.append({"path": shown(claim.path, claim.space), **row, "held_by": sorted(names)})
    mine = actor is not None and is_for(state, ctx.world(snapshot), record, actor.agent, person=actor.person)
    sections = parse_document(record.text)
    return {**record.to_json(), "claims": claims, "sections": sections, "for_you": record.state == OPEN and mine}
