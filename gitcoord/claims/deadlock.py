"""Deadlocks, by reduction: agents that wait for nothing are assumed to release all they hold; what then fits goes; and so on.

Only requests that the one in question waits for, directly or by way of others, are looked at: no other can help it or hinder it.
"""

from __future__ import annotations

from gitcoord.base.errors import refused
from gitcoord.base.names import printable, shown
from gitcoord.claims.model import all_claims
from gitcoord.claims.requests import Request, Requests
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Callable

# The requests for which one has to wait that may not be overtaken: the order of the queue.
Keepers = Callable[[Request], list[Request]]


def reachable(requests: Requests, first: Request, keepers: Keepers | None) -> dict[int, Request]:
    """The request and all for which it waits, directly or by way of others, by ticket."""
    found = {first.ticket: first}
    todo = [first]
    for request in todo:
        agents = dict.fromkeys(claim.agent for claim in requests.blocking_claims(request))
        more = [each for agent in agents for each in _waits_of(requests, agent, keepers)]
        more += keepers(request) if keepers is not None else []
        new = {each.ticket: each for each in more if each.ticket not in found}
        found.update(new)
        todo += new.values()
    return found


def _waits_of(requests: Requests, agent: str, keepers: Keepers | None) -> list[Request]:
    """The requests until whose grant the agent is assumed to keep what it holds.

    For a deadlock only the one in which it blocks. For the order all of them: whoever goes on without an answer may still keep what
    it holds until it has one, and nobody would be told to give way."""
    return requests.blocking(agent) if keepers is None else list(requests.of(agent).values())


def _blocked(requests: Requests, pending: dict[int, Request], keepers: Keepers | None = None) -> dict[str, set[int]]:
    """The agents that keep what they hold until some of these requests are granted, with the tickets of those."""
    agents = dict.fromkeys(each.agent for each in pending.values())
    found = {agent: {each.ticket for each in _waits_of(requests, agent, keepers)} & pending.keys() for agent in agents}
    return {agent: tickets for agent, tickets in found.items() if tickets}


def _remaining(
    requests: Requests, pending: dict[int, Request], keepers: Keepers | None = None, *, without: int = 0
) -> dict[int, Request]:
    """Those of these requests that never go. `without`: the ticket of one that is assumed never to go."""
    pending = dict(pending)
    while True:
        stuck = set(_blocked(requests, pending, keepers))
        gone = [
            ticket
            for ticket, each in pending.items()
            if ticket != without
            and not requests.blocking_claims(each, stuck)
            and not (keepers is not None and any(k.ticket in pending for k in keepers(each)))
        ]
        if not gone:
            return pending
        for ticket in gone:
            del pending[ticket]


def waits_for(
    requests: Requests, keepers: Keepers, request: Request, other: Request, found: dict[int, Request]
) -> bool:
    """Can the request never go without the other one, for which it waits directly or by way of others? `found`: all for which it
    waits."""
    if other.ticket not in found:
        return False
    pending = _remaining(requests, found, keepers, without=other.ticket)
    if request.ticket not in pending:
        return False
    blocked = _blocked(requests, pending, keepers)
    todo, seen = [request.ticket], {request.ticket}
    for ticket in todo:
        one = pending[ticket]
        more = {t for claim in requests.blocking_claims(one, set(blocked)) for t in blocked[claim.agent]}
        more |= {each.ticket for each in keepers(one) if each.ticket in pending}
        if other.ticket in more:
            return True
        todo += sorted(more - seen)
        seen |= more
    return False


def stuck_with(requests: Requests, agent: str) -> dict[int, Request]:
    """The requests that can never be granted, whatever the order, of this agent and of those that it waits for; none where
    its own request can."""
    for own in requests.blocking(agent):
        pending = _remaining(requests, reachable(requests, own, None))
        return pending if own.ticket in pending else {}
    return {}


def refuse_deadlock(state: State, world: World, agent: str) -> None:
    """Refused where this agent waits for something that it can never get."""
    requests = Requests(state, world)
    pending = stuck_with(requests, agent)
    if pending:
        held = [shown(claim.path, claim.space) for claim in all_claims(state, agent)]
        raise refused(
            "deadlock",
            f"nobody could go on: {_in_words(requests, pending, agent)}",
            f"release what the others wait for, or hand it over, then ask again: git claim release {held[0]}"
            if held
            else "ask the others to release something",
        )


def _in_words(requests: Requests, pending: dict[int, Request], agent: str) -> str:
    """The cycle in words: each agent with what it waits for and whose claims it waits for, from this agent on."""
    blocked = _blocked(requests, pending)
    parts: list[str] = []
    todo, seen = [agent], {agent}
    for name in todo:
        request = pending[max(blocked[name])]
        claims = requests.blocking_claims(request, set(blocked))
        wanted = ", ".join(shown(item.name, item.space) for item in request.items[:3])
        held = ", ".join(f"{c.agent} holds {shown(c.path, c.space)}" for c in claims[:3])
        parts.append(f"{name} waits for {wanted}, {held}")
        todo += [c.agent for c in claims if c.agent not in seen and c.agent in blocked][:1]
        seen.update(todo)
    return printable("; ".join(parts))
