"""Claims: modes, overlap and conflicts."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, Shape, check, has_shape, record_of, values_of
from gitcoord.base.errors import UsageError
from gitcoord.base.names import ancestors, check_agent, claim_dir, claim_file, covers, fold, shown
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.sessions import OPEN, Expiry, agent_record, expiry_of
from gitcoord.ledger.state import Part, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

READ, INTENT, WRITE = "read", "intent", "write"
MODES = (READ, INTENT, WRITE)
DEFAULT_TTL = 30 * 60
_AT_ONCE = 32  # directories that are read together
MIN_TTL, MAX_TTL = 1, 7 * 24 * 3600
UNCONFIRMED = "unconfirmed"  # the rule by which a grant that nobody confirms is expired
TURN = "land/"  # resources so named are turns of landing (`gitcoord/landing`)

_CLAIM = {
    "path": str, "space": str, "agent": str, "session": int, "mode": str, "token": int, "ttl": int, "expected": int,
    "reason": str, "task": str, "base": str, "nonce": str, "at": int, "units": int,
}  # fmt: skip


_CLAIM_OPTIONAL: dict[str, Shape] = {"reserved": dict}
_RESERVED: Shape = {"ticket": int, "priority": str, "blocking": bool, "missed": int, "reserve": int}


class Item(NamedTuple):
    """A path or a resource."""

    space: str
    name: str


def capacity_of(items: Iterable[Item], world: World) -> Record:
    """The capacity of each resource among the items, as evidence in a claim event."""
    return {item.name: world.resource(item.name).capacity for item in items if item.space == "resource"}


def compatible(held: str, asked: str) -> bool:
    """Two agents may hold the same path only if neither writes."""
    return held != WRITE and asked != WRITE


class Claim(NamedTuple):
    """A claim: one agent's hold on one path or resource. `token` is the Seq of the event that granted it."""

    path: str
    space: str
    agent: str
    session: int
    mode: str
    token: int
    ttl: int
    expected: int
    reason: str
    task: str
    base: str  # the commit from which the work below it is counted
    nonce: str
    at: int
    units: int
    reserved: Record | None = (
        None  # of a grant to a request: what is needed to put the request back if nobody confirms it
    )

    @classmethod
    def from_record(cls, record: Record, file: str) -> Claim:
        found = check(record, _CLAIM, file, _CLAIM_OPTIONAL)
        if "reserved" in found and not _is_reservation(found["reserved"]):
            raise Malformed(f"{file} holds a reservation of the wrong shape")
        return cls._make([*(found[key] for key in _CLAIM), found.get("reserved")]).checked(file)

    def to_record(self) -> Record:
        record = record_of(_CLAIM, self)
        return record if self.reserved is None else {**record, "reserved": self.reserved}

    def checked(self, file: str) -> Claim:
        """The claim itself; Malformed if it does not belong into this file of the tree."""
        if not self._belongs(file) or self.mode not in MODES or self.token < 1 or self.units < 1:
            raise Malformed(f"{file} holds a claim that does not belong there")
        return self

    def _belongs(self, file: str) -> bool:
        """Is this the claim's own file, with case folded or not?"""
        try:
            check_agent(self.agent)
            return any(file == claim_file(self.space, fold(self.path, case=c), self.agent) for c in (False, True))
        except (ValueError, IndexError, UsageError):
            return False  # the name cannot be encoded

    @property
    def item(self) -> Item:
        return Item(self.space, self.path)

    @property
    def ticket(self) -> int:
        """The ticket of the request that was granted, while the grant is not confirmed; 0 for any other claim. One event may grant several
        requests of an agent, whose claims then have one token."""
        return int(self.reserved["ticket"]) if self.reserved is not None else 0

    def weaker(self) -> Claim | None:
        """The agent's earlier claim that a grant has replaced. It is back when nobody confirms the grant."""
        before = self.reserved.get("before") if self.reserved is not None else None
        return None if before is None else Claim._make([*values_of(before, _CLAIM, "a weaker claim"), None])

    @property
    def key(self) -> tuple[str, str, str]:
        """No two claims have the same space, path and agent."""
        return self.space, self.path, self.agent

    def to_json(self, expires_in: int | None) -> dict[str, object]:
        """As every `--json` shows it."""
        return {
            "path": shown(self.path, self.space), "kind": self.space, "agent": self.agent, "mode": self.mode,
            "token": self.token, "session": self.session, "ttl_seconds": self.ttl, "expires_in_seconds": expires_in,
            "since": self.at, "expected_seconds": self.expected, "reason": self.reason, "task": self.task,
            "base": self.base, "units": self.units,
        }  # fmt: skip


def _is_reservation(record: Record) -> bool:
    rest = {key: value for key, value in record.items() if key not in ("held", "before")}
    return (
        has_shape(rest, _RESERVED)
        and has_shape(record.get("held", []), [(str, str)])
        and (type(record.get("before", {})) is dict)
    )


class Grant(NamedTuple):
    """The terms of a claim without its holder, to be granted again or passed on."""

    space: str
    path: str
    token: int
    mode: str
    ttl: int
    expected: int
    reason: str
    task: str
    base: str
    units: int

    @property
    def item(self) -> Item:
        return Item(self.space, self.path)


def grants_in(body: Record, token: int) -> list[Grant]:
    """The grants of a claim event with this body."""
    said = (body["mode"], body["ttl"], body["expected"], body["reason"], body["task"])
    rows = zip(body["items"], body["bases"])
    return [Grant(space, path, token, *said, base, body["units"]) for (space, path), base in rows]


def grant_body(claim: Claim | Grant, session: int, ttl: int, capacity: Record) -> Record:
    """The body of a claim event that grants the same again, in this session and with this ttl."""
    return {
        "session": session, "items": [list(claim.item)], "mode": claim.mode, "ttl": ttl, "expected": claim.expected,
        "reason": claim.reason, "task": claim.task, "bases": [claim.base], "units": claim.units, "capacity": capacity,
    }  # fmt: skip


def key_of(state: State, item: Item) -> str:
    """The conflict key of an item in this ledger."""
    return fold(item.name, case=folds_case(state))


def file_of(state: State, item: Item, agent: str) -> str:
    return claim_file(item.space, key_of(state, item), agent)


def own_claim(state: State, item: Item, agent: str) -> Claim | None:
    """This agent's claim on exactly this item."""
    key = file_of(state, item, agent)
    record = state.get(key)
    return None if record is None else Claim.from_record(record, key)


def own_claims(state: State, items: Iterable[Item], agent: str) -> list[Claim]:
    """This agent's claims on exactly these items, where it has one."""
    return [own for item in items if (own := own_claim(state, item, agent)) is not None]


def prefetch_own(state: State, items: Iterable[Item], agent: str) -> None:
    """Read the agent's claims on all these items together. For speed only."""
    state.prefetch(("file", file_of(state, item, agent)) for item in items)


def parts_around(space: str, key: str) -> list[Part]:
    """The parts of the state that hold the claims on this item, above it and below it."""
    return [*(("leaves", claim_dir(space, above)) for above in ancestors(key)), ("below", claim_dir(space, key))]


def prefetch_around(state: State, items: Iterable[Item]) -> None:
    """Read the claims on, above and below all these items together. For speed only."""
    state.prefetch(part for item in items for part in parts_around(item.space, key_of(state, item)))


def overlapping(state: State, item: Item) -> list[Claim]:
    """Every claim on the item, on something above it or below it, in a fixed order."""
    found: dict[str, Record] = {}
    for kind, directory in parts_around(item.space, key_of(state, item)):
        found.update(state.leaves(directory) if kind == "leaves" else state.below(directory))
    return [Claim.from_record(found[file], file) for file in sorted(found)]


def all_claims(state: State, agent: str = "") -> list[Claim]:
    """All claims, or those of one agent."""
    found = state.named("claims", f"@{agent}") if agent else state.below("claims")
    return [Claim.from_record(record, file) for file, record in sorted(found.items())]


def some_claims(state: State, most: int, *, besides: str) -> tuple[list[Claim], bool]:
    """Up to `most` claims of other agents, the others unread; and whether there are more. By path, not by age."""
    todo, files = ["claims"], list[str]()
    while todo and len(files) <= most:
        some, todo = todo[:_AT_ONCE], todo[_AT_ONCE:]
        state.prefetch(("names", directory) for directory in some)
        found = [f"{directory}/{name}" for directory in some for name in state.names(directory)]
        leaves = [file for file in found if "/@" in file]
        files += [file for file in leaves if not file.endswith(f"/@{besides}")]
        todo = [*(directory for directory in found if "/@" not in directory), *todo]
    read = sorted(files[:most])
    state.prefetch(("file", file) for file in read)
    records = ((state.get(file), file) for file in read)
    return [Claim.from_record(record, file) for record, file in records if record is not None], len(files) > most


def claims_part(agent: str = "") -> Part:
    """The part of the state that `all_claims` reads."""
    return ("named", f"claims//@{agent}") if agent else ("below", "claims")


class Conflicts(NamedTuple):
    """Claims that conflict with a request: those that are live, and those that have expired."""

    live: list[tuple[Claim, Expiry]]
    expired: list[tuple[Claim, Expiry]]


def conflicts_of(state: State, world: World, item: Item, agent: str, mode: str, units: int) -> Conflicts:
    """Claims of others that conflict with this request."""
    others = [c for c in overlapping(state, item) if c.agent != agent]
    capacity = world.resource(item.name).capacity if item.space == "resource" else 1
    sharers = [c for c in others if capacity > 1 and c.path == item.name]
    conflicts = Conflicts([], [])
    for claim in others:
        if claim not in sharers and not compatible(claim.mode, mode):
            verdict = expiry_of_claim(state, world, claim)
            left = [row for row in _left(state, world, claim, verdict) if not compatible(row[0].mode, mode)]
            conflicts.live.extend(left)
            if verdict.expired and not left:
                conflicts.expired.append((claim, verdict))
    if sum(c.units for c in sharers) + units > capacity:
        # Too few units are left: expired claims give theirs back. If that is not enough, all live claims conflict.
        judged = [(c, expiry_of_claim(state, world, c)) for c in sharers]
        conflicts.expired.extend(row for row in judged if row[1].expired)
        live = [row for each in judged for row in _left(state, world, *each)]
        if sum(c.units for c, _ in live) + units > capacity:
            conflicts.live.extend(live)
    return conflicts


def _left(state: State, world: World, claim: Claim, verdict: Expiry) -> list[tuple[Claim, Expiry]]:
    """The claim that is there after an expiry by this verdict: the claim itself, the weaker one before it, or none."""
    if not verdict.expired:
        return [(claim, verdict)]
    weaker = claim.weaker() if verdict.rule == UNCONFIRMED else None
    return [(weaker, expiry_of_claim(state, world, weaker))] if weaker is not None else []


def expiry_of_claim(state: State, world: World, claim: Claim) -> Expiry:
    """May this claim be expired by the one who looks? A grant that its holder has not confirmed is only reserved."""
    if claim.reserved is None or is_confirmed(world, claim):
        verdict = expiry_of(state, world, claim.agent, claim.session, claim.ttl)
        return verdict if verdict.expired or not is_turn(state, claim) else _expiry_of_turn(world, claim, verdict)
    beat = world.heartbeat(claim.agent)
    if beat is not None and beat.killed and beat.session >= claim.session:
        return Expiry(True, "killed", 0)
    record = agent_record(state, claim.agent)
    if record is None or record.state != OPEN or record.session != claim.session:
        return Expiry(True, "session over", 0)
    left = world.granted_seen(claim.token) + int(claim.reserved["reserve"]) * 1000 - world.mono
    weaker = claim.weaker() if left < 0 else None
    if weaker is not None:
        silent = expiry_of(state, world, claim.agent, claim.session, max(claim.ttl, weaker.ttl))
        if silent.expired:
            return silent  # it keeps neither
    return Expiry(left < 0, UNCONFIRMED, max(0, left // 1000))


def is_turn(state: State, claim: Claim) -> bool:
    """Is this claim part of a turn of landing? All claims of a turn have one token, and the times of `turn_times`."""
    if (claim.ttl, claim.expected) != turn_times(claim.ttl):
        return False  # such as a claim by which a person keeps everybody from landing: it lives as long as its holder
    if is_turn_item(claim.item):
        return True
    own = own_claim(state, turn_item(format_record(state).sync), claim.agent)
    return own is not None and own.token == claim.token


def turn_times(seconds: int) -> tuple[int, int]:
    """The ttl and the expected time of the claims of a turn that lasts so long. That they are equal is the mark by which `is_turn` knows
    them: all claims have both numbers, so no event needs another field."""
    return seconds, seconds


def is_turn_item(item: Item) -> bool:
    """Is this the turn of landing on some trunk?"""
    return item.space == "resource" and item.name.startswith(TURN)


def turn_item(trunk: str) -> Item:
    """The resource that is the turn of landing on this trunk. A ledger has one trunk."""
    return resource_like(TURN, trunk)


def resource_like(prefix: str, text: str) -> Item:
    """A resource with a name like this text. Characters that no resource may have are replaced, so two texts may have one resource."""
    name = "/".join(part.lstrip(".-") or "_" for part in text.split("/"))
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-/") else "_" for c in name)
    return Item("resource", prefix + name[:150].rstrip("/"))


def _expiry_of_turn(world: World, claim: Claim, verdict: Expiry) -> Expiry:
    """A turn lasts for its ttl after its token was first seen, whether its agent lives or not: the process that has the turn takes
    it again in time."""
    left = world.granted_seen(claim.token) + claim.ttl * 1000 - world.mono
    soonest = max(0, left // 1000) if verdict.expires_in is None else min(verdict.expires_in, max(0, left // 1000))
    return Expiry(left < 0, "turn over", soonest)


def is_confirmed(world: World, claim: Claim) -> bool:
    """Has the holder of a grant said by a heartbeat that it knows of it?"""
    beat = world.heartbeat(claim.agent)
    return beat is not None and beat.session == claim.session and beat.confirms >= claim.token


def overlaps(state: State, one: Item, other: Item) -> bool:
    """Is one of two items of the same space the other, or above it?"""
    keys = key_of(state, one), key_of(state, other)
    return covers(*keys) or covers(*keys[::-1])


def covers_item(state: State, claim: Claim, item: Item) -> bool:
    """Does a claim cover all of the item?"""
    return covers(key_of(state, claim.item), key_of(state, item))
