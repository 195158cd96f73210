"""notice: a gate let something through that breaks a rule, because the rule's stage is `monitor` or `warn`."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import raise_if
from gitcoord.ledger.event import Chain, Decision, Event
from gitcoord.ledger.kinds import Kind, Recalled, touches_nothing
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {
    "gate": str,
    "rows": [{"rule": str, "stage": str, "path": str, "agent": str, "commit": str}],
    "more": int,
}
MAX_ROWS = 50


class Notice(NamedTuple):
    actor: Actor
    gate: str
    rows: tuple[Record, ...]


def decide(state: State, command: Notice, world: World) -> Decision:
    raise_if(dead(state, world, command.actor.agent))
    chain = Chain(state, command.actor.agent, world)
    rows = list(command.rows[:MAX_ROWS])
    chain.add("notice", {"gate": command.gate, "rows": rows, "more": len(command.rows) - len(rows)})
    return Decision(chain.events, [], {"noted": len(command.rows)})


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    body = events[0].body
    more = max(0, min(body["more"], 1_000_000))  # rows that were not recorded; only their number is known
    rows = (*body["rows"], *({},) * more)
    return [Recalled(decide, Notice(actor, body["gate"], rows))]


def subject(event: Event) -> str:
    rules = ", ".join(sorted({row["rule"] for row in event.body["rows"]}))
    return f"notice at {event.body['gate']}: {rules} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    return {}


KIND = Kind(FIELDS, subject, apply, recall, touches=touches_nothing)
