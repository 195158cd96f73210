"""The authority: one ledger moved by compare-and-swap, heartbeats beside it, and the gate for events and for code."""

from __future__ import annotations

from hashlib import sha1

from gitcoord.base.errors import Refusal
from gitcoord.claims.model import own_claim
from gitcoord.ledger.event import Illegal, decode_event, effects, encode_event
from gitcoord.ledger.events.init import first_event
from gitcoord.ledger.sessions import Actor, Heartbeat, Seen, encode_heartbeat
from gitcoord.ledger.state import State
from gitcoord.server.retrace import chains, retrace
from gitcoord.simulation.machine import EPOCH, Machine, View
from gitcoord.simulation.world import GateWorld
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.claims.model import Item
    from gitcoord.ledger.event import Decision, Event
    from gitcoord.ledger.state import Changes
    from gitcoord.simulation.invariants import Invariants


class Commit(NamedTuple):
    """An event in the ledger. `id` follows from the parent and the message, as git's does."""

    id: str
    parent: str
    message: bytes


class Push(NamedTuple):
    """One swap: these commits on top of `parent`, and these heartbeats in place of the ones that were read."""

    parent: str
    commits: tuple[Commit, ...]
    beats: tuple[tuple[str, Heartbeat], ...]  # (id of the heartbeat that is replaced, '' for none; the new one)
    person: bool = False
    made: int = 0  # when its heartbeats were made: it may arrive much later
    restores: bool = False  # it ends in an epoch, and may bring lost events back

    @property
    def head(self) -> str:
        return self.commits[-1].id if self.commits else self.parent


def push_of(view: View, decision: Decision, *, person: bool) -> Push:
    """The swap that carries out a decision, if the refs are as in this view."""
    commits: list[Commit] = []
    parent = view.head
    for event in decision.events:
        message = encode_event(event)
        commits.append(Commit(sha1(parent.encode() + message).hexdigest(), parent, message))
        parent = commits[-1].id
    beats = []
    for beat in decision.beats:
        old = view.beats.get(beat.agent)
        beats.append((old.oid if old is not None else "", beat._replace(oid=_oid(beat))))
    return Push(view.head, tuple(commits), tuple(beats), person)


def _oid(beat: Heartbeat) -> str:
    return sha1(encode_heartbeat(beat)).hexdigest()


class Authority:
    """The repository that decides. All its methods are atomic, as git's swap of one ref with an expected value is."""

    def __init__(self, invariants: Invariants, *, has_gate: bool) -> None:
        self.has_gate = has_gate
        self.machine: Machine | None = None  # the server's own clock, for its gate
        self.objects: dict[str, Commit] = {}
        self.events: dict[str, Event] = {}  # of these commits, decoded
        self.history: list[str] = []
        self.position: dict[str, int] = {}
        self.states: list[State] = []  # after each event
        self.keeps_states = True  # False: only the last one, changed in place, where nothing is ever rewound
        self.beats: dict[str, Heartbeat] = {}
        self.moved: Callable[[Changes], None] | None = None  # called with each change
        self._invariants = invariants
        first = first_event("setup", EPOCH, "n0", fold=False, sync="main", authority={"local": 1})
        message = encode_event(first)
        self._append(Commit(sha1(message).hexdigest(), "", message), State())

    @property
    def head(self) -> str:
        return self.history[-1]

    @property
    def state(self) -> State:
        return self.states[-1]

    def keep_one_state(self) -> None:
        """For crowds: nothing is ever rewound."""
        self.keeps_states = False
        self.states[:] = [State(dict(self.state.files), seq=self.state.seq)]

    def view(self, *, copies: bool = True) -> View:
        return View(self.head, self.state, dict(self.beats) if copies else self.beats)

    def contains(self, head: str, commit: str) -> bool:
        """Return whether the commit is in the history that ends in `head`."""
        while head and head != commit:
            if head in self.position and commit in self.position:
                return self.position[commit] <= self.position[head]
            head = self.objects[head].parent
        return bool(head)

    # --- the swap

    def push(self, push: Push) -> Refusal | bool:
        """Try the swap. True: swapped. False: another one was first. A refusal: by the gate."""
        if push.commits and push.parent != self.head:
            return False
        for expected, beat in push.beats:
            old = self.beats.get(beat.agent)
            if (old.oid if old is not None else "") != expected:
                return False
        if self.has_gate and push.commits and not push.restores:
            refusal = self._refused(push)
            if refusal is not None:
                return refusal
        try:
            for commit in push.commits:
                self._append(commit, self.state, restored=len(push.commits) > 1 and push.restores)
        except Illegal as error:
            self._invariants.fail(f"a rule made an event that may not follow: {error.message}")
        for _, beat in push.beats:
            self._beat(beat, push.made)
        self._invariants.settled()
        for commit in () if push.restores else push.commits:
            self._invariants.swapped(self.events[commit.id], self.beats)
        return True

    def _append(self, commit: Commit, state: State, *, restored: bool = False) -> None:
        event = decode_event(commit.message)
        changes = effects(state, event)
        self.objects[commit.id], self.events[commit.id] = commit, event
        self.position[commit.id] = len(self.history)
        self.history.append(commit.id)
        self._invariants.appended(state, event, changes, None if restored else self.beats)
        if self.keeps_states:
            state = State(state.files)  # whole, since it is read much more often than it is made
            self.states.append(state)
        state.patch(changes)
        state.seq = event.seq
        if self.moved is not None:
            self.moved(changes)

    def _beat(self, beat: Heartbeat, made: int) -> None:
        self.beats[beat.agent] = beat
        self._invariants.beaten(beat, made)
        if self.machine is not None:
            self.machine.sightings[beat.agent] = Seen(beat.oid, self.machine.name, self.machine.mono())

    # --- the gate

    def _refused(self, push: Push) -> Refusal | None:
        """The gate's refusal: it makes the events again, with its own clock and heartbeats."""
        events = [decode_event(commit.message) for commit in push.commits]
        assert self.machine is not None
        groups = chains(events)
        if isinstance(groups, Refusal):
            return groups
        state, world = self.state, GateWorld(self.machine, self.view(copies=False))
        for group in groups:
            answer = retrace(state, group, Actor(group[0].agent, person=push.person), world)
            if isinstance(answer, Refusal):
                return answer
            state = answer[0]
        return None

    def land(self, agent: str, items: tuple[Item, ...]) -> bool:
        """Push code that changes these items, as an agent that believes to hold them."""
        if not self.may_land(agent, items):
            self._invariants.figures["fenced"] += 1
            return False
        self._invariants.landed(agent, items)
        return True

    def may_land(self, agent: str, items: tuple[Item, ...]) -> bool:
        return all(own_claim(self.state, item, agent) is not None for item in items)

    # --- disasters

    def rewind(self, count: int) -> None:
        """Lose the last events, as after restoring a backup. Heartbeats are younger, and stay."""
        count = min(count, len(self.history) - 1)
        while count and self.events[self.history[-count]].part:
            count -= 1  # what was swapped in together is lost together
        if count < 1:
            return
        for commit in self.history[-count:]:
            del self.position[commit]
        lost = self.history[-count:]
        del self.history[-count:]
        del self.states[-count:]
        self._invariants.rewound(lost, self.state)

    def missing(self, head: str) -> list[Commit] | None:
        """The commits from the ledger's head up to this one; None where the ledger's head is none of its ancestors."""
        found: list[Commit] = []
        while head != self.head:
            if head not in self.objects or not self.objects[head].parent:
                return None
            found.append(self.objects[head])
            head = found[-1].parent
        return found[::-1]
