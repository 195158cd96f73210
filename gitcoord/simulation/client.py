"""An agent's process: it decides on its machine's copy, swaps, reads back, works, and releases."""

from __future__ import annotations

from copy import copy

from gitcoord.base.errors import Refusal, Refused
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.leave import decide as decide_leave
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.release import decide as decide_release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.events.wait import decide as decide_wait
from gitcoord.claims.model import Item
from gitcoord.claims.renew import Renew
from gitcoord.claims.renew import decide as decide_renew
from gitcoord.claims.take import Take
from gitcoord.claims.take import decide as decide_take
from gitcoord.ledger.event import Decision
from gitcoord.ledger.events.epoch import LEAP, Epoch
from gitcoord.ledger.events.epoch import decide as decide_epoch
from gitcoord.ledger.sessions import Actor, Agent, is_torn_kill
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.kill import decide as decide_kill
from gitcoord.sessions.events.stop import Stop
from gitcoord.sessions.events.stop import decide as decide_stop
from gitcoord.simulation.authority import Push, push_of
from gitcoord.simulation.records import top_of
from gitcoord.simulation.world import SimulatedWorld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from typing import Any

    from gitcoord.ledger.state import State
    from gitcoord.ledger.world import World
    from gitcoord.simulation.authority import Authority
    from gitcoord.simulation.invariants import Invariants
    from gitcoord.simulation.machine import Machine, View
    from gitcoord.simulation.scheduler import Run, Scheduler, Steps

    Rule = Callable[[State, Any, World], Decision]

ATTEMPTS = 200
POLL = 15_000
SLOW_POLL = 300_000  # where a grant wakes its agent, this is for claims that expire
PERSON = Actor("boss", person=True)  # kills, revives and repairs
_PASSING = ("held", "kept", "unknown", "halted", "killed")  # refusals after which an agent asks again
SLOT = 20_000  # a holder shows that it is alive this often


class Goal:
    """One piece of work: the items it needs and for how long, and further items that it needs meanwhile."""

    def __init__(self, chance: Random, paths: tuple[Item, ...], shared: float = 0.25) -> None:
        """`shared`: the share of goals that need units of a resource instead of paths."""
        count = chance.choice((1, 1, 1, 2, 3))
        self.items = tuple(dict.fromkeys(chance.choice(paths) for _ in range(count)))
        self.units = 0
        if chance.random() < shared:
            self.items, self.units = (Item("resource", "gpu"),), chance.randint(1, 2)
        self.mode = chance.choice(("write", "write", "write", "read")) if not self.units else "write"
        self.ttl = chance.choice((60, 300, 600))
        self.think = chance.randint(0, 20_000)
        self.hold = chance.randint(100, 90_000)
        self.more = chance.choice(paths) if chance.random() < 0.2 else None
        # The agent takes a place in the queue for this one before it asks for the items, and does not wait for it.
        self.ahead = chance.choice(paths) if chance.random() < shared / 2 else None
        self.way = chance.choice(("plain", "wait", "wait", "wait", "queue"))
        self.priority = chance.choice(("normal", "normal", "normal", "high", "low"))
        self.forgets = chance.random() < 0.05  # the agent never gives it back
        self.stops = chance.random() < 0.1  # the agent ends its session instead of releasing

    def only(self, item: Item, way: str) -> Goal:
        """One further item, as a goal of its own."""
        goal = copy(self)
        goal.items, goal.units, goal.way = (item,), 0, way
        return goal

    @property
    def all_items(self) -> tuple[Item, ...]:
        return (*self.items, *(item for item in (self.more, self.ahead) if item is not None))


def first_number(seq: int, highest: int) -> int:
    """The number of an epoch on a history that ends at `seq`, by a machine that has seen `highest`."""
    return max(seq, highest) + LEAP


def _ask(rule: Rule, state: State, command: Any, world: World) -> Decision | Refusal:
    try:
        return rule(state, command, world)
    except Refused as error:
        return error.refusal


class Client:
    """One agent. Each `Run` is a conversation with the authority that a fault may end or disturb at every `yield`."""

    def __init__(
        self,
        agent: str,
        machine: Machine,
        authority: Authority,
        chance: Random,
        invariants: Invariants,
        scheduler: Scheduler,
    ) -> None:
        self.agent = agent
        self.machine = machine
        self.authority = authority
        self.chance = chance
        self.invariants = invariants
        self.scheduler = scheduler
        self.actor = Actor(agent)
        self.is_calm: Callable[[], bool] = lambda: False
        self.dozing: dict[tuple[str, str], set[str]] = {}  # the waiters of all clients, by first component
        self.is_woken_by_grants = False
        self.waited: list[int] = []
        self._nonces, self._nonce = 0, ""

    # --- work

    def work(self, goals: list[Goal]) -> Steps:
        """Do these goals one after the other; those that are done are taken from the list, also for a later process."""
        # An agent that was started anew gives back what an earlier process left.
        yield from self._release_all()
        goal = goals[0]
        while goals:
            goal = goals[0]
            yield goal.think
            began = self.scheduler.now
            if goal.ahead is not None:
                yield from self._ask(goal.only(goal.ahead, "queue"))
            if (yield from self._claim(goal, patience=600_000)):
                self.waited.append(self.scheduler.now - began)
                yield from self._hold(goal)
            goals.pop(0)
        if not goal.forgets:
            yield from self._release_all()

    def _release_all(self) -> Run:
        for _ in range(20):
            answers = [(yield from self.transact(decide_leave, Leave(self.actor)))]
            answers.append((yield from self.transact(decide_release, Release(self.actor))))
            if "unknown" not in answers:
                return

    def _claim(self, goal: Goal, patience: int, *, gives_up: bool = False) -> Run:
        """Take or wait. Who is not disturbed any more does not give up, unless `gives_up` says so."""
        deadline = self.scheduler.now + patience
        while True:
            is_late = self.scheduler.now > deadline
            answer = yield from self._ask(goal)
            if isinstance(answer, dict) and not answer.get("waiting"):
                return True
            if answer == "deadlock":
                self.invariants.figures["deadlocks"] += 1
                return False
            leaves = is_late and (gives_up or not self.is_calm())
            if leaves and goal.way != "plain":
                yield from self.transact(decide_leave, Leave(self.actor))
            elif is_late and (goal.way == "queue" or answer == "kept"):
                # The order relies on it: who does not block gives back what it holds, also what it forgot; and so does one that is
                # refused since another waits for just that.
                yield from self.transact(decide_release, Release(self.actor))
            if leaves or (isinstance(answer, str) and answer not in _PASSING):
                return False
            # A holder asks often, since that is its heartbeat.
            yield from self._doze(goal.items, SLOW_POLL if self.is_woken_by_grants and not gives_up else POLL)

    def _ask(self, goal: Goal) -> Run:
        take = Take(self.actor, goal.items, goal.mode, ttl=goal.ttl, units=goal.units)
        if goal.way == "plain":
            return (yield from self.transact(decide_take, take))
        wait = Wait(self.actor, goal.items, goal.mode, goal.ttl, units=goal.units, priority=goal.priority)
        return (yield from self.transact(decide_wait, wait._replace(blocking=goal.way == "wait")))

    def _doze(self, items: tuple[Item, ...], poll: int) -> Run:
        """Sleep before the next request. On one machine a notification ends this early; over a network nothing does."""
        keys = {("grant", self.agent)} if self.is_woken_by_grants else {top_of(*item) for item in items}
        for key in keys:
            self.dozing.setdefault(key, set()).add(self.agent)
        try:
            yield self.chance.randint(1_000, 5_000) if self.machine.is_remote else poll
        finally:
            for key in keys:
                self.dozing[key].discard(self.agent)

    def _hold(self, goal: Goal) -> Run:
        """Work on the items with heartbeats, land the work, and release."""
        until = self.scheduler.now + goal.hold
        if goal.more is not None:
            yield from self._claim(goal.only(goal.more, goal.way), patience=60_000, gives_up=True)
        while self.scheduler.now < until:
            yield min(SLOT, until - self.scheduler.now)
            yield from self.transact(decide_renew, Renew(self.actor))
        if goal.mode == "write" and not goal.units:
            yield self.machine.request(lambda: self.authority.land(self.agent, goal.items))
        if goal.stops:
            yield from self.transact(decide_stop, Stop(self.actor, True))
        elif not goal.forgets:
            if goal.ahead is not None:
                yield from self.transact(decide_leave, Leave(self.actor, (goal.ahead,)))
            for _ in range(20):
                # All at once where all is held; else what is left of it.
                answer = yield from self.transact(decide_release, Release(self.actor, goal.all_items))
                if answer == "not-held":
                    answer = yield from self.transact(decide_release, Release(self.actor))
                if answer != "unknown":
                    return

    # --- the transaction

    def transact(self, rule: Rule, command: Any) -> Run:
        """The result, or the code of the refusal; "unknown" if the authority could not be reached."""
        self._nonces += 1
        self._nonce = f"{self.agent}-{self.scheduler.now}-{self._nonces}"
        began = self.scheduler.now
        looked = not self.machine.is_remote
        for _ in range(ATTEMPTS):
            if self.machine.is_behind:
                yield from self._repair()
                continue
            if not self.machine.is_remote:
                self.machine.keep(self.authority.view(copies=False))
            view, highest = self.machine.view, self.machine.highest
            answer = self._decide(rule, command, view)
            if isinstance(answer, Refusal) or not (answer.events or answer.beats):
                if not looked:
                    if (yield self.look()) is None:
                        return "unknown"
                    looked = True
                    # A look that brought nothing new leaves the answer as it is.
                    if self.machine.is_behind or self.machine.view != view:
                        continue
                if isinstance(answer, Refusal):
                    self.invariants.refused(view, command, answer.code)
                return answer.code if isinstance(answer, Refusal) else answer.result
            push = push_of(view, answer, person=command.actor.person)._replace(made=self.scheduler.now)
            done = yield from self._swap(push)
            if isinstance(done, str):
                return done
            if done:
                if push.commits:
                    self.invariants.acknowledged(self.authority, push.head, self.agent, answer.events[-1].seq, highest)
                if not answer.again:
                    return answer.result
                continue
            self.invariants.figures["lost races"] += 1
            looked = looked or self.scheduler.now > began
        return "unknown"

    def _decide(self, rule: Rule, command: Any, view: View) -> Decision | Refusal:
        """The rule's answer; where it read a tombstone that the ledger does not know, the record of that kill before it."""
        world = SimulatedWorld(self.machine, view)
        world.nonce = self._nonce
        answer = _ask(rule, view.state, command, world)
        for agent in list(world.asked):
            record = view.state.get(f"agents/{agent}")
            if record is not None and is_torn_kill(Agent.from_record(record, f"agents/{agent}"), view.beats.get(agent)):
                order = Kill(command.actor, agent, "a tombstone without a record")
                kill = _ask(decide_kill, view.state, order, world)
                return answer if isinstance(kill, Refusal) else kill._replace(again=True)
        return answer

    def look(self) -> Any:
        return self.machine.look(self.authority.view, self.authority.contains)

    def _swap(self, push: Push) -> Run:
        """True: the swap is in the ledger, by reading back. False: it is not, and never will be.

        A code: the gate refused it, or ("unknown") it cannot be told.
        """
        for _ in range(10):
            answer = yield self.machine.request(lambda: self.authority.push(push))
            if answer is not None:
                break  # a push whose answer is lost is repeated as it is
        if isinstance(answer, Refusal):
            self.invariants.note(f"the gate refuses {self.agent}: {answer.message}")
            return answer.code
        for _ in range(10):
            if (yield self.look()) is not None:
                return self._is_there(push)
        return "unknown"

    def _is_there(self, push: Push) -> bool:
        view = self.machine.view
        if push.commits:
            return self.authority.contains(view.head, push.head)
        return all((now := view.beats.get(beat.agent)) is not None and now.oid == beat.oid for _, beat in push.beats)

    def _repair(self) -> Run:
        """Restore the authority's lost events, or accept its history as it is; then continue above all numbers seen.

        By a person: where this agent is killed, it could do nothing about it."""
        if (yield self.look()) is None or not self.machine.is_behind:
            return
        mine, theirs = self.machine.view, self.authority.view()
        missing = self.authority.missing(mine.head)
        base = theirs if missing is None else theirs._replace(head=mine.head, state=mine.state)
        leap = first_number(base.state.seq, self.machine.highest)
        world = SimulatedWorld(self.machine, theirs)
        epoch = Epoch(PERSON, leap, "events were lost")
        world.nonce = f"{self.agent}-{leap}"
        answer = _ask(decide_epoch, base.state, epoch, world)
        if isinstance(answer, Refusal):
            yield 1000
            return
        push = push_of(base, answer, person=True)
        push = push._replace(parent=theirs.head, commits=(*(missing or ()), *push.commits), restores=True)
        if (yield self.machine.request(lambda: self.authority.push(push))) is True:
            if missing is None:
                self.machine.keep(theirs)  # its history counts from now on
            yield self.look()  # it may have lost events again meanwhile
        else:
            yield self.chance.randint(100, 2000)
