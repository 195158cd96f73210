"""leave: a request is withdrawn from the queue, by its agent or by a person."""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.errors import raise_if, refused
from gitcoord.base.names import shown
from gitcoord.claims.model import Claim, Item, all_claims, is_confirmed
from gitcoord.claims.requests import Request, all_requests, drop, own_request, own_requests
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import REASON, Kind, Recalled, touches_nothing, with_reason
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {"target": str, "ticket": int, "items": [(str, str)]}


class Leave(NamedTuple):
    """The command: withdraw the request with this ticket, or those for these items; neither: all of the agent's own."""

    actor: Actor
    items: tuple[Item, ...] = ()
    ticket: int = 0
    reason: str = ""


def decide(state: State, command: Leave, world: World) -> Decision:
    """Allowed while halted. What is not there any more need not be withdrawn."""
    raise_if(dead(state, world, command.actor.agent))
    found = _named(state, command)
    foreign = [request for request in found if request.agent != command.actor.agent]
    if foreign and not command.actor.person:
        raise refused(
            "person", f"the request of {foreign[0].agent} is withdrawn by itself or by a person", "ask a person"
        )
    chain = Chain(state, command.actor.agent, world)
    for request in found:
        items = [list(item) for item in request.items]
        body = {"target": request.agent, "ticket": request.ticket, "items": items}
        chain.add("leave", with_reason(body, command.reason))
    left = [{"ticket": r.ticket, "agent": r.agent, "paths": [shown(i.name, i.space) for i in r.items]} for r in found]
    result = {"left": left, "unconfirmed": _unconfirmed(state, command, world)}
    return Decision(chain.events, actor_heartbeats(state, command.actor, world), result)


def _unconfirmed(state: State, command: Leave, world: World) -> list[Claim]:
    """The claims that the agent was granted without knowing it yet."""
    mine = all_claims(state, command.actor.agent) if not command.ticket else []
    asked = [claim for claim in mine if not command.items or claim.item in command.items]
    tickets = {claim.ticket for claim in asked if claim.reserved is not None and not is_confirmed(world, claim)}
    return [claim for claim in mine if claim.ticket in tickets]


def _named(state: State, command: Leave) -> list[Request]:
    if command.ticket:
        return [request for request in all_requests(state) if request.ticket == command.ticket]
    mine = own_requests(state, command.actor.agent)
    return [request for request in mine if not command.items or set(command.items) & set(request.items)]


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    first = events[0]
    one = Leave(actor, (), first.body["ticket"], first.body.get("reason", ""))
    items = tuple(Item(*event.body["items"][0]) for event in events)
    return [Recalled(decide, command) for command in (one, one._replace(ticket=0, items=items))]


def subject(event: Event) -> str:
    items = event.body["items"]
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    return f"leave {shown(items[0][1], items[0][0])}{more} of {event.body['target']}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    found = own_request(state, Item(*body["items"][0]), body["target"])
    if found is None or found.ticket != body["ticket"] or [list(item) for item in found.items] != body["items"]:
        raise Illegal(f"event {event.seq} withdraws a request of '{body['target']}' that is not there")
    changes: Changes = {}
    drop(state, found, changes)
    return changes


KIND = Kind(FIELDS, subject, apply, recall, touches=touches_nothing, agents=("target",), optional=REASON)
