"""Deadlocks, by reduction: agents that wait for nothing are assumed to release all they hold; what then fits goes; and so on. What is
left never goes.

Only requests for which the one in question waits, directly or by way of others, are looked at: no other can help it or hinder it.
"""

from __future__ import annotations

from gitcoord.base.errors import refused
from gitcoord.base.names import printable, shell_word, shown
from gitcoord.claims.requests import Request, Requests
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Callable


class Reduction:
    """The reduction of some requests. `keepers` gives those for which a request has to wait by the order of the queue. Without it the order
    does not count, and of an agent's requests only the one in which it blocks: that is a deadlock.

    By the order all requests of an agent count: who goes on without an answer may still keep what it holds until it has one, and nobody
    would be told to give way."""

    def __init__(self, requests: Requests, keepers: Callable[[Request], list[Request]] | None = None) -> None:
        self._requests = requests
        self._keepers = keepers or (lambda request: [])
        self._waits_of = requests.blocking if keepers is None else (lambda agent: list(requests.of(agent).values()))

    def reachable(self, first: Request) -> dict[int, Request]:
        """The request and all for which it waits, directly or by way of others, by ticket."""
        found = {first.ticket: first}
        todo = [first]
        for request in todo:
            agents = dict.fromkeys(claim.agent for claim in self._requests.blocking_claims(request))
            more = [each for agent in agents for each in self._waits_of(agent)] + self._keepers(request)
            new = {each.ticket: each for each in more if each.ticket not in found}
            found.update(new)
            todo += new.values()
        return found

    def stuck(self, pending: dict[int, Request], *, without: int = 0) -> dict[int, Request]:
        """Those of these requests that never go. `without`: the ticket of one that is assumed never to go."""
        pending = dict(pending)
        while True:
            holders = set(self.waiting(pending))
            gone = [
                ticket
                for ticket, each in pending.items()
                if ticket != without
                and not self._requests.blocking_claims(each, holders)
                and not any(keeper.ticket in pending for keeper in self._keepers(each))
            ]
            if not gone:
                return pending
            for ticket in gone:
                del pending[ticket]

    def waiting(self, pending: dict[int, Request]) -> dict[str, set[int]]:
        """The agents that keep what they hold until some of these requests go, with the tickets of those."""
        agents = dict.fromkeys(each.agent for each in pending.values())
        found = {agent: {each.ticket for each in self._waits_of(agent)} & pending.keys() for agent in agents}
        return {agent: tickets for agent, tickets in found.items() if tickets}

    def needs(self, request: Request, other: Request, found: dict[int, Request]) -> bool:
        """Can the request never go unless the other one goes first? `found`: all for which it waits."""
        if other.ticket not in found:
            return False
        stuck = self.stuck(found, without=other.ticket)
        if request.ticket not in stuck:
            return False
        waiting = self.waiting(stuck)
        todo, seen = [request.ticket], {request.ticket}
        for ticket in todo:
            holders = [claim.agent for claim in self._requests.blocking_claims(stuck[ticket], set(waiting))]
            more = {each for agent in holders for each in waiting[agent]}
            more |= {each.ticket for each in self._keepers(stuck[ticket]) if each.ticket in stuck}
            if other.ticket in more:
                return True
            todo += sorted(more - seen)
            seen |= more
        return False


def stuck_with(requests: Requests, agent: str) -> dict[int, Request]:
    """The requests that can never be granted, whatever the order, of this agent and of those that it waits for; none where
    its own request can."""
    reduction = Reduction(requests)
    for own in requests.blocking(agent):
        stuck = reduction.stuck(reduction.reachable(own))
        return stuck if own.ticket in stuck else {}
    return {}


def refuse_deadlock(state: State, world: World, agent: str) -> None:
    """Refused where this agent waits for something that it can never get."""
    requests = Requests(state, world)
    pending = stuck_with(requests, agent)
    if pending:
        wanted = [claim for each in pending.values() for claim in requests.blocking_claims(each, {agent})]
        paths = " ".join(dict.fromkeys(shell_word(shown(claim.path, claim.space)) for claim in wanted))
        raise refused(
            "deadlock",
            f"nobody could go on: {_in_words(requests, pending, agent)}",
            f"release what the others wait for, or hand it over, then ask again: git claim release {paths}"
            if paths
            else "ask the others to release something",
        )


def _in_words(requests: Requests, pending: dict[int, Request], agent: str) -> str:
    """The cycle in words: each agent with what it waits for and whose claims it waits for, from this agent on."""
    waiting = Reduction(requests).waiting(pending)
    parts: list[str] = []
    todo, seen = [agent], {agent}
    for name in todo:
        request = pending[max(waiting[name])]
        claims = requests.blocking_claims(request, set(waiting))
        wanted = ", ".join(shown(item.name, item.space) for item in request.items[:3])
        held = ", ".join(f"{c.agent} holds {shown(c.path, c.space)}" for c in claims[:3])
        parts.append(f"{name} waits for {wanted}, {held}")
        todo += [c.agent for c in claims if c.agent not in seen and c.agent in waiting][:1]
        seen.update(todo)
    return printable("; ".join(parts))
