"""Waiting as it should be: who waits for whom, and who could go. Written without the rules' own functions, so that both cannot be wrong alike."""

from __future__ import annotations

from gitcoord.simulation.records import Records, top_of
from gitcoord.simulation.world import RESOURCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitcoord.base.codec import Record

LIMIT = 3  # overtakings
_CLASSES = ("critical", "high", "normal", "low")


def overlaps(one: str, other: str) -> bool:
    """Is one path the other, or above it?"""
    return one == other or "." in (one, other) or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def pairs(record: Record) -> list[tuple[str, str]]:
    return [(space, name) for space, name in record["items"]]


def _is_shared(record: Record) -> bool:
    return any(name in RESOURCES for _, name in record["items"])


class Waiting:
    """The requests and claims of a ledger."""

    def __init__(self) -> None:
        self.files = Records({})  # of requests
        self.claims = Records({})
        self.passed: dict[int, int] = {}  # how often each ticket was overtaken

    def reset(self, claims: dict[str, Record], files: dict[str, Record]) -> None:
        self.files, self.claims = Records(files), Records(claims)
        self.passed = {r["ticket"]: r["overtaken"] for r in files.values()}

    def requests_near(self, items: Iterable[tuple[str, str]]) -> list[Record]:
        """The requests that may want something of these items, or above or below them."""
        tops = {top_of(*item): None for item in items}
        return list({record["ticket"]: record for top in tops for record in self.files.near(top)}.values())

    def requests_of(self, agent: str) -> dict[int, Record]:
        """All requests of one agent, by ticket."""
        return {record["ticket"]: record for record in self.files.of(agent).values()}

    def rank(self, record: Record) -> tuple[bool, bool, int, int]:
        """`upgrade` in a request that is being granted: whether it was one before that."""
        upgrade = record["upgrade"] if "upgrade" in record else all(self._holds(record, *p) for p in pairs(record))
        first = (not upgrade, not (upgrade or self.is_at_limit(record)))
        return (*first, _CLASSES.index(record["priority"]), record["ticket"])

    def _holds(self, record: Record, space: str, name: str) -> bool:
        """Does the agent of this request hold this item already, in whatever mode?"""
        own = self.claims.files.get(f"claims/{space}/{name}/@{record['agent']}")
        return own is not None and own["session"] == record["session"]

    def is_at_limit(self, record: Record) -> bool:
        return self.passed.get(record["ticket"], 0) >= LIMIT

    # --- what is in the way

    def blockers(self, record: Record, agents: Iterable[str] | None = None) -> list[Record]:
        """Claims of others that the request waits for; of these agents only, where they are given."""
        found: list[Record] = []
        for space, name in pairs(record):
            near = [
                c
                for c in self.claims.near(top_of(space, name))
                if c["agent"] != record["agent"]
                and overlaps(c["path"], name)
                and (agents is None or c["agent"] in agents)
            ]
            capacity = RESOURCES[name].capacity if space == "resource" and name in RESOURCES else 1
            if capacity > 1:
                used = sum(c["units"] for c in near)
                found += near if used + record["units"] > capacity else []
            else:
                found += [c for c in near if "write" in (c["mode"], record["mode"])]
        return found

    def conflict(self, one: Record, other: Record) -> bool:
        if one["agent"] == other["agent"]:
            return False
        for space, name in pairs(one):
            for where, theirs in pairs(other):
                if space != where or not overlaps(name, theirs):
                    continue
                if space == "resource" and name in RESOURCES:
                    agents = (one["agent"], other["agent"])
                    held = self.claims.on(space, name).values()
                    used = sum(c["units"] for c in held if c["agent"] not in agents)
                    if used + one["units"] + other["units"] > RESOURCES[name].capacity:
                        return True
                elif "write" in (one["mode"], other["mode"]):
                    return True
        return False

    def cannot_go(self, request: Record) -> bool:
        return bool(self.blockers(request)) or self.is_kept(request) or self.closes(request)

    def is_kept(self, request: Record) -> bool:
        return any(not self.needs(each, request) for each in self._keepers(request))

    def _keepers(self, request: Record) -> list[Record]:
        """The requests before this one that may not be overtaken and conflict with it."""
        return [
            each
            for each in self.requests_near(pairs(request))
            if self.is_at_limit(each) and self.rank(each) < self.rank(request) and self.conflict(request, each)
        ]

    def needs(self, request: Record, other: Record) -> bool:
        """Could the request never go if the other one never went? Agents release all that they hold once they wait for nothing."""
        left, todo = {request["ticket"]: request}, [request]
        for each in todo:
            new = {ticket: r for ticket, r in self._waits_for(each).items() if ticket not in left}
            left.update(new)
            todo += new.values()
        if other["ticket"] not in left:
            return False
        while True:
            agents = {record["agent"] for record in left.values()}
            waits = {ticket: self._waits_for(r, agents).keys() & left.keys() for ticket, r in left.items()}
            gone = [ticket for ticket, found in waits.items() if not found and ticket != other["ticket"]]
            if not gone:
                break
            for ticket in gone:
                del left[ticket]
        found, tickets = {request["ticket"]}, [request["ticket"]]
        for ticket in tickets:
            more = waits.get(ticket, set()) - found
            found |= more
            tickets += more
        return other["ticket"] in found

    def _waits_for(self, request: Record, agents: Iterable[str] | None = None) -> dict[int, Record]:
        """The requests without which this one does not go now, by ticket. `agents`: the others hold nothing any more."""
        found = {each["ticket"]: each for each in self._keepers(request)}
        for claim in self.blockers(request, agents):
            found.update(self.requests_of(claim["agent"]))
        if self.closes(request):  # it is held back until its agent does not block any more
            found.update({t: r for t, r in self.requests_of(request["agent"]).items() if r["blocking"]})
        return found

    def closes(self, request: Record) -> bool:
        """Its agent is blocked by another request of its own, and its grant would make a deadlock."""
        agent, ticket = request["agent"], request["ticket"]
        if not any(other != ticket and each["blocking"] for other, each in self.requests_of(agent).items()):
            return False
        files = {f"claims/{space}/{name}/@{agent}": (space, name) for space, name in pairs(request)}
        before = {file: self.claims.files.get(file) for file in files}
        for file, (space, name) in files.items():
            own = before[file] or request
            mode = "write" if "write" in (own["mode"], request["mode"]) else request["mode"]
            units = max(own["units"], request["units"])
            given = {"space": space, "path": name, "agent": agent, "mode": mode, "units": units}
            self.claims.put(file, given)
        try:
            return agent in self.stuck([agent], without=ticket)
        finally:
            self.claims.put_all(before)

    def stuck(self, agents: Iterable[str], *, without: int = 0) -> set[str]:
        """Those of these agents and of all for which they wait that wait for ever, where everybody else releases what it holds. `without`:
        the ticket of a request that does not count."""
        last: dict[str, Record] = {}
        todo = list(agents)
        for agent in todo:
            blocking = [
                each for ticket, each in self.requests_of(agent).items() if each["blocking"] and ticket != without
            ]
            if blocking and agent not in last:
                last[agent] = max(blocking, key=lambda each: int(each["ticket"]))
                todo += [claim["agent"] for claim in self.blockers(last[agent])]
        stuck = set(last)
        while free := {agent for agent in stuck if not self.blockers(last[agent], stuck)}:
            stuck -= free
        return stuck
