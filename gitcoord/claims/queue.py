"""The queue: the order of requests, who may go, who is overtaken, and the grants that an event makes.

- A request may go if no claim of another agent conflicts with it, and no request before it in the order that may not be overtaken
  conflicts with it.
- The order: requests that were overtaken as often as the settings allow, then by priority, then by ticket.
- A request that goes past one that cannot go now overtakes it, which is counted. A request that was overtaken often enough is passed only
  by one without which it could never go: that is no overtaking.
- A request for any task goes as one for a task that can be taken, with all that this task needs.
- Nothing here asks who is alive: the order follows from the ledger alone, so client, server and simulation come to one answer.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import refused
from gitcoord.base.names import RESOURCE, covers, printable, shown
from gitcoord.claims.deadlock import reachable, stuck_with, waits_for
from gitcoord.claims.events.claim import require_free
from gitcoord.claims.model import WRITE, Item, compatible, file_of, is_turn_item, key_of
from gitcoord.claims.requests import (
    NEXT,
    PRIORITIES,
    Request,
    Requests,
    all_requests,
    asked_items,
    capacity_for,
    directory_of,
    drop,
    own_requests,
    put,
    requests_around,
    wait_file,
)
from gitcoord.ledger.event import READY, Event, Illegal
from gitcoord.ledger.kinds import task_rules
from gitcoord.ledger.sessions import OPEN, agent_record
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterable


class Queue(Requests):
    """The order of the requests on one state."""

    def __init__(self, state: State, world: World) -> None:
        super().__init__(state, world)
        self.limit = world.waiting().overtake
        self._keys: dict[Item, str] = {}
        self._keepers: dict[int, list[Request]] = {}
        self._reachable: dict[int, dict[int, Request]] = {}
        self._holders: dict[str, bool] = {}

    def rank(self, request: Request) -> tuple[int, int, int]:
        return (0 if self.exhausted(request) else 1, PRIORITIES.index(request.priority), request.ticket)

    def exhausted(self, request: Request) -> bool:
        """May it not be overtaken any more?"""
        return request.overtaken >= self.limit

    def conflict(self, one: Request, other: Request, *, turns: bool = True) -> bool:
        """Could not both have all their items at the same time, beside the claims that are there now?

        Without `turns`, but for turns of landing: who waits for a path lets others land meanwhile, and is not overtaken by that.
        """
        if one.agent == other.agent:
            return False
        return any(
            mine.space == theirs.space
            and (turns or not is_turn_item(mine))
            and self._conflict(one, mine, other, theirs)
            for mine in one.items
            for theirs in other.items
        )

    def _conflict(self, one: Request, mine: Item, other: Request, theirs: Item) -> bool:
        keys = self._key(mine), self._key(theirs)
        if not (covers(*keys) or covers(*keys[::-1])):
            return False
        capacity = capacity_for(self.world, mine)
        if capacity > 1 and keys[0] == keys[1]:
            agents = (one.agent, other.agent)
            held = [c for c in self.claims(mine) if c.path == mine.name and c.agent not in agents]
            return sum(claim.units for claim in held) + one.units + other.units > capacity
        return not compatible(one.mode, other.mode)

    def _key(self, item: Item) -> str:
        if item not in self._keys:
            self._keys[item] = key_of(self.state, item)
        return self._keys[item]

    def rivals(self, request: Request) -> list[Request]:
        """The requests that conflict with this one, in order."""
        return sorted((r for r in self.around(request).values() if self.conflict(request, r)), key=self.rank)

    def with_rivals(self, request: Request) -> list[Request]:
        """The request itself and those that conflict with it, in order."""
        return sorted([request, *self.rivals(request)], key=self.rank)

    def keepers(self, request: Request) -> list[Request]:
        """The requests before this one that may not be overtaken and conflict with it."""
        if request.ticket not in self._keepers:
            rank = self.rank(request)
            near = [each for each in self.around(request).values() if self.exhausted(each) and self.rank(each) < rank]
            self._keepers[request.ticket] = [each for each in near if self.conflict(request, each, turns=False)]
        return self._keepers[request.ticket]

    def kept_for(self, request: Request, before: Iterable[Request]) -> Request | None:
        """The first of these requests that this one may not overtake."""
        for other in before:
            keeps = self.exhausted(other) and self.conflict(request, other, turns=False)
            if keeps and not self.depends(other, request):
                return other
        return None

    def depends(self, request: Request, on: Request) -> bool:
        """Can the request never go unless the other one goes first?"""
        if not self.exhausted(on) and not self._holds(on.agent):
            return False  # nobody waits for an agent that holds nothing
        if request.ticket not in self._reachable:
            self._reachable[request.ticket] = reachable(self, request, self.keepers)
        return waits_for(self, self.keepers, request, on, self._reachable[request.ticket])

    def _holds(self, agent: str) -> bool:
        if agent not in self._holders:
            self._holders[agent] = bool(self.state.named("claims", f"@{agent}"))
        return self._holders[agent]

    def grants(self, first: Iterable[Request]) -> list[tuple[Request, list[Request]]]:
        """Those of these requests, and of all that compete with them, that may go now, in order, each with those that it overtakes.

        The queue follows."""
        competing, left = self._competing(first)
        candidates = sorted(competing, key=self.rank)
        place = {request.ticket: index for index, request in enumerate(candidates)}
        found: list[tuple[Request, list[Request]]] = []
        for asked in candidates:
            for request in self._forms(asked) if asked.ticket not in left else ():
                if self.blocking_claims(request):
                    continue
                at = place[asked.ticket]
                near = [e for e in self.around(request).values() if e.ticket in left and place.get(e.ticket, at) < at]
                before = sorted(near, key=lambda each: place[each.ticket])
                if self.kept_for(request, before) is not None or self._closes(request):
                    self._keepers.clear()  # by ticket, which another form shares
                    continue
                past = [
                    each for each in before if not self.exhausted(each) and self.conflict(request, each, turns=False)
                ]
                found.append((request, past))
                self._follow(request, past)
                break
            else:
                left.add(asked.ticket)
        # Its agent's other requests may go now: it does not block any more, so that they close no deadlock, or those for which they were
        # kept wait for what it has got.
        freed = [each for request, _ in found for each in self.of(request.agent).values()]
        return found + self.grants(freed) if freed else found

    def _forms(self, request: Request) -> Iterable[Request]:
        """The request itself; for any task: one for each task that its agent may have."""
        return task_rules().forms(self.state, self.world, request) if NEXT in request.items else (request,)

    def _competing(self, first: Iterable[Request]) -> tuple[list[Request], set[int]]:
        """These requests and all that compete with those of them that may go, and so on; and the tickets of those that stay: they
        wait for a claim, or for one that does and may not be overtaken, and let nobody else go."""
        found = {request.ticket: request for request in first}
        todo, left = list(found.values()), set()
        for asked in todo:
            forms = [form for form in self._forms(asked) if not self.blocking_claims(form)]
            if not forms or (forms == [asked] and self._is_kept(asked)):
                left.add(asked.ticket)
                continue
            for request in [asked, *forms]:
                new = {t: each for t, each in self.around(request).items() if t not in found}
                found.update(new)
                todo += new.values()
        return todo, left

    def _is_kept(self, request: Request) -> bool:
        return (
            self.kept_for(request, (each for each in self.keepers(request) if self.blocking_claims(each))) is not None
        )

    def _follow(self, request: Request, past: list[Request]) -> None:
        counted: dict[int, Request | None] = {p.ticket: p._replace(overtaken=p.overtaken + 1) for p in past}
        for memory in (self._keepers, self._reachable, self._holders):
            memory.clear()
        self.patch({request.ticket: None, **counted}, _claims_of(self.state, request, 1, 0, ""))

    def _closes(self, request: Request) -> bool:
        """Would its grant to an agent that is blocked by another request make a deadlock?"""
        if all(each.ticket == request.ticket or not each.blocking for each in self.of(request.agent).values()):
            return False
        after = Requests(self._before, self.world)
        after.patch({**self._found, request.ticket: None}, {})
        after.state = self.state.patched(_claims_of(self.state, request, 1, 0, ""))
        return bool(stuck_with(after, request.agent))


def overtaken_by(state: State, world: World, agent: str, items: tuple[Item, ...], mode: str, units: int) -> list[int]:
    """The tickets of the requests that a claim without a request goes past; Refused where it has to wait for one of them.

    Such a claim is the last in the order.
    """
    claim = plain_request(agent, items, mode, units)
    queue = Queue(state, world)
    rivals = queue.rivals(claim)
    kept = kept_for(queue, claim, rivals)
    if kept is not None:
        what = ", ".join(shown(item.name, item.space) for item in items[:3])
        wanted = ", ".join(shown(item.name, item.space) for item in kept.items[:3])
        raise refused(
            "kept",
            f"'{printable(what)}' is free, but kept for {kept.agent}, who waits for {printable(wanted)}",
        )
    return [request.ticket for request in rivals if queue.conflict(claim, request, turns=False)]


def plain_request(agent: str, items: tuple[Item, ...], mode: str, units: int) -> Request:
    """A claim without a request, as the last one in the order."""
    return Request(0, agent, 0, items, mode, units, PRIORITIES[-1], 0, False, 0, 0, 0, 0, "", "", "", 0)


def kept_for(queue: Queue, claim: Request, rivals: list[Request]) -> Request | None:
    """The first of the requests that conflict with a claim for which a free item is kept: it could go too, or was overtaken often
    enough."""
    free = [each for each in rivals if not queue.blocking_claims(each)]
    could = {each.ticket for each, _ in Queue(queue.state, queue.world).grants(free)} if free else set()
    for each in rivals:
        if each.ticket in could or (queue.exhausted(each) and queue.conflict(claim, each, turns=False)):
            return each
    return None


# --- the grants of an event ----------------------------------------------------------------------------------------


def freed_by(before: State, changes: Changes) -> list[str]:
    """The files whose change may let somebody go: what is freed, and what is given to an agent that waits: whoever waits for that
    may be passed from now on by those for whom the agent waits."""
    given = {key: r["agent"] for key, r in changes.items() if key.startswith("claims/") and r is not None}
    waiting = {agent for agent in given.values() if own_requests(before, agent)}
    return [
        key
        for key in changes
        if key.startswith(("halt", READY)) or given.get(key) in waiting or _frees(before, key, changes[key])
    ]


def grants_after(after: State, keys: list[str], world: World) -> tuple[Record, ...]:
    """The rows of the requests that may go now that these files have changed. While everything is halted, none."""
    if after.get("halt") is not None:
        return ()
    queue = Queue(after, world)
    if "halt" in keys:
        first = all_requests(after)
    else:
        files = [key for key in keys if not key.startswith(READY)]
        near = queue.beside(files)
        for agent in dict.fromkeys(file.rpartition("/@")[2] for file in files):
            for each in queue.of(agent).values():
                near.update(reachable(queue, each, queue.keepers))
        near.update(queue.around(plain_request("", (NEXT,), WRITE, 1)))  # whatever is free, a task may need it
        first = list(near.values())
    return tuple(_row(after, world, *grant) for grant in queue.grants(first))


def _frees(before: State, key: str, record: Record | None) -> bool:
    if key.startswith("waits/"):
        return True
    old = before.get(key) if key.startswith("claims/") else None
    if old is None or record is None:
        return old is not None
    return bool(old["units"] > record["units"] or (old["mode"] == WRITE != record["mode"]))


def _row(state: State, world: World, request: Request, past: list[Request]) -> Record:
    items = request.given(state)
    return {
        "ticket": request.ticket, "agent": request.agent, "items": [list(item) for item in items],
        "past": [each.ticket for each in past],
        "capacity": {item.name: capacity_for(world, item) for item in items if item.space == RESOURCE},
    }  # fmt: skip


def _granted(state: State, request: Request, past: list[Request], seq: int, at: int, nonce: str) -> Changes:
    """The changes that a grant makes: claims instead of the request, and a count for each that it overtakes."""
    changes: Changes = {}
    drop(state, request, changes)
    for each in past:
        put(state, each._replace(overtaken=each.overtaken + 1), changes)
    return {**changes, **_claims_of(state, request, seq, at, nonce)}


def _claims_of(state: State, request: Request, seq: int, at: int, nonce: str) -> Changes:
    claims = request.claims(state, seq, at, nonce)
    return {file_of(state, claim.item, claim.agent): claim.to_record() for claim in claims}


def apply_grants(state: State, event: Event, changes: Changes) -> Changes:
    """The changes of an event together with those of its grants; Illegal where a grant does not fit."""
    changes = dict(changes)
    work = state.patched(changes)
    if event.past:
        items = [Item(*pair) for pair in event.body["items"]]
        counted: Changes = {}
        for each in _passed(work, event, event.agent, items, list(event.past)):
            put(work, each._replace(overtaken=each.overtaken + 1), counted)
        changes.update(counted)
        work = work.patched(counted)
    for row in event.granted:
        more = _applied(work, event, row)
        changes.update(more)
        work = work.patched(more)
    return changes


def _applied(state: State, event: Event, row: Record) -> Changes:
    agent, items = row["agent"], [Item(*pair) for pair in row["items"]]
    file = wait_file(state, asked_items(tuple(items))[0], agent) if items else ""
    record = state.get(file) if items else None
    request = Request.from_record(record, file) if record is not None else None
    if request is not None and NEXT in request.items:
        request = task_rules().form_for(state, request, items)
    if request is None or request.ticket != row["ticket"] or list(request.given(state)) != items:
        raise Illegal(f"event {event.seq} grants a request of '{agent}' that is not there")
    holder = agent_record(state, agent)
    if holder is None or (holder.state, holder.session) != (OPEN, request.session):
        raise Illegal(f"event {event.seq} grants to '{agent}', whose session is over")
    if not all(type(units) is int for units in row["capacity"].values()):
        raise Illegal(f"event {event.seq} does not fit together")
    for item in items:
        capacity = row["capacity"].get(item.name, 1)
        require_free(state, event._replace(agent=agent), item, request.mode, request.units, capacity)
    past = _passed(state, event, agent, list(request.items), row["past"])
    return _granted(state, request, past, event.seq, event.at, event.nonce)


def _passed(state: State, event: Event, agent: str, items: list[Item], tickets: list[int]) -> list[Request]:
    near = {
        r.ticket: r for item in items for r in requests_around(state, directory_of(state, item)) if r.agent != agent
    }
    if len(set(tickets)) != len(tickets) or not near.keys() >= set(tickets):
        raise Illegal(f"event {event.seq} overtakes a request that is not there")
    return [near[ticket] for ticket in tickets]


def refs_of_grants(state: State, event: Event) -> dict[str, bool]:
    return {"refs/" + file_of(state, Item(*pair), row["agent"]): True for row in event.granted for pair in row["items"]}
