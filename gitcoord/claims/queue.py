"""The queue: in which order requests go, which of them may go now, and which they overtake.

The order is that of `Queue.rank`: upgrades of what their agent holds first, then requests at the limit, then by priority, then by ticket. A request
is at the limit when it was overtaken as often as the settings allow. A claim without a request is the last in the order.

A request may go if
- no claim of another agent conflicts with it,
- it overtakes no request at the limit, but for one that could never go without it, and
- its grant makes no deadlock.

It overtakes those before it in the order that stay and that it conflicts with; each of them counts that, until it is at the limit.
A request for any task goes as one for a task that can be taken, with all that this task needs.

Nothing here asks who is alive: the order follows from the ledger alone, so client, server and simulation come to one answer.
"""

from __future__ import annotations

from gitcoord.base.names import covers
from gitcoord.claims.deadlock import Reduction, stuck_with
from gitcoord.claims.model import WRITE, Item, all_claims, compatible, file_of, is_turn_item, key_of
from gitcoord.claims.requests import NEXT, PRIORITIES, Request, Requests, capacity_for
from gitcoord.ledger.kinds import task_rules
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple


class Grant(NamedTuple):
    """A request that goes, and those that it overtakes."""

    request: Request
    past: list[Request]


class Queue(Requests):
    """The requests of one state in their order. `grants` makes it follow what it grants."""

    def __init__(self, state: State, world: World) -> None:
        super().__init__(state, world)
        self.limit = world.waiting().overtake
        self._keys: dict[Item, str] = {}
        # By ticket, or by agent; forgotten at each grant.
        self._keepers: dict[int, list[Request]] = {}
        self._reachable: dict[int, dict[int, Request]] = {}
        self._holders: dict[str, bool] = {}
        self._upgrades: dict[int, bool] = {}

    # --- the order

    def rank(self, request: Request) -> tuple[int, int, int]:
        first = 0 if self._is_upgrade(request) else 1 if self.at_limit(request) else 2
        return (first, PRIORITIES.index(request.priority), request.ticket)

    def _is_upgrade(self, request: Request) -> bool:
        """Does its agent hold all these items already? They are its own before all who wait. In a weaker mode or fewer units, since nobody waits
        for what it has."""
        if request.ticket not in self._upgrades:
            held = self._holds(request.agent) and NEXT not in request.items
            self._upgrades[request.ticket] = held and all(request.own(self.state, item) for item in request.items)
        return self._upgrades[request.ticket]

    def at_limit(self, request: Request) -> bool:
        """May it not be overtaken any more?"""
        return request.overtaken >= self.limit

    def rivals(self, request: Request) -> list[Request]:
        """The requests that conflict with this one, in order."""
        return sorted((r for r in self.around(request).values() if self.conflict(request, r)), key=self.rank)

    def standing(self, request: Request) -> tuple[list[Request], int]:
        """The requests before this one among its rivals, in order, and how many they all are with itself."""
        rivals = self.rivals(request)
        return [each for each in rivals if self.rank(each) < self.rank(request)], len(rivals) + 1

    # --- conflicts of two requests

    def conflict(self, one: Request, other: Request) -> bool:
        """Could not both have all their items at the same time, beside the claims that are there now?"""
        return self._meet(one, one.items, other)

    def overtakes(self, one: Request, other: Request) -> bool:
        """Does the other one, if it is before, count that this one goes? Not for a turn to land: who waits for a path lets others land
        meanwhile."""
        return self._meet(one, [item for item in one.items if not is_turn_item(item)], other)

    def _meet(self, one: Request, items: Iterable[Item], other: Request) -> bool:
        if one.agent == other.agent:
            return False
        return any(
            mine.space == theirs.space and self._items_conflict(one, mine, other, theirs)
            for mine in items
            for theirs in other.items
        )

    def _items_conflict(self, one: Request, mine: Item, other: Request, theirs: Item) -> bool:
        key, other_key = self._key(mine), self._key(theirs)
        if not (covers(key, other_key) or covers(other_key, key)):
            return False
        capacity = capacity_for(self.world, mine)
        if capacity > 1 and key == other_key:
            agents = (one.agent, other.agent)
            held = sum(c.units for c in self.claims(mine) if c.path == mine.name and c.agent not in agents)
            return held + one.units + other.units > capacity
        return not compatible(one.mode, other.mode)

    def _key(self, item: Item) -> str:
        if item not in self._keys:
            self._keys[item] = key_of(self.state, item)
        return self._keys[item]

    # --- who is kept waiting for whom

    def keepers(self, request: Request) -> list[Request]:
        """The requests at the limit before this one that it would overtake."""
        if request.ticket not in self._keepers:
            rank = self.rank(request)
            near = [each for each in self.around(request).values() if self.at_limit(each) and self.rank(each) < rank]
            self._keepers[request.ticket] = [each for each in near if self.overtakes(request, each)]
        return self._keepers[request.ticket]

    def _ahead_of(self, request: Request) -> list[Request]:
        """The requests that have to go before this one by the order: its keepers, and where its grant would make a deadlock, the one in which
        its agent blocks."""
        found = self.keepers(request)
        return [*found, *self.blocking(request.agent)] if self._closes(request) else found

    @property
    def _reduction(self) -> Reduction:
        return Reduction(self, self._ahead_of)

    def reachable(self, request: Request) -> dict[int, Request]:
        """The request and all for which it waits, directly or by way of others, by ticket."""
        return self._reduction.reachable(request)

    def _is_kept_for(self, request: Request, other: Request) -> bool:
        """Has it to wait for this one, which is before it?"""
        return self.at_limit(other) and self.overtakes(request, other) and not self._needs(other, request)

    def _needs(self, request: Request, other: Request) -> bool:
        """Can the request never go unless the other one goes first?"""
        if not self.at_limit(other) and not self._holds(other.agent):
            return False  # nobody waits for an agent that holds nothing
        if request.ticket not in self._reachable:
            self._reachable[request.ticket] = self.reachable(request)
        return self._reduction.needs(request, other, self._reachable[request.ticket])

    def _holds(self, agent: str) -> bool:
        if agent not in self._holders:
            self._holders[agent] = bool(self.state.named("claims", f"@{agent}"))
        return self._holders[agent]

    # --- who goes

    def grants(self, first: list[Request], agents: Iterable[str] = ()) -> list[Grant]:
        """The grants of those of these requests, and of all that compete with them, that may go now, in order. `agents`: others that wait
        for less now."""
        found: list[Grant] = []
        first = [*first, *self._held_back([*agents, *(each.agent for each in first if each.blocking)])]
        while first:
            some, again = self._grants(first)
            found += some
            # The other requests of these agents may go now: their agent does not block any more, so that they close no deadlock, or
            # those for which they were kept wait for what it has got. So may those for which they wait, as where an agent that waits
            # is handed something, and those for which a request waits that is at the limit now.
            others = [each for grant in some for each in self.of(grant.request.agent).values()]
            past = [self._found[each.ticket] for grant in some for each in grant.past]
            others += [each for each in past if each is not None and self.at_limit(each)]
            others += self._held_back(grant.request.agent for grant in some)
            first = list({**again, **{t: r for other in others for t, r in self.reachable(other).items()}}.values())
        return found

    def _grants(self, first: list[Request]) -> tuple[list[Grant], dict[int, Request]]:
        """Some grants in order, and the requests to judge again after them: by a grant another may go that stayed before."""
        competing, hopeless = self._competing(first)
        found: list[Grant] = []
        stay: list[int] = []  # tickets of those before, in order
        for request in sorted(competing, key=self.rank):
            grant = None if request.ticket in hopeless else self._grant(request, stay)
            if grant is None:
                stay.append(request.ticket)
                continue
            found.append(grant)
            left = {r.ticket: now for r in competing if (now := self._found.get(r.ticket, r)) is not None}
            if any(not self.blocking_claims(left[ticket]) for ticket in stay):
                return found, left
        return found, {}

    def _grant(self, asked: Request, stay: list[int]) -> Grant | None:
        """The grant of this request, if it may go before those that stay. The queue follows."""
        for request in self._forms(asked):
            if self.blocking_claims(request):
                continue
            near = self.around(request)
            before = [near[ticket] for ticket in stay if ticket in near]
            if not any(self._is_kept_for(request, each) for each in before) and not self._closes(request):
                past = [each for each in before if not self.at_limit(each) and self.overtakes(request, each)]
                self._follow(request, past)
                return Grant(request, past)
            self._keepers.clear()  # by ticket, which another form shares
        return None

    def _forms(self, request: Request) -> Iterable[Request]:
        """The request itself; for any task: one for each task that its agent may have."""
        return task_rules().forms(self.state, self.world, request) if NEXT in request.items else (request,)

    def _competing(self, first: list[Request]) -> tuple[list[Request], set[int]]:
        """These requests, all that compete with those of them that may go, and so on; and the tickets of the hopeless: they wait for a
        claim, or for a request at the limit that does, and let nobody else go."""
        found = {request.ticket: request for request in first}
        todo, hopeless = list(found.values()), set()
        for asked in todo:
            forms = [form for form in self._forms(asked) if not self.blocking_claims(form)]
            if not forms or (forms == [asked] and self._is_hopeless(asked)):
                hopeless.add(asked.ticket)
                continue
            for request in [asked, *forms]:
                new = {ticket: each for ticket, each in self.around(request).items() if ticket not in found}
                found.update(new)
                todo += new.values()
        return todo, hopeless

    def _is_hopeless(self, request: Request) -> bool:
        keepers = (each for each in self.keepers(request) if self.blocking_claims(each))
        return any(self._is_kept_for(request, each) for each in keepers)

    def _closes(self, request: Request) -> bool:
        """Would its grant to an agent that is blocked by another request make a deadlock?"""
        if all(each.ticket == request.ticket or not each.blocking for each in self.of(request.agent).values()):
            return False
        after = Requests(self._before, self.world)
        after.patch({**self._found, request.ticket: None}, {})
        after.state = self.state.patched(claims_of(self.state, request, 1, 0, ""))
        return bool(stuck_with(after, request.agent))

    def _held_back(self, agents: Iterable[str]) -> list[Request]:
        """The other requests of those that block behind these agents, directly or by way of others. Such a request is held back while its
        grant would close a circle, and these agents may have been a part of that."""
        found, seen = list[Request](), dict.fromkeys(agents)
        todo = list(seen)
        for agent in todo:
            own = list(self.of(agent).values())
            if len(own) > 1 and any(each.blocking for each in own):
                found += [each for each in own if not each.blocking]
            held = all_claims(self.state, agent) if self._holds(agent) else []
            near = [self.around(plain_request("", (claim.item,), WRITE, 1)) for claim in held]
            behind = dict.fromkeys(
                r.agent for some in near for r in some.values() if r.blocking and r.agent not in seen
            )
            seen.update(behind)
            todo += behind
        return found

    def _follow(self, request: Request, past: list[Request]) -> None:
        counted: dict[int, Request | None] = {p.ticket: p._replace(overtaken=p.overtaken + 1) for p in past}
        for memory in (self._keepers, self._reachable, self._holders, self._upgrades):
            memory.clear()
        self.patch({request.ticket: None, **counted}, claims_of(self.state, request, 1, 0, ""))


def claims_of(state: State, request: Request, seq: int, at: int, nonce: str) -> Changes:
    """The claims that a grant makes of a request."""
    claims = request.claims(state, seq, at, nonce)
    return {file_of(state, claim.item, claim.agent): claim.to_record() for claim in claims}


# --- claims without a request


def plain_request(agent: str, items: tuple[Item, ...], mode: str, units: int) -> Request:
    """A claim without a request, as the last one in the order."""
    return Request(0, agent, 0, items, mode, units, PRIORITIES[-1], 0, False, 0, 0, 0, 0, "", "", "", 0)


def kept_for(queue: Queue, claim: Request, rivals: list[Request]) -> Request | None:
    """The first of its rivals for which a claim has to wait: one that could go too, or that is at the limit."""
    free = [each for each in rivals if not queue.blocking_claims(each)]
    could = {grant.request.ticket for grant in Queue(queue.state, queue.world).grants(free)}
    for each in rivals:
        if each.ticket in could or (queue.at_limit(each) and queue.overtakes(claim, each)):
            return each
    return None
