"""Requests: what agents wait for. A request is a record in the ledger's tree beside each of its items, found by path as claims are."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, Shape, record_of, values_of
from gitcoord.base.names import RESOURCE, claim_dir, shown
from gitcoord.claims.model import MODES, WRITE, Claim, Item, compatible, file_of, key_of, overlapping, own_claim
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

PRIORITIES = ("critical", "high", "normal", "low")
# A request for any task asks for this one; it is granted a task's own item and what the task needs.
NEXT = Item(RESOURCE, "tasks/next")
_TASK = "task/"
LONGEST_RESERVE = 3600  # seconds for which a waiter that is gone may keep the others waiting
MOST_MISSED = 2  # a request that missed its reservation so often is dropped

_REQUEST: dict[str, Shape] = {
    "ticket": int, "agent": str, "session": int, "items": [(str, str)], "mode": str, "units": int, "priority": str,
    "overtaken": int, "blocking": bool, "missed": int, "reserve": int, "ttl": int, "expected": int, "reason": str,
    "task": str, "base": str, "at": int,
}  # fmt: skip


class Request(NamedTuple):
    """One agent's request for all its items together. `ticket` is the Seq of the event that put it at its place."""

    ticket: int
    agent: str
    session: int
    items: tuple[Item, ...]
    mode: str
    units: int
    priority: str
    overtaken: int
    blocking: bool  # its agent does nothing else until it is granted
    missed: int  # reservations that were not confirmed
    reserve: int  # seconds for which a grant is kept unconfirmed
    ttl: int
    expected: int
    reason: str
    task: str
    base: str
    at: int

    @classmethod
    def from_record(cls, record: Record, file: str) -> Request:
        found = cls._make(values_of(record, _REQUEST, file))
        request = found._replace(items=tuple(Item(*pair) for pair in found.items))
        if request.priority not in PRIORITIES or not file.endswith(f"/@{request.agent}"):
            raise Malformed(f"{file} holds a request that does not belong there")
        return request

    def to_record(self) -> Record:
        return {**record_of(_REQUEST, self), "items": [list(item) for item in self.items]}

    def to_json(self) -> dict[str, object]:
        """As every `--json` shows it."""
        return {
            "ticket": self.ticket, "agent": self.agent, "paths": [shown(i.name, i.space) for i in self.items],
            "mode": self.mode, "units": self.units, "priority": self.priority, "overtaken": self.overtaken,
            "blocking": self.blocking, "since": self.at, "reason": self.reason, "task": self.task,
        }  # fmt: skip

    def is_same(self, items: Iterable[Item], mode: str, units: int) -> bool:
        """Is this the same request once more? Then it keeps its ticket."""
        return set(self.items) == set(items) and (self.mode, self.units) == (mode, units)

    def given(self, state: State) -> tuple[Item, ...]:
        """The items that a grant gives: those that the agent does not hold already as it asks for them, which stay as they are."""
        owns = {item: self.own(state, item) for item in self.items}
        return tuple(item for item, own in owns.items() if own is None or not self.is_met(own)) or self.items

    def claims(self, state: State, seq: int, at: int, nonce: str) -> list[Claim]:
        """The claims that this request becomes when an event grants it, each with all that is needed to undo it."""
        given = self.given(state)
        kept: Record = {key: getattr(self, key) for key in ("ticket", "priority", "blocking", "missed", "reserve")}
        if len(given) < len(self.items):
            kept["held"] = [list(item) for item in self.items if item not in given]
        return [self._claim(item, self.own(state, item), kept, seq, at, nonce) for item in given]

    def _claim(self, item: Item, own: Claim | None, kept: Record, seq: int, at: int, nonce: str) -> Claim:
        """A reserved claim. It is at least as strong as the agent's own, which it replaces and keeps in mind."""
        said = (self.mode, seq, self.ttl, self.expected, self.reason, self.task, self.base, nonce, at, self.units)
        claim = Claim(item.name, item.space, self.agent, self.session, *said, kept)
        if own is None:
            return claim
        return claim._replace(
            mode=max(own.mode, self.mode, key=MODES.index), units=max(own.units, self.units),
            reason=self.reason or own.reason, task=self.task or own.task,
            base=own.base if own.mode == WRITE else self.base,
            reserved={**kept, "before": own._replace(reserved=None).to_record()},
        )  # fmt: skip

    def own(self, state: State, item: Item) -> Claim | None:
        """The claim of its agent on this item, in the same session."""
        own = own_claim(state, item, self.agent)
        return own if own is not None and own.session == self.session else None

    def is_met(self, own: Claim) -> bool:
        """Is this claim of its agent as strong as what it asks for?"""
        return MODES.index(own.mode) >= MODES.index(self.mode) and own.units >= self.units


def task_item(id: str) -> Item:
    """The resource that is reserved for an agent that waited for any task, until it takes this one."""
    return Item(RESOURCE, _TASK + id)


def task_of(items: Iterable[Item]) -> str:
    """The id of the task among these items; '' where there is none."""
    return next((i.name[len(_TASK) :] for i in items if i.space == RESOURCE and i.name.startswith(_TASK)), "")


def asked_items(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items of the request behind a grant."""
    return (NEXT,) if task_of(items) else items


def wait_file(state: State, item: Item, agent: str) -> str:
    return "waits/" + file_of(state, item, agent).partition("/")[2]


def directory_of(state: State, item: Item) -> str:
    """The directory of the requests for this item."""
    return "waits/" + claim_dir(item.space, key_of(state, item)).partition("/")[2]


def own_request(state: State, item: Item, agent: str) -> Request | None:
    file = wait_file(state, item, agent)
    record = state.get(file)
    return None if record is None else Request.from_record(record, file)


def own_requests(state: State, agent: str) -> list[Request]:
    """All requests of one agent, by ticket."""
    return _sorted(state.named("waits", f"@{agent}")) if state.names("waits") else []


def all_requests(state: State) -> list[Request]:
    return _sorted(state.below("waits")) if state.names("waits") else []


def requests_around(state: State, directory: str) -> list[Request]:
    """The requests for an item, for something above it or below it, by ticket."""
    return _sorted(_records_around(state, directory))


def _records_around(state: State, directory: str) -> dict[str, Record]:
    found = state.below(directory)
    while "/" in directory:
        directory = directory.rpartition("/")[0]
        found.update(state.leaves(directory))
    return found


def _sorted(records: dict[str, Record]) -> list[Request]:
    found = {record["ticket"]: (record, file) for file, record in records.items()}
    return [Request.from_record(*found[ticket]) for ticket in sorted(found)]


def put(state: State, request: Request, changes: Changes) -> None:
    """Write the request beside each of its items."""
    changes.update({wait_file(state, item, request.agent): request.to_record() for item in request.items})


def drop(state: State, request: Request, changes: Changes) -> None:
    changes.update({wait_file(state, item, request.agent): None for item in asked_items(request.items)})


def drop_all(state: State, agent: str, changes: Changes) -> None:
    """An agent whose session ends waits for nothing any more."""
    for request in own_requests(state, agent):
        drop(state, request, changes)


# --- requests and claims


def returned(claims: list[Claim], ticket: int) -> Request | None:
    """The request of a grant that nobody confirmed, with a new ticket; None where it is dropped."""
    first = claims[0]
    kept = first.reserved
    assert kept is not None
    missed = int(kept["missed"]) + 1
    if missed >= MOST_MISSED:
        return None
    items = asked_items((*(claim.item for claim in claims), *(Item(*pair) for pair in kept.get("held", ()))))
    said = ("", "") if items == (NEXT,) else (first.reason, first.task)
    return Request(
        ticket, first.agent, first.session, items, min((claim.mode for claim in claims), key=MODES.index),
        min(claim.units for claim in claims),
        kept["priority"], 0, kept["blocking"], missed, kept["reserve"], first.ttl, first.expected, *said,
        first.base, first.at,
    )  # fmt: skip


def consume(state: State, agent: str, changes: Changes) -> None:
    """An agent that holds all items of a request, the last of them by these changes, does not wait for them any more."""
    given = [r for r in changes.values() if r is not None and "token" in r and r["agent"] == agent]
    asked = [own_request(state, Item(record["space"], record["path"]), agent) for record in given]
    for request in {each.ticket: each for each in asked if each is not None}.values():
        files = [file_of(state, item, agent) for item in request.items]
        records = [changes[file] if file in changes else state.get(file) for file in files]
        claims = [Claim.from_record(r, file) for r, file in zip(records, files) if r is not None]
        if len(claims) == len(files) and all(map(request.is_met, claims)):
            drop(state, request, changes)


def capacity_for(world: World, item: Item) -> int:
    return world.resource(item.name).capacity if item.space == RESOURCE else 1


class Requests:
    """The requests and claims of one state around the items that are asked for. Each is read and converted once.

    `patch` makes them follow a grant: `state` has its claims, and what became of requests is in `_found`; they are never read again."""

    def __init__(self, state: State, world: World) -> None:
        self.state = state
        self.world = world
        self._before = state
        self._found: dict[int, Request | None] = {}  # by ticket; None: granted since
        self._around: dict[Item, list[int]] = {}
        self._of: dict[str, list[int]] = {}
        self._claims: dict[Item, list[Claim]] = {}

    def around(self, request: Request) -> dict[int, Request]:
        """The requests for its items, for something above or below them, by ticket."""
        tickets: set[int] = set()
        for item in request.items:
            if item not in self._around:
                self._around[item] = self._read(_records_around(self._before, directory_of(self._before, item)))
            tickets.update(self._around[item])
        return self._those(sorted(tickets))

    def beside(self, files: Iterable[str]) -> dict[int, Request]:
        """The requests around these files of claims or requests."""
        directories = dict.fromkeys("waits/" + file.partition("/")[2].rpartition("/")[0] for file in files)
        records = [_records_around(self._before, directory) for directory in directories]
        tickets = {ticket for each in records for ticket in self._read(each)}
        return self._those(sorted(tickets))

    def of(self, agent: str) -> dict[int, Request]:
        """All requests of one agent, by ticket."""
        if agent not in self._of:
            self._of[agent] = self._read(self._before.named("waits", f"@{agent}"))
        return self._those(self._of[agent])

    def blocking(self, agent: str) -> list[Request]:
        """The request until whose grant this agent does nothing else: one or none."""
        return [each for each in self.of(agent).values() if each.blocking][-1:]

    def _read(self, records: dict[str, Record]) -> list[int]:
        tickets = sorted({record["ticket"]: file for file, record in records.items()}.items())
        for ticket, file in tickets:
            if ticket not in self._found:
                self._found[ticket] = Request.from_record(records[file], file)
        return [ticket for ticket, _ in tickets]

    def _those(self, tickets: Iterable[int]) -> dict[int, Request]:
        return {ticket: each for ticket in tickets if (each := self._found[ticket]) is not None}

    def patch(self, requests: dict[int, Request | None], changes: Changes) -> None:
        """Follow a grant: these requests are changed or gone, and these files of claims."""
        self._found.update(requests)
        self.state = self.state.patched(changes)
        self._claims.clear()

    def claims(self, item: Item) -> list[Claim]:
        if item not in self._claims:
            self._claims[item] = overlapping(self.state, item)
        return self._claims[item]

    def blocking_claims(self, request: Request, agents: set[str] | None = None) -> list[Claim]:
        """Claims of others (of these agents only) that conflict with the request, whether they have expired or not."""
        found: list[Claim] = []
        for item in request.items:
            capacity = capacity_for(self.world, item)
            others = [
                c for c in self.claims(item) if c.agent != request.agent and (agents is None or c.agent in agents)
            ]
            sharers = [c for c in others if capacity > 1 and c.path == item.name]
            found += [c for c in others if c not in sharers and not compatible(c.mode, request.mode)]
            if sum(c.units for c in sharers) + request.units > max(capacity, request.units):
                found += sharers
        return found


def blocking_claims(state: State, world: World, request: Request, agents: set[str] | None = None) -> list[Claim]:
    return Requests(state, world).blocking_claims(request, agents)
