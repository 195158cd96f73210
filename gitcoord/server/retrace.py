"""Retracing: the server runs the command behind a chain of events again, and compares the events.

The server does not believe an event, it makes it again: each kind's `recall` says which commands could stand behind a
chain, `decide` runs on the state before it with the server's own clock, heartbeats, policy and commits, and the outcome
must be the same. Ignored, because only the client can know it and nothing is decided by it: `at` (the client's clock; a
server bounds it) and by which rule a client saw that a lease had run out (the server must see that itself).
Taken from the events, because it is about the client's own work tree and harms nobody else: where HEAD was, what was not
committed, that an earlier process of the same agent is gone, what was refused since, and from which commit on released work
is judged: the client's repository may have what the server's never had. Statements about commits are not among that: the
server itself answers whether the work contains that commit, which files changed since, and what has landed.
"""

from __future__ import annotations

from gitcoord.base.codec import UPGRADE, UPGRADE_SERVER, Record
from gitcoord.base.errors import Refusal, Refused, UsageError
from gitcoord.base.names import Oid, printable
from gitcoord.claims.released import Released, is_recorded, lineage_dir, lineage_file
from gitcoord.ledger.event import Decision, Event, apply
from gitcoord.ledger.kinds import Recalled, kind_of
from gitcoord.ledger.sessions import Actor, Heartbeat, agent_record
from gitcoord.ledger.state import State
from gitcoord.ledger.world import Files, World
from gitcoord.startup.namedtuple import NamedTuple

_MOST_HEADS = 8
_UPGRADE = f"or {UPGRADE}"  # a version that does not know the queue leaves its grants out


class ClientFacts(NamedTuple):
    """Facts about the client's own work tree that a chain of events states."""

    kept: frozenset[str] = frozenset()  # paths that were not committed
    entries: dict[str, Record] = {}
    commits: tuple[str, ...] = ()  # commits at which HEAD may have been, in all work trees
    landed: frozenset[str] = frozenset()
    gone: str = ""  # the instance that had died

    def files(self, path: str) -> Files:
        """The files that the chain's release names below a claimed path."""
        return list(self.entries[path]["files"]) if path in self.entries else []


class Retraced(World):
    """A world that answers questions about the client's work tree from the events that are retraced.

    Mixed in before a world that can tell the rest (`super()`).
    """

    facts = ClientFacts()
    _state: State | None = None

    def set_chain(self, state: State, events: list[Event]) -> None:
        """Set the chain that later questions are about."""
        self.nonce = events[0].nonce
        agent = events[0].agent
        released = [e for event in events if event.kind in ("release", "landing") for e in event.body["released"]]
        stops = [event.body for event in events if event.kind == "stop" and event.body["target"] == agent]
        landed = [lineage_file(state, path, seq) for entry in released for path, seq in entry["landed"]]
        state.prefetch(("file", file) for file in landed)
        own = agent_record(state, agent) if any(body["cause"] == "superseded" for body in stops) else None
        self._state = state
        self.facts = ClientFacts(
            frozenset(path for body in stops if body["cause"] == "stopped" for _, path in body["kept"]),
            {entry["path"]: entry for entry in released if entry["space"] == "path"},
            tuple(dict.fromkeys(entry["commit"] for entry in released if entry["commit"])),
            frozenset(
                Released.from_record(found, file).commit for file in landed if (found := state.get(file)) is not None
            ),
            own.instance if own is not None else "",
        )

    @property
    def heads(self) -> int:
        """The number of ways in which HEAD may have been one of the named commits."""
        return min(max(1, len(self.facts.commits)), _MOST_HEADS)

    def try_next_head(self) -> None:
        commits = self.facts.commits
        self.facts = self.facts._replace(commits=(*commits[1:], *commits[:1]))

    # --- from the events

    def head(self) -> Oid:
        return self.facts.commits[0] if self.facts.commits else ""

    def other_trees(self, agent: str) -> list[str]:
        return [str(index) for index in range(1, len(self.facts.commits))]

    def head_in(self, tree: str) -> Oid:
        return self.facts.commits[int(tree)]

    def dirty(self, paths: list[str]) -> list[str]:
        return [path for path in paths if path in self.facts.kept]

    def dirty_in(self, tree: str, paths: list[str]) -> list[str]:
        return []

    def gone_instance(self, agent: str) -> str:
        return self.facts.gone

    def runner(self, nonce: str) -> str:
        return "gone"  # only its own machine knows whether the runner of an effect lives

    def within(self, commit: Oid, commits: list[Oid]) -> list[Oid]:
        return []  # `changed` leaves out what the client left out

    # --- from the events, and checked

    def since(self, base: Oid, commit: Oid, paths: list[str]) -> dict[str, Oid]:
        return {path: self._since(base, commit, path) for path in paths}

    def _since(self, base: Oid, work: Oid, path: str) -> Oid:
        """The commit since which the event judges the work: the claim's base, or a commit that the work contains.

        By the client's word, a path that is not released with this work has no change in it.
        """
        entry = self.facts.entries.get(path)
        if entry is None or entry["commit"] != work:
            return work
        start = str(entry["base"])
        return start if start in ("", base) or super().within(work, [start]) else work

    def changed(self, base: Oid, commit: Oid, paths: list[str]) -> dict[str, Files]:
        """The changes that git finds. A client may leave out those that another release has on record already."""
        found, state = super().changed(base, commit, paths), self._state
        assert state is not None
        state.prefetch(("leaves", lineage_dir(state, row[0])) for files in found.values() for row in files)
        return {
            path: [row for row in files if row in self.facts.files(path) or not is_recorded(state, row)]
            for path, files in found.items()
        }

    def unlanded(self, commit: Oid, paths: list[str]) -> dict[str, tuple[Oid, Files]]:
        """Work from before its claim, where the event names some: git's changes since the commit that it names."""
        starts: dict[Oid, list[str]] = {}
        for path in paths:
            starts.setdefault(self._since("", commit, path), []).append(path)
        found = {}
        for since, some in starts.items():
            changed = self.changed(since, commit, some) if since not in ("", commit) else {}
            found.update({path: (since, files) for path, files in changed.items() if files})
        return {path: found[path] for path in paths if path in found}

    def landed(self, work: Oid, commits: list[Oid]) -> list[Oid]:
        """The landed commits by the event; a client may know of fewer than have landed, never of more."""
        return [commit for commit in super().landed(work, commits) if commit in self.facts.landed]


def chains(events: list[Event]) -> list[list[Event]] | Refusal:
    """The events, grouped by command."""
    found: list[list[Event]] = []
    for event in events:
        last = found[-1] if found else []
        if event.part == 0:
            found.append([event])
        elif event.part == len(last) and (event.nonce, event.agent) == (last[0].nonce, last[0].agent):
            last.append(event)
        else:
            return Refusal("chain", f"event {event.seq} is part of a command whose beginning is not there")
    return found


def retrace(
    state: State, events: list[Event], actor: Actor, world: Retraced
) -> tuple[State, list[Heartbeat]] | Refusal:
    """The state after one command's events, and the heartbeats that must move with them; or a refusal.

    `actor` is who pushes, as far as the server knows: the name, and whether a person stands behind it.
    """
    world.set_chain(state, events)
    no = Refusal("illegal-event", f"event {events[0].seq} cannot be pushed", hints=(UPGRADE_SERVER,))
    first = kind_of(events[0].kind)
    kind = first if first.leads else kind_of(events[-1].kind)
    for _ in range(world.heads):
        for recalled in kind.recall(state, events, actor):
            answer = _decide(recalled, state, world)
            if isinstance(answer, Decision):
                if [_essence(event) for event in answer.events] == [_essence(event) for event in events]:
                    return _state_after(state, events), answer.beats
                answer = _differs(events, answer.events)
            no = _likelier(no, answer)
        world.try_next_head()
    return no


def _decide(recalled: Recalled, state: State, world: World) -> Decision | Refusal:
    try:
        return recalled(state, world)
    except Refused as error:
        return error.refusal
    except UsageError as error:
        return Refusal("usage", error.message, hints=error.hints)


def _likelier(no: Refusal, answer: Refusal) -> Refusal:
    """The refusal to report: that of the likeliest command, which is tried first; one that differs in more than the queue is less likely."""
    unlikely = no.code == "differs" and _UPGRADE not in no.hints
    return answer if no.code == "illegal-event" or (unlikely and answer.code != "differs") else no


def _essence(event: Event) -> tuple[object, ...]:
    body = event.body
    judged = kind_of(event.kind).judged
    if judged:
        body = {**body, judged: [{**row, "rule": ""} for row in body[judged]]}
    later = event.refused if event.part else ()  # only the first event tells what was refused before
    rest = (event.keep, later, event.granted, event.past)
    return (event.kind, event.seq, event.agent, event.nonce, event.part, body, *rest)


def _differs(events: list[Event], made: list[Event]) -> Refusal:
    for given, own in zip(events, made):
        if _essence(given) != _essence(own):
            wrong = [key for key in given.body if given.kind == own.kind and given.body[key] != own.body[key]]
            where = f" (in {', '.join(wrong)})" if wrong else ""
            return Refusal(
                "differs",
                f"event {given.seq}, '{printable(kind_of(given.kind).subject(given)[:100])}', is not what the rules make"
                f" of it on the server{where}",
                hints=("fetch and try again", *([] if wrong else [_UPGRADE])),
            )
    return Refusal("differs", f"the rules make {len(made)} event(s) of this on the server, not {len(events)}")


def _state_after(state: State, events: list[Event]) -> State:
    for event in events:
        state = apply(state, event)
    return state
