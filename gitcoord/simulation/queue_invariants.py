"""Conditions of the queue: order, bound, no lost wake-up, no deadlock. Written without the rules' own functions.

Each event is compared with the requests that have to do with what it changed, directly or by way of others: no other can have become wrong
by it, and crowds can be checked.
"""

from __future__ import annotations

from gitcoord.simulation.records import place_of
from gitcoord.simulation.waiting import LIMIT, Waiting, pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.base.codec import Record
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.state import Changes
    from gitcoord.simulation.records import Top


class Waiters(Waiting):
    """The requests and claims of the ledger, followed event by event."""

    def __init__(self, require: Callable[[bool, str], None]) -> None:
        super().__init__()
        self._require = require
        self._touched: dict[Top, None] = {}  # where something has changed since the last swap
        self._command = ""  # the last command that claimed, and the tickets that it has overtaken
        self._counted: set[int] = set()
        # The last command that released or took over, and those files.
        self._given_up: tuple[str, set[str]] = ("", set())
        # Agent, token -> the items of each request granted with it.
        self._asked: dict[tuple[str, int], list[set[tuple[str, str]]]] = {}

    def reset(self, claims: dict[str, Record], files: dict[str, Record]) -> None:
        super().reset(claims, files)
        self._command = ""
        self._touched.update(dict.fromkeys(place_of(file)[0] for file in files))

    # --- events

    def appended(self, event: Event, changes: Changes) -> None:
        """One event: first its own changes, then its grants one by one."""
        claims = {k: r for k, r in changes.items() if k.startswith("claims/")}
        waits = {k: r for k, r in changes.items() if k.startswith("waits/")}
        before = {row["agent"]: dict(self.claims.of(row["agent"])) for row in event.granted}
        fresh = {k: r for k, r in waits.items() if r is not None and r["ticket"] not in self.requests_of(r["agent"])}
        own = {k: r for k, r in claims.items() if r is None or r["agent"] not in before or r["agent"] == event.agent}
        if event.kind in ("release", "takeover"):
            files = {key for key, record in own.items() if record is None}
            self._given_up = (event.nonce, {f"{key.rpartition('/')[0]}/@{event.agent}" for key in files})
        # A holder that changes its mode releases and claims in one command: what it held is its own before all who wait. So is what a
        # person takes over.
        given_up = self._given_up[1] if event.nonce == self._given_up[0] else set()
        requested = {pair for row in event.granted if row["agent"] == event.agent for pair in pairs(row)}
        plain = {k: r for k, r in own.items() if r is not None and (r["space"], r["path"]) not in requested}
        new = {
            k: r for k, r in plain.items() if event.kind == "claim" and k not in self.claims.files and k not in given_up
        }
        self.claims.put_all({k: r for k, r in own.items() if k not in new})
        kept = {row["ticket"] for row in event.granted}
        gone = [k for k, r in waits.items() if r is None and k in self.files.files]
        self.files.put_all({k: None for k in gone if self.files.files[k]["ticket"] not in kept})
        for record in fresh.values():
            self._require(record["ticket"] == event.seq, f"event {event.seq} gives ticket {record['ticket']}")
            self._require_as_granted(event, record)
        self.files.put_all(fresh)
        for row in event.granted:
            if row["ticket"] not in self.requests_of(row["agent"]):
                self._return(event, row, claims)
        rows = [self.requests_of(row["agent"])[row["ticket"]] for row in event.granted]
        rows = [{**row, "upgrade": _is_upgrade(row, claims)} for row in rows]
        if new:
            self._plain(event, list(new.values()), rows)
        self.claims.put_all(new)
        for row, asked in zip(event.granted, rows, strict=True):
            self._require_whole(event, asked, {**before[row["agent"]], **claims}, before[row["agent"]])
        for row in rows:
            self._grant(event, row, {k: r for k, r in claims.items() if r is not None and r["agent"] == row["agent"]})
        self.files.put_all(waits)
        self.claims.put_all(claims)
        self._touch(event, changes)

    def _touch(self, event: Event, changes: Changes) -> None:
        """Keep in mind where this event may have changed something, and compare the overtakings there."""
        files = [key for key in changes if key.startswith(("claims/", "waits/"))]
        for agent in {key.rpartition("/")[2].lstrip("@"): None for key in changes if key != "halt"}:
            files += [*self.claims.of(agent), *self.files.of(agent)]
        touched = dict.fromkeys(place_of(file)[0] for file in (self.files.files if "halt" in changes else files))
        self._touched.update(touched)
        for record in (record for top in touched for record in self.files.near(top)):
            counted = self.passed.get(record["ticket"], 0)
            self._require(
                record["overtaken"] == counted,
                f"event {event.seq}: ticket {record['ticket']} was overtaken {counted} times, and has {record['overtaken']} on record",
            )

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
        self.files.put_all({f"waits/{space}/{name}/@{row['agent']}": record for space, name in items})

    def _require_as_granted(self, event: Event, record: Record) -> None:
        """A request that goes back into the queue asks for what was granted to it, but for what a person took over, and for nothing else."""
        tokens = (
            {r["token"] for r in event.body["claims"] if r["agent"] == record["agent"]}
            if event.kind == "expire"
            else ()
        )
        asked = [items for token in tokens for items in self._asked.get((record["agent"], token), ())]
        what = f"event {event.seq} puts another request of {record['agent']} back than was granted"
        self._require(not asked or any(set(pairs(record)) <= items for items in asked), what)

    def _require_whole(self, event: Event, asked: Record, after: Changes, before: dict[str, Record]) -> None:
        """A grant gives all that was asked for, and takes nothing away from what its agent held `before`."""
        agent = asked["agent"]
        mine = {(r["space"], r["path"]): r for r in after.values() if r is not None and r["agent"] == agent}
        ended = {r["agent"] for r in event.body["claims"]} if event.kind == "expire" else {event.agent}
        is_kept = agent not in ended or event.kind == "wait"
        held = {(r["space"], r["path"]): r for r in before.values() if is_kept}
        for item in pairs(asked):
            got, least = mine.get(item), [r for r in (asked, held.get(item)) if r is not None]
            self._require(
                got is not None
                and all(got["units"] >= r["units"] and (got["mode"] == "write" or r["mode"] == "read") for r in least),
                f"event {event.seq} grants {agent} less of {item[1]} than it asked for or holds",
            )

    def _plain(self, event: Event, claims: list[Record], rows: list[Record]) -> None:
        """Claims without a request, before they are there: the last in the order. One command overtakes a request once. `rows`: the
        requests that its event grants, which may be why another cannot go."""
        if event.nonce != self._command:
            self._command, self._counted = event.nonce, set()
        asked = {**claims[0], "items": [[claim["space"], claim["path"]] for claim in claims]}
        past = [
            r for r in self.requests_near(pairs(asked)) if self.conflict(asked, r) and r["ticket"] not in self._counted
        ]
        for request in past:
            what = f"{asked['agent']} claims {asked['items']} before {request['agent']}, ticket {request['ticket']}"
            goes_before = [r for r in rows if self.rank(r) < self.rank(request) and self.conflict(request, r)]
            self._require(self.cannot_go(request) or bool(goes_before), f"{what}, which could go")
            self._require(not self.is_at_limit(request), f"{what}, overtaken {LIMIT} times before")
            self._require(request["ticket"] in event.past, f"{what}, which is not counted")
        for request in past:  # all of them are judged as they were before it
            self._pass(request)
            self._counted.add(request["ticket"])

    def _grant(self, event: Event, row: Record, claims: dict[str, Record]) -> None:
        before = [
            r
            for r in self.requests_near(pairs(row))
            if r["ticket"] != row["ticket"] and self.rank(r) < self.rank(row) and self.conflict(row, r)
        ]
        past = [r for r in before if not self.is_at_limit(r)]
        for request in before:
            what = f"event {event.seq} grants ticket {row['ticket']} of {row['agent']} before {request['ticket']}"
            self._require(self.cannot_go(request), f"{what}, which could go")
            self._require(request in past or self.needs(request, row), f"{what}, overtaken {LIMIT} times before")
        for request in past:
            self._pass(request)
        self._asked.setdefault((row["agent"], event.seq), []).append(set(pairs(row)))
        mine = self.files.of(row["agent"])
        self.files.put_all({key: None for key, record in mine.items() if record["ticket"] == row["ticket"]})
        self.claims.put_all(claims)

    def _pass(self, request: Record) -> None:
        self.passed[request["ticket"]] = self.passed.get(request["ticket"], 0) + 1

    # --- between two swaps

    def settled(self, sessions: dict[str, tuple[str, int]], halted: bool) -> None:
        """Nobody waits for what it could have, for ever, or after the end of its session."""
        requests = self.to_check()
        for record in requests:
            state = sessions.get(record["agent"])
            self._require(
                state == ("open", record["session"]),
                f"{record['agent']} waits in a session that is over (ticket {record['ticket']})",
            )
            if not halted and not self.blockers(record):
                self._require(
                    self.is_kept(record) or self.closes(record),
                    f"ticket {record['ticket']} of {record['agent']} could go, and nobody granted it",
                )
        stuck = self.stuck([record["agent"] for record in requests])
        self._require(not stuck, f"deadlock: {', '.join(sorted(stuck))} wait for each other")

    def to_check(self) -> list[Record]:
        """The requests where something has changed since the last swap, and where agents that want or hold something there want or hold
        something else, and so on. All others are as they were."""
        tops, self._touched = self._touched, {}
        found: dict[int, Record] = {}
        agents: set[str] = set()
        todo = list(tops)
        for top in todo:
            requests = self.files.near(top)
            found.update({record["ticket"]: record for record in requests})
            new = {r["agent"]: None for r in (*requests, *self.claims.near(top)) if r["agent"] not in agents}
            agents.update(new)
            files = [file for agent in new for where in (self.files, self.claims) for file in where.of(agent)]
            more = {place: None for file in files if (place := place_of(file)[0]) not in tops}
            tops.update(more)
            todo += more
        return list(found.values())


def _is_upgrade(row: Record, after: Changes) -> bool:
    """Did the agent hold all items of this request before it was granted? `after`: the claims that the event makes."""
    files = [f"claims/{space}/{name}/@{row['agent']}" for space, name in pairs(row)]
    made = [record.get("reserved") for file in files if (record := after.get(file)) is not None]
    return all(kept is None or "before" in kept for kept in made)
