"""promote: a person raises the class of a request in the queue."""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.names import shown
from gitcoord.claims.model import Item
from gitcoord.claims.requests import PRIORITIES, all_requests, own_request, put
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import REASON, Kind, Recalled, touches_nothing, with_reason
from gitcoord.ledger.kinds import subject as subject_of
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {"target": str, "ticket": int, "items": [(str, str)], "priority": str}


class Promote(NamedTuple):
    """The command: give the request with this ticket a higher class."""

    actor: Actor
    ticket: int
    priority: str
    reason: str = ""


def decide(state: State, command: Promote, world: World) -> Decision:
    """The request keeps its ticket. A class that it has already, or a higher one, is no change."""
    if command.priority not in PRIORITIES:
        raise UsageError(f"'{command.priority}' is not a priority", hints=(", ".join(PRIORITIES),))
    raise_if(dead(state, world, command.actor.agent))
    if not command.actor.person:
        raise refused("person", "only a person may raise the priority of a request", "ask a person")
    found = next((request for request in all_requests(state) if request.ticket == command.ticket), None)
    if found is None:
        raise refused("no-request", f"nobody waits with ticket {command.ticket}", "who waits: git claim list")
    chain = Chain(state, command.actor.agent, world)
    if PRIORITIES.index(command.priority) < PRIORITIES.index(found.priority):
        items = [list(item) for item in found.items]
        body = {"target": found.agent, "ticket": found.ticket, "items": items, "priority": command.priority}
        chain.add("promote", with_reason(body, command.reason))
        found = found._replace(priority=command.priority)
    paths = [shown(item.name, item.space) for item in found.items]
    result = {"ticket": found.ticket, "agent": found.agent, "paths": paths, "priority": found.priority}
    return Decision(chain.events, actor_heartbeats(state, command.actor, world), result)


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    first = events[0]
    body = first.body
    command = Promote(actor, body["ticket"], body["priority"], body.get("reason", ""))
    return [Recalled(decide, command)]


def apply(state: State, event: Event) -> Changes:
    body = event.body
    found = own_request(state, Item(*body["items"][0]), body["target"])
    if found is None or found.ticket != body["ticket"] or [list(item) for item in found.items] != body["items"]:
        raise Illegal(f"event {event.seq} raises a request of '{body['target']}' that is not there")
    if body["priority"] not in PRIORITIES or PRIORITIES.index(body["priority"]) >= PRIORITIES.index(found.priority):
        raise Illegal(f"event {event.seq} does not raise the request with ticket {found.ticket}")
    changes: Changes = {}
    put(state, found._replace(priority=body["priority"]), changes)
    return changes


KIND = Kind(
    FIELDS, subject_of("raise request {ticket} of {target} to {priority} by {agent}"), apply, recall,
    touches=touches_nothing, agents=("target",), personal=True, optional=REASON,
)  # fmt: skip
