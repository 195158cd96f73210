"""Conditions that must hold after every step, written without the rules' own functions so that both cannot be wrong alike."""

from __future__ import annotations

from gitcoord.claims.events.wait import Wait
from gitcoord.ledger.event import decode_event, effects
from gitcoord.ledger.state import State
from gitcoord.simulation.interventions import Interventions
from gitcoord.simulation.queue_invariants import Waiters
from gitcoord.simulation.records import Records, top_of
from gitcoord.simulation.waiting import Waiting, overlaps
from gitcoord.simulation.world import RESOURCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from gitcoord.base.codec import Record
    from gitcoord.claims.model import Item
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.sessions import Heartbeat
    from gitcoord.ledger.state import Changes
    from gitcoord.simulation.authority import Authority
    from gitcoord.simulation.machine import View
    from gitcoord.simulation.scheduler import Scheduler

SLOWEST = 0.95  # the slowest clock against the true time: a claim may be expired so much before its ttl is over


class Violation(Exception):
    """An invariant does not hold."""


class Invariants:
    """Checks on the authority, and on every answer to its clients."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.lines: list[tuple[int, str]] = []
        self.claims = Records({})
        self.waiters = Waiters(self.require)
        self.follows_queue = True  # False: the invariants of the queue are not checked
        self.sessions: dict[str, tuple[str, int]] = {}
        self.interventions = Interventions(self.require, lambda: self.claims)
        self.grants_at: dict[int, int] = {}
        self.told: dict[str, str] = {}  # acknowledged commits, and the agents that got the answer
        self.killed: set[str] = set()
        self.lost: set[str] = set()  # commits that the authority lost by a disaster
        self.writes: list[tuple[str, str, int]] = []  # (path, agent, token) of landed changes, newest last
        self.beat_at: dict[str, int] = {}  # the true time of each agent's last heartbeat
        self.figures = {
            "events": 0,
            "grants": 0,
            "expiries": 0,
            "landed": 0,
            "fenced": 0,
            "refused": 0,
            "lost races": 0,
            "waits": 0,
            "missed": 0,
            "overtakings": 0,
            "deadlocks": 0,
        }

    # --- telling

    def note(self, line: str) -> None:
        self.lines.append((self._scheduler.now, line))

    def fail(self, what: str) -> NoReturn:
        self.note(f"VIOLATION: {what}")
        raise Violation(what)

    def require(self, condition: bool, what: str) -> None:
        if not condition:
            self.fail(what)

    # --- the authority

    def appended(self, before: State, event: Event, changes: Changes, beats: dict[str, Heartbeat] | None) -> None:
        """Check an appended event. `beats`: the heartbeats before the swap; None for a restored event."""
        self.figures["events"] += 1
        self.figures["waits"] += event.kind == "wait" and not event.body["ticket"]
        self.figures["overtakings"] += len(event.past) + sum(len(row["past"]) for row in event.granted)
        self.note(f"{event.seq} {event.kind} by {event.agent}: {_short(event)}")
        self.require(
            event.seq == before.seq + 1 or (event.kind == "epoch" and event.seq > before.seq),
            f"event {event.seq} follows event {before.seq}",
        )
        self.require(event.agent not in self.killed, f"{event.agent} was killed and acts")
        if event.kind == "expire" and beats is not None:
            self._expired(event, beats)
        elif event.kind == "kill":
            held = [
                key for key in before.named("claims", f"@{event.body['target']}") if changes.get(key, "") is not None
            ]
            self.require(not held, f"{event.body['target']} was killed and holds {', '.join(held)}")
            self.killed.add(event.body["target"])
        elif event.kind == "revive":
            self.killed.discard(event.body["target"])
        elif event.kind == "claim":
            made = {(r["space"], r["path"]) for r in changes.values() if r is not None and "token" in r}
            lacking = [name for space, name in event.body["items"] if (space, name) not in made]
            self.require(not lacking, f"event {event.seq} was granted without {', '.join(lacking)}")
        self._follow(event, changes)
        self.interventions.appended(before, event, changes)
        for key, record in changes.items():
            if key.startswith("agents/") and record is not None:
                self.sessions[record["agent"]] = (record["state"], record["session"])
        if event.granted:
            self.grants_at.setdefault(event.seq, self._scheduler.now)
        if self.follows_queue:
            self.waiters.appended(event, changes)

    def _expired(self, event: Event, beats: dict[str, Heartbeat]) -> None:
        """Check an expiry: it names the present heartbeat, and no live holder loses a claim before its ttl is over."""
        for row in event.body["claims"]:
            self.figures["expiries"] += 1
            beat = beats.get(row["agent"])
            self.require(
                row["beat"] == (beat.oid if beat is not None else ""),
                f"event {event.seq} expires a claim of {row['agent']} by a heartbeat that was replaced since",
            )
            silent = self._scheduler.now - self.beat_at.get(row["agent"], 0)
            over = beat is not None and (beat.killed or beat.session > row["session"])
            over = over or self.sessions.get(row["agent"]) != ("open", row["session"])
            if row["rule"] == "unconfirmed":
                self._unconfirmed(event, row, beat)
                continue
            self.require(
                bool(over) or silent >= row["ttl"] * 1000 * SLOWEST,
                f"event {event.seq} expires a claim of {row['agent']}, which was heard {silent} ms ago, ttl {row['ttl']} s",
            )

    def _unconfirmed(self, event: Event, row: Record, beat: Heartbeat | None) -> None:
        self.figures["missed"] += 1
        known = beat is not None and beat.session == row["session"] and beat.confirms >= row["token"]
        self.require(not known, f"event {event.seq} ends a reservation that {row['agent']} has confirmed")
        kept = self._scheduler.now - self.grants_at.get(row["token"], 0)
        reserve = self.claims.on(row["space"], row["path"])[row["agent"]]["reserved"]["reserve"]
        self.require(
            kept >= reserve * 1000 * SLOWEST, f"event {event.seq} ends a reservation of {row['agent']} after {kept} ms"
        )

    def _follow(self, event: Event, changes: Changes) -> None:
        """Compare the claims that the event changed with all others."""
        changed = {key: record for key, record in changes.items() if key.startswith("claims/")}
        for key, record in changed.items():
            before = self.claims.files.get(key)
            self.claims.put(key, record)
            if record is not None:
                self.figures["grants"] += 1
                token = record["token"]
                self.require(token == event.seq, f"a grant of event {event.seq} has token {token}")
                self.require(before is None or before["token"] < token, f"token {token} does not grow")
        for record in changed.values():
            if record is not None:
                self._require_no_conflict(record)

    def _require_no_conflict(self, record: Record) -> None:
        units = record["units"]
        capacity = RESOURCES[record["path"]].capacity if record["path"] in RESOURCES else 1
        for other in self.claims.near(top_of(record["space"], record["path"])):
            path, agent = other["path"], other["agent"]
            if agent == record["agent"] or not overlaps(path, record["path"]):
                continue
            if capacity > 1 and path == record["path"]:
                units += other["units"]
            else:
                both = f"{path} of {agent} and {record['path']} of {record['agent']}"
                self.require("write" not in (record["mode"], other["mode"]), f"conflicting claims: {both}")
        self.require(units <= max(capacity, record["units"]), f"{units} units of {record['path']} are held")

    def settled(self) -> None:
        """After each swap."""
        self.interventions.settled()
        if self.follows_queue:
            self.waiters.settled(self.sessions, self.interventions.is_halted)

    def swapped(self, event: Event, beats: dict[str, Heartbeat]) -> None:
        """Check one event of a swap, with the heartbeats that moved together with it."""
        body = event.body
        if event.kind == "expire":
            for row in body["claims"]:
                beat = beats.get(row["agent"])
                marked = beat is None or beat.killed or beat.judged >= event.seq or beat.oid != row["beat"]
                self.require(
                    bool(marked), f"event {event.seq} did not replace the heartbeat of {row['agent']} that it judged"
                )

    def beaten(self, beat: Heartbeat, made: int) -> None:
        if not beat.judged:
            self.beat_at[beat.agent] = made

    def rewound(self, commits: list[str], state: State) -> None:
        self.note(f"DISASTER: the authority loses its last {len(commits)} events")
        self.lost.update(commits)
        self.claims = Records(state.below("claims"))
        self.waiters.reset(state.below("claims"), state.below("waits"))
        self.interventions.is_halted = state.get("halt") is not None
        self.sessions = {r["agent"]: (r["state"], r["session"]) for r in state.below("agents").values()}
        self.killed = {r["agent"] for r in state.below("agents").values() if r["state"] == "killed"}
        self.writes.clear()  # tokens from before the disaster may be given again until somebody repairs it

    def landed(self, agent: str, items: tuple[Item, ...]) -> None:
        """Check a landed change of code: its agent holds the path, and no later holder has landed a change."""
        self.figures["landed"] += 1
        for item in items:
            mine = self.claims.on(*item).get(agent)
            if mine is None:
                self.fail(f"a change of {item.name} by {agent} landed, who does not hold it")
            token = mine["token"]
            for path, other, theirs in reversed(self.writes[-50:]):
                if other != agent and overlaps(path, item.name):
                    self.require(
                        token > theirs, f"{agent} landed {item.name} by token {token} after {other} by {theirs}"
                    )
            self.writes.append((item.name, agent, token))

    # --- clients

    def refused(self, view: View, command: object, code: str) -> None:
        """Check a refusal on the view that it was decided on: a wait is refused for a deadlock only where there is one."""
        self.figures["refused"] += 1
        if code != "deadlock" or not isinstance(command, Wait):
            return
        agent, asked = command.actor.agent, {tuple(item) for item in command.items}
        claims, files = connected(view.state, command.items)
        files = {k: r for k, r in files.items() if r["agent"] != agent or not asked & {tuple(i) for i in r["items"]}}
        files[f"waits/{'/'.join(command.items[0])}/@{agent}"] = {
            "agent": agent, "items": [list(item) for item in command.items], "mode": command.mode,
            "units": command.units or 1, "blocking": True, "ticket": view.state.seq + 1, "priority": command.priority,
            "overtaken": 0,
        }  # fmt: skip
        waiting = Waiting()
        waiting.reset(claims, files)
        self.require(bool(waiting.stuck([agent])), f"{agent} was refused for a deadlock that there is not")

    def acknowledged(self, authority: Authority, commit: str, agent: str, seq: int, highest: int) -> None:
        """Check an acknowledged event `seq`; `highest`: the last number that its machine had seen before deciding."""
        self.told[commit] = agent
        self.require(seq > highest, f"{agent} was given number {seq}, and had seen {highest} before")
        self.require(
            commit in authority.position or commit in self.lost,
            f"{agent} was told of an event that is not in the ledger",
        )

    def at_end(self, authority: Authority) -> None:
        for commit, agent in self.told.items():
            self.require(
                commit in authority.position or commit in self.lost, f"an event that {agent} was told of is lost"
            )
        self._replay(authority)

    def _replay(self, authority: Authority) -> None:
        """Check that replaying all messages gives the same state."""
        state = State()
        for commit in authority.history:
            event = decode_event(authority.objects[commit].message)
            state.patch(effects(state, event))
            state.seq = event.seq
        for directory in ("claims", "agents", "waits"):
            self.require(
                state.below(directory) == authority.state.below(directory), f"the replay has other {directory}"
            )


def connected(state: State, items: Iterable[Item]) -> tuple[dict[str, Record], dict[str, Record]]:
    """The claims and the requests for which somebody who asks for these items waits, directly or by way of others, and some more."""
    claims: dict[str, Record] = {}
    waits: dict[str, Record] = {}
    agents: set[str] = set()
    places = [(item.space, item.name.split("/")[0]) for item in items]
    for space, top in places:
        found = {**state.leaves(f"claims/{space}"), **state.below(f"claims/{space}/{top}")}
        claims.update(found)
        for agent in sorted({record["agent"] for record in found.values()} - agents):
            agents.add(agent)
            mine = state.named("waits", f"@{agent}")
            waits.update(mine)
            new = dict.fromkeys((s, name.split("/")[0]) for record in mine.values() for s, name in record["items"])
            places += [place for place in new if place not in places]
    return claims, waits


def _short(event: Event) -> str:
    body = event.body
    items = body.get("items") or [[r["space"], r["path"]] for r in body.get("released") or body.get("claims") or ()]
    words = [f"@{name}" if space == "resource" else name for space, name in items]
    words += [str(body[key]) for key in ("target", "session", "mode", "units", "ticket", "priority") if key in body]
    if event.past:
        words.append(f"past {list(event.past)}")
    words += [f"-> {row['ticket']} of {row['agent']} past {row['past']}" for row in event.granted]
    return " ".join(words)
