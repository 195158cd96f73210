"""Conditions of the queue: order, bound, no lost wake-up, no deadlock. Written without the rules' own functions."""

from __future__ import annotations

from gitcoord.simulation.world import RESOURCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gitcoord.base.codec import Record
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.state import Changes

LIMIT = 3
_CLASSES = ("critical", "high", "normal", "low")


def overlaps(one: str, other: str) -> bool:
    """Is one path the other, or above it?"""
    return one == other or "." in (one, other) or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _pairs(record: Record) -> list[tuple[str, str]]:
    return [(space, name) for space, name in record["items"]]


class Waiters:
    """The requests and claims of the ledger, followed event by event."""

    def __init__(self, require: Callable[[bool, str], None]) -> None:
        self._require = require
        self.files: dict[str, Record] = {}
        self.claims: dict[str, Record] = {}
        self._command = ""  # the last command that claimed, and the tickets that it has overtaken
        self._counted: set[int] = set()
        self._given_up: tuple[str, set[str]] = (
            "",
            set(),
        )  # the last command that released or took over, and those files
        self.passed: dict[int, int] = {}  # how often each ticket was overtaken, counted here
        self._known: dict[tuple[str, int], Any] | None = None  # answers, while nothing changes
        self._asked: dict[
            tuple[str, int], list[set[tuple[str, str]]]
        ] = {}  # agent, token -> the items of each request granted with it

    def reset(self, claims: dict[str, Record], files: dict[str, Record]) -> None:
        self.files, self.claims, self._command = dict(files), dict(claims), ""
        self.passed = {r["ticket"]: r["overtaken"] for r in files.values()}

    def requests(self) -> list[Record]:
        found: list[Record] = self._once("requests", 0, self._requests)
        return found

    def _requests(self) -> list[Record]:
        found = {record["ticket"]: record for record in self.files.values()}
        return sorted(found.values(), key=self._rank)

    def _once(self, what: str, ticket: int, make: Callable[[], Any]) -> Any:
        """The answer to this question, made once while nothing changes."""
        if self._known is None:
            return make()
        if (what, ticket) not in self._known:
            self._known[what, ticket] = make()
        return self._known[what, ticket]

    def _rank(self, record: Record) -> tuple[bool, int, int]:
        exhausted = self.passed.get(record["ticket"], 0) >= LIMIT
        return (not exhausted, _CLASSES.index(record["priority"]), record["ticket"])

    # --- conflicts

    def blockers(self, record: Record, agents: Iterable[str] | None = None) -> list[Record]:
        """Claims of others that the request waits for; of these agents only, where they are given."""
        found: list[Record] = []
        for space, name in _pairs(record):
            near = [
                c
                for c in self.claims.values()
                if c["space"] == space and c["agent"] != record["agent"] and overlaps(c["path"], name)
            ]
            near = [c for c in near if agents is None or c["agent"] in agents]
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
        for space, name in _pairs(one):
            for where, theirs in _pairs(other):
                if space != where or not overlaps(name, theirs):
                    continue
                if space == "resource" and name in RESOURCES:
                    agents = (one["agent"], other["agent"])
                    used = sum(
                        c["units"] for c in self.claims.values() if c["path"] == name and c["agent"] not in agents
                    )
                    if used + one["units"] + other["units"] > RESOURCES[name].capacity:
                        return True
                elif "write" in (one["mode"], other["mode"]):
                    return True
        return False

    # --- events

    def appended(self, event: Event, changes: Changes) -> None:
        """One event: first its own changes, then its grants one by one."""
        before = dict(self.claims)
        tickets = {record["ticket"] for record in self.files.values()}
        granted = {f"@{row['agent']}" for row in event.granted}
        claims = {key: record for key, record in changes.items() if key.startswith("claims/")}
        own = {
            k: r
            for k, r in claims.items()
            if r is None or k.rpartition("/")[2] not in granted or r["agent"] == event.agent
        }
        if event.kind in ("release", "takeover"):
            files = {key for key, record in own.items() if record is None}
            self._given_up = (event.nonce, {f"{key.rpartition('/')[0]}/@{event.agent}" for key in files})
        # A holder that changes its mode releases and claims in one command: what it held is its own before all who wait. So is what a
        # person takes over.
        mine = self._given_up[1] if event.nonce == self._given_up[0] else set()
        held = self.claims.keys() | mine
        requested = {pair for row in event.granted if row["agent"] == event.agent for pair in _pairs(row)}
        plain = {k: r for k, r in own.items() if r is not None and (r["space"], r["path"]) not in requested}
        new = [r for k, r in plain.items() if k not in held and event.kind == "claim"]
        for key, record in own.items():
            self._set(self.claims, key, record)
        fresh = {
            k: r for k, r in changes.items() if k.startswith("waits/") and r is not None and r["ticket"] not in tickets
        }
        gone = [k for k, r in changes.items() if k.startswith("waits/") and r is None]
        kept = {row["ticket"] for row in event.granted}
        for key in gone:
            if key in self.files and self.files[key]["ticket"] not in kept:
                del self.files[key]
        for key, record in fresh.items():
            self._require(record["ticket"] == event.seq, f"event {event.seq} gives ticket {record['ticket']}")
            self._require_as_granted(event, record)
            self.files[key] = record
        for row in event.granted:
            if not any(record["ticket"] == row["ticket"] for record in self.files.values()):
                self._return(event, row, claims)
        rows = [next(r for r in self.files.values() if r["ticket"] == row["ticket"]) for row in event.granted]
        if new:
            self._plain(event, new, rows)
        for row, asked in zip(event.granted, rows, strict=True):
            self._require_whole(event, row, asked, before, claims)
        for row in rows:
            self._grant(event, row, {k: r for k, r in claims.items() if r is not None and r["agent"] == row["agent"]})
        for key, record in changes.items():
            if key.startswith(("waits/", "claims/")):
                self._set(self.files if key[0] == "w" else self.claims, key, record)
        self._counts(event)

    def _set(self, where: dict[str, Record], key: str, record: Record | None) -> None:
        if record is None:
            where.pop(key, None)
        else:
            where[key] = record

    def _return(self, event: Event, row: Record, claims: Changes) -> None:
        """A request that went back into the queue by this event and is granted by it at once."""
        self._require(
            event.kind in ("expire", "wait") and row["ticket"] == event.seq, f"ticket {row['ticket']} is nobody's"
        )
        mine = [r for r in claims.values() if r is not None and r["agent"] == row["agent"]]
        items = [*row["items"], *mine[0]["reserved"].get("held", ())]
        record = {**mine[0], **mine[0]["reserved"], "items": items, "ticket": event.seq, "overtaken": 0}
        if event.kind == "wait":  # the claim may be a stronger one, from before
            record.update({key: event.body[key] for key in ("items", "mode", "units", "priority", "blocking")})
        self._require_as_granted(event, record)
        self.files["waits/returned"] = record

    def _require_as_granted(self, event: Event, record: Record) -> None:
        """A request that goes back into the queue asks for what was granted to it, but for what a person took over, and for nothing else."""
        tokens = (
            {r["token"] for r in event.body["claims"] if r["agent"] == record["agent"]}
            if event.kind == "expire"
            else ()
        )
        asked = [items for token in tokens for items in self._asked.get((record["agent"], token), ())]
        what = f"event {event.seq} puts another request of {record['agent']} back than was granted"
        self._require(not asked or any(set(_pairs(record)) <= items for items in asked), what)

    def _require_whole(
        self, event: Event, row: Record, asked: Record, before: dict[str, Record], claims: Changes
    ) -> None:
        """A grant gives all that was asked for, and takes nothing away from what its agent holds."""
        after = [r for r in {**before, **claims}.values() if r is not None and r["agent"] == row["agent"]]
        mine = {(r["space"], r["path"]): r for r in after}
        ended = {r["agent"] for r in event.body["claims"]} if event.kind == "expire" else {event.agent}
        is_kept = row["agent"] not in ended or event.kind == "wait"
        held = {(r["space"], r["path"]): r for r in before.values() if is_kept and r["agent"] == row["agent"]}
        for item in _pairs(asked):
            got, least = mine.get(item), [r for r in (asked, held.get(item)) if r is not None]
            self._require(
                got is not None
                and all(got["units"] >= r["units"] and (got["mode"] == "write" or r["mode"] == "read") for r in least),
                f"event {event.seq} grants {row['agent']} less of {item[1]} than it asked for or holds",
            )

    def _plain(self, event: Event, claims: list[Record], rows: list[Record]) -> None:
        """Claims without a request: the last in the order. One command overtakes a request once. `rows`: the requests that its
        event grants, which may be why another cannot go."""
        if event.nonce != self._command:
            self._command, self._counted = event.nonce, set()
        asked = {**claims[0], "items": [[claim["space"], claim["path"]] for claim in claims]}
        with_claims = self.claims
        self.claims = {k: c for k, c in with_claims.items() if c not in claims}
        past = [r for r in self.requests() if self.conflict(asked, r) and r["ticket"] not in self._counted]
        for request in past:
            what = f"{asked['agent']} claims {asked['items']} before {request['agent']}, ticket {request['ticket']}"
            goes_before = [r for r in rows if self._rank(r) < self._rank(request) and self.conflict(request, r)]
            self._require(self._cannot_go(request) or bool(goes_before), f"{what}, which could go")
            self._require(self.passed.get(request["ticket"], 0) < LIMIT, f"{what}, overtaken {LIMIT} times before")
            self._require(request["ticket"] in event.past, f"{what}, which is not counted")
        for request in past:  # all of them are judged as they were before it
            self._pass(request)
            self._counted.add(request["ticket"])
        self.claims = with_claims

    def _grant(self, event: Event, row: Record, claims: dict[str, Record]) -> None:
        before = [
            r
            for r in self.requests()
            if r["ticket"] != row["ticket"] and self._rank(r) < self._rank(row) and self.conflict(row, r)
        ]
        past = [r for r in before if self.passed.get(r["ticket"], 0) < LIMIT]
        for request in before:
            what = f"event {event.seq} grants ticket {row['ticket']} of {row['agent']} before {request['ticket']}"
            self._require(self._cannot_go(request), f"{what}, which could go")
            self._require(request in past or self._needs(request, row), f"{what}, overtaken {LIMIT} times before")
        for request in past:
            self._pass(request)
        self._asked.setdefault((row["agent"], event.seq), []).append(set(_pairs(row)))
        for key in [key for key, record in self.files.items() if record["ticket"] == row["ticket"]]:
            del self.files[key]
        self.claims.update(claims)

    def _cannot_go(self, request: Record) -> bool:
        return bool(self.blockers(request)) or self._is_kept(request) or self._closes(request)

    def _is_kept(self, request: Record) -> bool:
        return any(not self._needs(each, request) for each in self._keepers(request))

    def _keepers(self, request: Record) -> list[Record]:
        """The requests before this one that may not be overtaken and conflict with it."""
        found: list[Record] = self._once("keepers", request["ticket"], lambda: self._find_keepers(request))
        return found

    def _find_keepers(self, request: Record) -> list[Record]:
        return [
            each
            for each in self.requests()
            if self.passed.get(each["ticket"], 0) >= LIMIT
            and self._rank(each) < self._rank(request)
            and self.conflict(request, each)
        ]

    def _pass(self, request: Record) -> None:
        self.passed[request["ticket"]] = self.passed.get(request["ticket"], 0) + 1

    def _counts(self, event: Event) -> None:
        for record in self.requests():
            counted = self.passed.setdefault(record["ticket"], 0)
            self._require(
                record["overtaken"] == counted,
                f"event {event.seq}: ticket {record['ticket']} was overtaken {counted} times, and has {record['overtaken']} on record",
            )

    def _needs(self, request: Record, other: Record) -> bool:
        """Could the request never go if the other one never went? Agents release all that they hold once they wait for nothing."""
        left = {record["ticket"]: record for record in self.requests()}
        while True:
            waits = {ticket: self._waits_for(record, left) for ticket, record in left.items()}
            gone = [ticket for ticket, found in waits.items() if not found and ticket != other["ticket"]]
            if not gone:
                break
            for ticket in gone:
                del left[ticket]
        found, todo = {request["ticket"]}, [request["ticket"]]
        for ticket in todo:
            new = waits.get(ticket, set()) - found
            found |= new
            todo += new
        return other["ticket"] in found

    def _waits_for(self, request: Record, left: dict[int, Record]) -> set[int]:
        """Those of these requests without which this one does not go now."""
        agents = {record["agent"] for record in left.values()}
        blockers = self._once("blockers", request["ticket"], lambda: self.blockers(request))
        # Fewer holders may leave units enough.
        is_shared = any(name in RESOURCES for _, name in _pairs(request))
        holders = {
            c["agent"] for c in (self.blockers(request, agents) if is_shared else blockers) if c["agent"] in agents
        }
        before = {each["ticket"] for each in self._keepers(request)}
        if self._once(
            "closes", request["ticket"], lambda: self._closes(request)
        ):  # it is held back until its agent does not block any more
            before |= {r["ticket"] for r in self.requests() if r["agent"] == request["agent"] and r["blocking"]}
        return {ticket for ticket, record in left.items() if record["agent"] in holders or ticket in before}

    # --- between two swaps

    def settled(self, sessions: dict[str, tuple[str, int]], halted: bool) -> None:
        """Nobody waits for what it could have, for ever, or after the end of its session."""
        self._known = {}
        try:
            self._settled(sessions, halted)
        finally:
            self._known = None

    def _settled(self, sessions: dict[str, tuple[str, int]], halted: bool) -> None:
        requests = self.requests()
        for record in requests:
            state = sessions.get(record["agent"])
            self._require(
                state == ("open", record["session"]),
                f"{record['agent']} waits in a session that is over (ticket {record['ticket']})",
            )
            if not halted and not self.blockers(record):
                self._require(
                    self._is_kept(record) or self._closes(record),
                    f"ticket {record['ticket']} of {record['agent']} could go, and nobody granted it",
                )
        stuck = self.stuck(requests)
        self._require(not stuck, f"deadlock: {', '.join(sorted(stuck))} wait for each other")

    def _closes(self, request: Record) -> bool:
        """Its agent is blocked by another request of its own, and its grant would make a deadlock."""
        agent, others = request["agent"], [r for r in self.requests() if r["ticket"] != request["ticket"]]
        if not any(r["agent"] == agent and r["blocking"] for r in others):
            return False
        before, self.claims, known, self._known = self.claims, dict(self.claims), self._known, None
        for space, name in _pairs(request):
            own = next(
                (c for c in before.values() if (c["space"], c["path"], c["agent"]) == (space, name, agent)), request
            )
            mode = "write" if "write" in (own["mode"], request["mode"]) else request["mode"]
            given = {"space": space, "path": name, "agent": agent, "mode": mode}
            self.claims[f"given/{space}/{name}"] = {**given, "units": max(own["units"], request["units"])}
        try:
            return agent in self.stuck(others)
        finally:
            self.claims, self._known = before, known

    def stuck(self, requests: list[Record]) -> set[str]:
        """Agents that wait for ever, where all others release what they hold."""
        last: dict[str, Record] = {}
        for record in sorted(requests, key=lambda r: int(r["ticket"])):
            if record["blocking"]:
                last[record["agent"]] = record
        stuck = set(last)
        while True:
            free = {agent for agent in stuck if not self.blockers(last[agent], stuck)}
            if not free:
                return stuck
            stuck -= free

    def would_deadlock(self, request: Record) -> bool:
        """Is a refused wait really one that nobody could ever grant?"""
        return request["agent"] in self.stuck([*self.requests(), request])
