"""Deadlocks, by reduction: agents that wait for nothing are assumed to release all they hold; what then fits goes; and so on."""

from __future__ import annotations

from gitcoord.base.errors import refused
from gitcoord.base.names import printable, shown
from gitcoord.claims.model import all_claims
from gitcoord.claims.requests import Request, all_requests, blocking_claims
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Order(Protocol):
        """The order of the queue, for requests that keep others waiting."""

        limit: int

        def conflict(self, one: Request, other: Request) -> bool: ...

        def before(self, one: Request, other: Request) -> bool: ...


def _blocked(requests: list[Request]) -> dict[str, int]:
    """The agents that do nothing until a request is granted, with the ticket of that request."""
    return {request.agent: request.ticket for request in requests if request.blocking}


def remaining(
    state: State, world: World, requests: list[Request], order: Order | None = None, *, without: int = 0
) -> dict[int, Request]:
    """The requests that never go, by ticket. `order`: a request also waits for those before it that may not be overtaken.

    `without`: the ticket of a request that is assumed never to go.
    """
    blocked = _blocked(requests)
    pending = {request.ticket: request for request in requests}
    # A request that conflicts with no claim at all needs no second look.
    free = {r.ticket for r in requests if not blocking_claims(state, world, r, set(blocked))}
    while True:
        stuck = {agent for agent, ticket in blocked.items() if ticket in pending}
        gone = [
            request
            for request in pending.values()
            if request.ticket != without
            and (request.ticket in free or not blocking_claims(state, world, request, stuck))
            and not (order is not None and _is_kept(request, pending, order))
        ]
        if not gone:
            return pending
        for request in gone:
            del pending[request.ticket]


def _is_kept(request: Request, pending: dict[int, Request], order: Order) -> bool:
    return any(_keeps(other, request, order) for other in pending.values())


def _keeps(other: Request, request: Request, order: Order) -> bool:
    """Does a request that may not be overtaken keep this one waiting?"""
    exhausted = other.overtaken >= order.limit and other.ticket != request.ticket
    return exhausted and order.before(other, request) and order.conflict(request, other)


def waits_for(
    state: State, world: World, requests: list[Request], order: Order, request: Request, other: Request
) -> bool:
    """Can the request never go without the other one, for which it waits directly or by way of others?"""
    pending = remaining(state, world, requests, order, without=other.ticket)
    if request.ticket not in pending:
        return False
    blocked = {agent: ticket for agent, ticket in _blocked(requests).items() if ticket in pending}
    todo, seen = [request.ticket], {request.ticket}
    for ticket in todo:
        one = pending[ticket]
        more = {blocked[claim.agent] for claim in blocking_claims(state, world, one, set(blocked))}
        more |= {each.ticket for each in pending.values() if _keeps(each, one, order)}
        if other.ticket in more:
            return True
        todo += sorted(more - seen)
        seen |= more
    return False


def has_stuck_agent(state: State, world: World, requests: list[Request], agent: str) -> bool:
    """Does this agent wait for something that it can never get, whatever the order?"""
    ticket = _blocked(requests).get(agent, 0)
    return bool(ticket) and ticket in remaining(state, world, requests)


def refuse_deadlock(state: State, world: World, agent: str) -> None:
    """Refused where this agent waits for something that it can never get."""
    requests = all_requests(state)
    if has_stuck_agent(state, world, requests, agent):
        held = [shown(claim.path, claim.space) for claim in all_claims(state, agent)]
        raise refused(
            "deadlock",
            f"nobody could go on: {_in_words(state, world, requests, agent)}",
            f"release what the others wait for, or hand it over, then ask again: git claim release {held[0]}"
            if held
            else "ask the others to release something",
        )


def _in_words(state: State, world: World, requests: list[Request], agent: str) -> str:
    """The cycle in words: each agent with what it waits for and whose claims it waits for, from this agent on."""
    blocked, pending = _blocked(requests), remaining(state, world, requests)
    stuck = {name for name, ticket in blocked.items() if ticket in pending}
    parts: list[str] = []
    todo, seen = [agent], {agent}
    for name in todo:
        request = pending[blocked[name]]
        claims = blocking_claims(state, world, request, stuck)
        wanted = ", ".join(shown(item.name, item.space) for item in request.items[:3])
        held = ", ".join(f"{c.agent} holds {shown(c.path, c.space)}" for c in claims[:3])
        parts.append(f"{name} waits for {wanted}, {held}")
        todo += [c.agent for c in claims if c.agent not in seen and c.agent in stuck][:1]
        seen.update(todo)
    return printable("; ".join(parts))
