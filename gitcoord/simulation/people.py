"""Interventions in a simulation: kills, halts, takeovers and sweeps by a person, and handoffs between agents."""

from __future__ import annotations

from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.expire import decide as decide_sweep
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.release import decide as decide_release
from gitcoord.claims.events.takeover import Takeover
from gitcoord.claims.events.takeover import decide as decide_takeover
from gitcoord.claims.model import Item
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.accept import decide as decide_accept
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.handoff.events.handoff import decide as decide_offer
from gitcoord.ledger.sessions import KILLED
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.halt import decide as decide_halt
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.kill import decide as decide_kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.revive import decide as decide_revive
from gitcoord.sessions.events.unhalt import Unhalt
from gitcoord.sessions.events.unhalt import decide as decide_unhalt
from gitcoord.simulation.client import PERSON
from gitcoord.simulation.scheduler import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitcoord.simulation.client import Rule
    from gitcoord.simulation.run import Simulation
    from gitcoord.simulation.scheduler import Run, Steps

HOUR = 3_600_000
BUSY = HOUR // 12  # most work is done in this time
_SECTIONS = dict.fromkeys(("state", "changed", "remaining", "next"), "as it is")


class People:
    """Persons and agents that intervene in the work of others, at times drawn from the seed. Their processes are not disturbed."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._chance = simulation.chance
        rounds = self._chance.choice((0, 1, 2, 3))
        for act in (self._kill, self._sweep, self._halt, self._take_over):
            for _ in range(self._chance.choice((0, 0, 1, rounds))):
                self._after(BUSY, act())
        for _ in range(self._chance.choice((0, 0, 3, 6))):
            self._after(BUSY, self._hand_over())

    def _after(self, most: int, steps: Steps) -> None:
        delay, scheduler = self._chance.randint(0, most), self._simulation.scheduler
        scheduler.after(delay, lambda: self._start(steps))

    def _start(self, steps: Run) -> None:
        Process(self._simulation.scheduler, steps, lambda: 0, lambda finished: None)

    def _do(self, rule: Rule, command: Any) -> Run:
        return self._simulation.client(PERSON.agent).transact(rule, command)

    def _insist(self, rule: Rule, command: Any) -> Run:
        for _ in range(20):
            if isinstance((yield from self._do(rule, command)), dict):
                return

    def _kill(self) -> Steps:
        """Kill an agent, and revive it a little later."""
        victim = self._chance.choice(self._simulation.clients).agent
        yield from self._do(decide_kill, Kill(PERSON, victim, "too slow"))
        yield 30_000
        yield from self._insist(decide_revive, Revive(PERSON, victim))

    def _sweep(self) -> Steps:
        sweeper = self._simulation.client("sweeper")
        yield from sweeper.transact(decide_sweep, Sweep(sweeper.actor))

    def _halt(self) -> Steps:
        """Halt everything, and go on a while later."""
        yield from self._do(decide_halt, Halt(PERSON, "look at this"))
        yield self._chance.choice((5_000, 60_000, 400_000))
        yield from self._insist(decide_unhalt, Unhalt(PERSON))

    def _take_over(self) -> Steps:
        """Take a live claim away, and release it a while later. An agent that tries the same is refused."""
        claims = [r for _, r in sorted(self._records("claims").items()) if r["agent"] != PERSON.agent]
        if claims:
            taken = self._chance.choice(claims)
            item = Item(taken["space"], taken["path"])
            agent = self._chance.choice(self._simulation.clients)
            yield from agent.transact(decide_takeover, Takeover(agent.actor, item, taken["token"], "wanted"))
            yield from self._do(decide_takeover, Takeover(PERSON, item, taken["token"], "needed"))
            yield self._chance.choice((1_000, 60_000))
            yield from self._insist(decide_release, Release(PERSON))

    def _hand_over(self) -> Steps:
        """An agent offers all that it holds, or one claim, to one that waits or to anyone; that one accepts it, sooner or later."""
        claims, waits = self._records("claims"), self._records("waits")
        givers = sorted({record["agent"] for record in claims.values()} - {PERSON.agent})
        takers = sorted({record["agent"] for record in waits.values() if record["blocking"]})
        if self._chance.random() < 0.2:
            takers = [client.agent for client in self._simulation.clients]
        pairs = [(giver, taker) for giver in givers for taker in takers if giver != taker]
        if not pairs:
            return
        names = self._chance.choice(pairs)
        giver, taker = (next(c for c in self._simulation.clients if c.agent == name) for name in names)
        held = [Item(r["space"], r["path"]) for _, r in sorted(claims.items()) if r["agent"] == giver.agent]
        items = self._chance.choice(((), (), (self._chance.choice(held),)))
        to = self._chance.choice((taker.agent, taker.agent, ""))
        offered = yield from giver.transact(decide_offer, Offer(giver.actor, _SECTIONS, to, items=items))
        if isinstance(offered, dict):
            yield self._chance.choice((0, 0, 30_000))
            yield from taker.transact(decide_accept, Accept(taker.actor, str(offered["id"])))

    def look_after(self) -> None:
        """After the faults, a person looks now and then for a revival or the end of a halt that was lost. An agent that was killed
        without a record of it says so itself."""
        beats = self._simulation.authority.beats
        for record in self._records("agents").values():
            beat = beats.get(record["agent"])
            if record["state"] == KILLED or (beat is not None and beat.killed and beat.session == record["session"]):
                self._start(self._do(decide_revive, Revive(PERSON, record["agent"])))
        if self._simulation.authority.state.get("halt") is not None:
            self._start(self._do(decide_unhalt, Unhalt(PERSON)))
        self._simulation.scheduler.after(HOUR // 6, self.look_after)

    def _records(self, directory: str) -> Any:
        return self._simulation.authority.state.below(directory)
