"""request: a gate asked for a person's approval of one content of one path."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import raise_if
from gitcoord.base.names import printable
from gitcoord.gates.model import APPROVED, Approval, approval, approval_file, approvals
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, recall_from_body, touches_nothing
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {
    "rows": [{"path": str, "mode": str, "blob": str, "rule": str, "commit": str, "bases": [str]}]
}


class Request(NamedTuple):
    """The command. An open or denied request is not made again; an approved one is, since the approval may be used up."""

    actor: Actor
    rows: tuple[Record, ...]


def decide(state: State, command: Request, world: World) -> Decision:
    raise_if(dead(state, world, command.actor.agent))
    known = {one.content for one in approvals(state) if one.state != APPROVED}
    new = [row for row in command.rows if (row["path"], row["mode"], row["blob"]) not in known]
    chain = Chain(state, command.actor.agent, world)
    if new:
        chain.add("request", {"rows": new})
    asked = {one.content: one.id for one in approvals(chain.state)}
    ids = [asked[row["path"], row["mode"], row["blob"]] for row in command.rows]
    return Decision(chain.events, [], {"ids": ids})


def subject(event: Event) -> str:
    rows = event.body["rows"]
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"request approval of {printable(rows[0]['path'])}{more} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    changes: Changes = {}
    for number, row in enumerate(event.body["rows"]):
        id = f"{event.seq}" if not number else f"{event.seq}.{number}"
        if approval(state, id) is not None:
            raise Illegal(f"event {event.seq} asks for an approval that is there already")
        changes[approval_file(id)] = Approval(id, **row, agent=event.agent, at=event.at).to_record()
    return changes


KIND = Kind(FIELDS, subject, apply, recall_from_body(decide, Request), touches=touches_nothing)
