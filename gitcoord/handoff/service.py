"""The use cases of `git handoff`: offer, accept, decline, withdraw, and looking at what is offered."""

from __future__ import annotations

from gitcoord.base.errors import NotInitialised, Refusal, Refused
from gitcoord.base.names import shown
from gitcoord.claims.model import Item, overlapping, want_around
from gitcoord.handoff.model import (
    DECLINED,
    SECTIONS,
    WITHDRAWN,
    all_handoffs,
    check_id,
    handoff_record,
    is_for,
    open_handoffs,
    parse_document,
    unknown,
)
from gitcoord.ledger.snapshot import read_snapshot, settle
from gitcoord.ledger.transaction import transact
from gitcoord.sessions.worktree_notes import note_claims, note_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.codec import Record
    from gitcoord.handoff.events.handoff import New
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.ledger.state import State, View

    Row = dict[str, "object"]


def would_offer(ctx: Context, command: New) -> tuple[list[Record], Record]:
    """What such a handoff would pass on, and the facts of the work: for whoever still has to write the document.

    Refused where it could not be made, whatever the document says.
    """
    from gitcoord.handoff.events.handoff import decide
    from gitcoord.handoff.survey import survey

    snapshot = read_snapshot(ctx)
    fit = command._replace(sections={section.key: "to be written" for section in SECTIONS}, nonce="trial")
    answer = settle(ctx, snapshot, ctx.view(), lambda state, view: decide(state, fit, view))
    if isinstance(answer, Refusal):
        raise Refused(answer)
    claims = answer.events[-1].body["claims"]
    return claims, survey(ctx, snapshot, claims)


def offer(ctx: Context, command: New) -> Row:
    """Make the handoff; the facts are gathered now. Nothing changes hands until it is accepted.

    Refused where a validator says no to the document.
    """
    from gitcoord.gates.validation import heed

    warnings = heed(ctx, command.actor, "handoff", command.sections)
    _, facts = would_offer(ctx, command)
    from gitcoord.handoff.events.handoff import decide

    result = transact(ctx, decide, command._replace(facts=facts))
    return {**result, "warnings": warnings} if warnings else result


def accept(ctx: Context, actor: Actor, id: str) -> Row:
    """All that was handed over becomes the actor's, in one event; or Refused, and nothing has changed."""
    from gitcoord.handoff.events.accept import Accept, decide

    result = transact(ctx, decide, Accept(actor, check_id(id)))
    note_tree(ctx, actor.agent)
    note_claims(ctx, result["claims"])  # type: ignore[arg-type]
    return result


def decline(ctx: Context, actor: Actor, id: str, reason: str) -> Row:
    from gitcoord.handoff.events.close import Close, decide

    return transact(ctx, decide, Close(actor, check_id(id), DECLINED, reason))


def withdraw(ctx: Context, actor: Actor, id: str, reason: str) -> Row:
    from gitcoord.handoff.events.close import Close, decide

    return transact(ctx, decide, Close(actor, check_id(id), WITHDRAWN, reason))


# --- looking -------------------------------------------------------------------------------------------------------


def listing(ctx: Context, actor: Actor | None, *, everything: bool = False) -> Row:
    """Those that wait, oldest first; with `everything` also those that were accepted, declined or withdrawn."""
    try:
        snapshot = read_snapshot(ctx, trusting=True, ahead=(("leaves", "waiting"),))
    except NotInitialised:
        return {"initialised": False, "handoffs": []}
    return {"initialised": True, "handoffs": rows(ctx, snapshot, ctx.view(), actor, everything=everything)}


def rows(ctx: Context, snapshot: Snapshot, view: View, actor: Actor | None, *, everything: bool = False) -> list[Row]:
    def rule(state: State, view: View) -> list[Row]:
        found = (
            [_from_record(r) for r in all_handoffs(state)] if everything else [_open(r) for r in open_handoffs(state)]
        )
        for row in found:
            mine = actor is not None and row["state"] == "open"
            row["for_you"] = mine and is_for(state, view, row, actor.agent, person=actor.person)  # type: ignore[union-attr]
        return found

    return settle(ctx, snapshot, view, rule)


def _open(row: Record) -> Row:
    told = {key: row[key] for key in ("id", "from", "to", "role", "task", "at", "next")}
    return {**told, "state": "open", "claims": [shown(pair[1], pair[0]) for pair in row["claims"]]}


def _from_record(record: Record) -> Row:
    told = {key: record[key] for key in ("id", "from", "to", "role", "task", "at", "state")}
    first = parse_document(record["text"])["next"].split("\n")[0]
    return {**told, "next": first, "claims": [shown(c["path"], c["space"]) for c in record["claims"]]}


def show(ctx: Context, actor: Actor | None, id: str) -> Row:
    """One handoff with its document, and who holds its paths now."""
    snapshot = read_snapshot(ctx, trusting=True)
    view = ctx.view()
    record = settle(ctx, snapshot, view, lambda state, _: handoff_record(state, check_id(id)))
    if record is None:
        raise Refused(unknown(id))

    def holders(state: State, _: View) -> list[Row]:
        found = []
        items = [Item(claim["space"], claim["path"]) for claim in record["claims"]]
        want_around(state, items)
        for item, claim in zip(items, record["claims"]):
            names = {c["agent"] for c in overlapping(state, item)}
            row = {key: claim[key] for key in ("mode", "token", "base")}
            found.append({"path": shown(claim["path"], claim["space"]), **row, "held_by": sorted(names)})
        return found

    def mine(state: State, view: View) -> bool:
        return actor is not None and is_for(state, view, record, actor.agent, person=actor.person)

    told = {key: record[key] for key in record if key not in ("v", "text", "claims")}
    sections = parse_document(record["text"])
    return {
        **told, "claims": settle(ctx, snapshot, view, holders), "sections": sections,
        "for_you": record["state"] == "open" and settle(ctx, snapshot, view, mine),
    }  # fmt: skip
