"""Views of the queue: who waits for what, in order; where an agent's own requests stand; who waits for what an agent holds."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.claims.model import Item, all_claims
from gitcoord.claims.queue import Queue
from gitcoord.claims.requests import (
    Request,
    Requests,
    all_requests,
    directory_of,
    own_requests,
    requests_around,
)
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World


def waits(state: State, world: World, item: Item | None = None) -> list[Record]:
    """The requests in the queue, or those around an item, in order."""
    found = requests_around(state, directory_of(state, item)) if item is not None else all_requests(state)
    return [request.to_json() for request in sorted(found, key=Queue(state, world).rank)]


def own_waits(state: State, world: World, agent: str) -> list[Record]:
    """The agent's requests, each with its position among those that conflict with it."""
    rows: list[Record] = []
    queue = Queue(state, world)
    for request in own_requests(state, agent):
        before, count = queue.standing(request)
        place = {"position": len(before) + 1, "of": count, "before": [each.agent for each in before]}
        rows.append({**request.to_json(), **place})
    return rows


def waiters_of(state: State, world: World, agent: str) -> list[Request]:
    """The requests of others that wait for a claim of this agent, in order."""
    found: dict[int, Request] = {}
    requests = Requests(state, world)  # reads each claim once
    for claim in all_claims(state, agent) if state.names("waits") else ():
        for request in requests_around(state, directory_of(state, claim.item)):
            if request.agent != agent and requests.blocking_claims(request, {agent}):
                found[request.ticket] = request
    return sorted(found.values(), key=Queue(state, world).rank)
