"""Contention: who waited how long for what, and who held it how long, counted from the events of the ledger.

An event says what it grants and ends; how long that was waited for and held follows from the times of two events. A wait that was
withdrawn or ended with its session counts like one that was granted.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.names import IN_LANE, RESOURCE, covers, fold, shown
from gitcoord.claims.model import MODES, Item
from gitcoord.claims.requests import MOST_MISSED, NEXT, task_of
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

_HOT = 3  # waits and refusals that make a path a hot spot
_MOST_HOT = 5


class _Waiting(NamedTuple):
    agent: str
    items: tuple[Item, ...]
    mode: str
    units: int
    at: int
    missed: int = 0


class _Hold(NamedTuple):
    mode: str
    units: int
    at: int
    request: _Waiting | None  # of a grant to a request


class _Count:
    """The figures of one path or one agent."""

    def __init__(self) -> None:
        self.grants = self.refusals = self.expiries = self.overtaken = self.missed = self.waiting = 0
        self.waits: list[int] = []
        self.holds: list[int] = []

    def row(self) -> Record:
        numbers = {key: getattr(self, key) for key in ("grants", "refusals", "expiries", "overtaken", "missed")}
        return {**numbers, "waiting": self.waiting, "waits": spread(self.waits), "holds": spread(self.holds)}


def spread(seconds: list[int]) -> Record:
    """How many, the sum, and the nearest-rank percentiles."""
    ordered = sorted(seconds)
    count = len(ordered)
    p50, p95 = (ordered[-(-count * percent // 100) - 1] if count else 0 for percent in (50, 95))
    longest = ordered[-1] if count else 0
    return {"count": count, "total": sum(ordered), "p50": p50, "p95": p95, "longest": longest}


class Contention:
    """Reads events, oldest first; counts those from a time or a number on. Earlier ones tell when a wait or a hold began."""

    def __init__(self, since: int = 0, *, seq: int = 0, case: bool) -> None:
        self.events = 0
        self._since = since
        self._from = seq
        self._counts = False
        self._case = case
        self._keys: dict[Item, str] = {}
        self.holds: dict[tuple[str, str], _Hold] = {}  # key of the item, agent
        self.waits: dict[str, dict[int, _Waiting]] = {}  # agent -> ticket -> request
        self._asker: dict[int, str] = {}  # ticket -> agent
        self._paths: dict[str, _Count] = {}
        self._agents: dict[str, _Count] = {}
        self._shown: dict[str, str] = {}
        self._at = 0

    def read(self, event: Record) -> None:
        """Count one event, as its JSON line says it."""
        self._at = event["at"]
        self._counts = self._at >= self._since and event["seq"] >= self._from
        self.events += self._counts
        for row in event.get("refused", ()):
            if not row["holder"].startswith("["):  # by a rule: nobody was in the way
                for count in self._of(_item(row["path"]), event["agent"]):
                    count.refusals += row["count"]
        handler = _KINDS.get(event["kind"])
        if handler is not None:
            handler(self, event)
        self._overtaken(event.get("past", ()))
        for row in event.get("granted", ()):
            self._overtaken(row["past"])
            request = self.waits.get(row["agent"], {}).pop(row["ticket"], None)
            self._waited(request)
            mode, units = (request.mode, request.units) if request is not None else (MODES[-1], 1)
            self._grant(row["agent"], row["items"], mode, units, request)

    # --- kinds of events

    def _claim(self, event: Record) -> None:
        agent, mode, units = event["agent"], event["mode"], event["units"]
        self._grant(agent, event["items"], mode, units, None)
        for ticket, request in list(self.waits.get(agent, {}).items()):
            if all(self._suffices(item, request) for item in request.items):
                del self.waits[agent][ticket]
                self._waited(request)

    def _suffices(self, item: Item, request: _Waiting) -> bool:
        hold = self.holds.get((self._key(item), request.agent))
        return hold is not None and MODES.index(hold.mode) >= MODES.index(request.mode) and hold.units >= request.units

    def _release(self, event: Record) -> None:
        for row in event["released"]:
            self._end(Item(row["space"], row["path"]), event["agent"])

    def _land(self, event: Record) -> None:
        for row in event["released"]:
            self._end(Item(row["space"], row["path"]), row["agent"])

    def _expire(self, event: Record) -> None:
        missed: _Waiting | None = None
        for row in event["claims"]:
            item, agent = Item(row["space"], row["path"]), row["agent"]
            if row["rule"] == "unconfirmed":
                hold = self.holds.pop((self._key(item), agent), None)
                missed = hold.request if hold is not None else missed
            else:
                self._end(item, agent)
            for count in self._of(item, agent):
                count.missed += row["rule"] == "unconfirmed"
                count.expiries += row["rule"] != "unconfirmed"
        if missed is not None and missed.missed + 1 < MOST_MISSED:
            waits = self.waits.get(missed.agent, {})
            if not any(set(each.items) & set(missed.items) for each in waits.values()):
                self._put(event["seq"], missed._replace(at=self._at, missed=missed.missed + 1))

    def _takeover(self, event: Record) -> None:
        self._end(Item(event["space"], event["path"]), event["holder"])

    def _accept(self, event: Record) -> None:
        for row in event["claims"]:
            self._end(Item(row["space"], row["path"]), row["agent"])
        for pair, grant in zip(event["items"], event["grants"]):
            self._grant(event["agent"], [pair], grant["mode"], grant["units"], None)

    def _inherit(self, event: Record) -> None:
        for row in event["claims"]:
            item = Item(row["space"], row["path"])
            hold = self.holds.get((self._key(item), row["agent"]))
            self._end(item, row["agent"])
            mode, units = (hold.mode, hold.units) if hold is not None else (MODES[-1], 1)
            self._grant(event["agent"], [item], mode, units, None)

    def _wait(self, event: Record) -> None:
        items = tuple(Item(*pair) for pair in event["items"])
        waits = self.waits.get(event["agent"], {})
        old = waits.get(event["ticket"])
        for ticket in [ticket for ticket, each in waits.items() if set(each.items) & set(items)]:
            del waits[ticket]
        new = _Waiting(event["agent"], items, event["mode"], event["units"], self._at)
        new = new._replace(at=old.at, missed=old.missed) if old is not None else new
        self._put(event["ticket"] or event["seq"], new)

    def _leave(self, event: Record) -> None:
        self._waited(self.waits.get(event["target"], {}).pop(event["ticket"], None))

    def _over(self, event: Record) -> None:
        """The end of a session, by itself or killed."""
        for pair in event["freed"]:
            self._end(Item(*pair), event["target"])
        for request in self.waits.pop(event["target"], {}).values():
            self._waited(request)

    # --- counting

    def _put(self, ticket: int, request: _Waiting) -> None:
        self.waits.setdefault(request.agent, {})[ticket] = request
        self._asker[ticket] = request.agent

    def _key(self, item: Item) -> str:
        if item not in self._keys:
            key = self._keys[item] = shown(fold(item.name, case=self._case), item.space)
            self._shown.setdefault(key, shown(item.name, item.space))
        return self._keys[item]

    def _of(self, item: Item, agent: str) -> Iterable[_Count]:
        """The counts of a path and an agent; none where the event is too old, or for the item with which a task is reserved."""
        if not self._counts or task_of([item]):
            return ()
        key = self._key(item)
        return self._paths.setdefault(key, _Count()), self._agents.setdefault(agent, _Count())

    def _grant(
        self, agent: str, items: Iterable[Iterable[str]], mode: str, units: int, request: _Waiting | None
    ) -> None:
        for pair in items:
            item = Item(*pair)
            key = self._key(item), agent
            old = self.holds.get(key)
            self.holds[key] = _Hold(mode, units, old.at if old is not None else self._at, request)
            for count in self._of(item, agent) if old is None else ():
                count.grants += 1

    def _end(self, item: Item, agent: str) -> None:
        hold = self.holds.pop((self._key(item), agent), None)
        if hold is not None:
            for count in self._of(item, agent):
                count.holds.append(max(0, self._at - hold.at))  # clocks of machines differ

    def _waited(self, request: _Waiting | None) -> None:
        """One wait has ended: one for its agent, and one for each of its items."""
        if request is None or not self._counts:
            return
        seconds = max(0, self._at - request.at)
        self._agents.setdefault(request.agent, _Count()).waits.append(seconds)
        for item in request.items:
            self._paths.setdefault(self._key(item), _Count()).waits.append(seconds)

    def _overtaken(self, tickets: Iterable[int]) -> None:
        for ticket in tickets if self._counts else ():
            request = self.waits.get(self._asker.get(ticket, ""), {}).get(ticket)
            if request is not None:
                self._agents.setdefault(request.agent, _Count()).overtaken += 1
                for item in request.items:
                    self._paths.setdefault(self._key(item), _Count()).overtaken += 1

    # --- the answer

    def result(self) -> Record:
        """The rows by path and by agent, the most waited for first; and the hot spots."""
        for agent, waits in self.waits.items():
            for request in waits.values():
                self._agents.setdefault(agent, _Count()).waiting += 1
                for item in request.items:
                    self._paths.setdefault(self._key(item), _Count()).waiting += 1
        paths = [{"path": self._shown[key], **count.row()} for key, count in self._paths.items()]
        agents = [{"agent": agent, **count.row()} for agent, count in self._agents.items()]
        paths.sort(key=_heat)
        agents.sort(key=_heat)
        idle = shown(NEXT.name, NEXT.space)  # who waits for tasks waits for nobody
        hot = [row for row in paths if row["waits"]["count"] + row["refusals"] >= _HOT and row["path"] != idle]
        marked = {IN_LANE + row["path"] for row in hot}  # a landing waits for both
        hot = [row for row in hot if row["path"] not in marked]
        names = [row["path"] for row in paths]
        spots = [
            {"path": row["path"], "words": _in_words(row), "help": help_for(row["path"], names)}
            for row in hot[:_MOST_HOT]
        ]
        return {"events": self.events, "paths": paths, "agents": agents, "hot": spots}


_KINDS = {
    "claim": Contention._claim, "release": Contention._release, "expire": Contention._expire,
    "takeover": Contention._takeover, "accept": Contention._accept, "inherit": Contention._inherit,
    "wait": Contention._wait, "leave": Contention._leave, "stop": Contention._over, "kill": Contention._over,
    "land": Contention._land,
}  # fmt: skip


def _item(path: str) -> Item:
    """The item that a refusal names as people read it."""
    return Item(RESOURCE, path[1:]) if path.startswith("@") else Item("path", path)


def _heat(row: Record) -> tuple[int, int, int, str]:
    return -row["waits"]["total"], -row["refusals"], -row["grants"], str(row.get("path") or row.get("agent"))


def _in_words(row: Record) -> str:
    waits, refusals = row["waits"]["count"], row["refusals"]
    words = [f"{count} {noun}{'s' * (count != 1)}" for count, noun in ((waits, "wait"), (refusals, "refusal")) if count]
    return " and ".join(words)


def help_for(path: str, others: Iterable[str]) -> list[str]:
    """The ways out that fit this path. `others`: all paths that were claimed, refused or waited for."""
    if path.startswith("@workers/"):
        return ["more places: cap in [workers] of .gitcoord/config"]
    if path.startswith("@land/"):
        return [
            "the more lanes in [land] of .gitcoord/config, the more branches that change different paths land side by side"
        ]
    if path.startswith(IN_LANE):
        return ["branches that change it land one after the other: split it"]
    if path.startswith("@"):
        return [f'more of it at once: capacity in [resource "{path[1:]}"] of .gitcoord/config']
    name = path.rpartition("/")[2]
    if any(other != path and covers(path, other) for other in others):
        return ["claim the files that you change, not the directory above them"]
    if name[:1].isdecimal():
        return ["if the number in its name is what agents compete for: git coord number <sequence>"]
    return [
        "split the file, so that agents can hold its parts",
        "or claim it only for the moment in which work lands: gitcoord-claim=landing in .gitattributes",
        "a list to which all add lines merges without a conflict: merge=union in .gitattributes",
    ]
