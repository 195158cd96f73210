"""One seed: a simulation from its first message to its last, and the invariants that it held or violated."""

from __future__ import annotations

from random import Random

from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.expire import decide as decide_sweep
from gitcoord.claims.model import Item
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.accept import decide as decide_accept
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.handoff.events.handoff import decide as decide_offer
from gitcoord.ledger.sessions import KILLED
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.kill import decide as decide_kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.revive import decide as decide_revive
from gitcoord.simulation.authority import Authority
from gitcoord.simulation.client import PERSON, Client, Goal
from gitcoord.simulation.invariants import Invariants, Violation
from gitcoord.simulation.machine import Faults, Machine
from gitcoord.simulation.scheduler import Process, Scheduler
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.state import Changes
    from gitcoord.simulation.scheduler import Steps

HOUR = 3_600_000
CALM = HOUR // 2  # faults happen up to here
BOUND = 4 * HOUR  # from then on every agent must have done all its work within this time
PATHS = tuple(Item("path", name) for name in ("a", "a/b", "a/b/c", "d/e", "d/f", "d", "g"))


class Outcome(NamedTuple):
    """The outcome of one seed. `violation` is '' if all invariants held."""

    seed: int
    violation: str
    lines: list[tuple[int, str]]
    figures: dict[str, int]
    waits: list[int]  # milliseconds from the first request to the grant, for each grant


class Simulation:
    """Machines, agents and an authority, all drawn from one seed."""

    def __init__(
        self,
        seed: int,
        agents: int,
        goals: int,
        teams: tuple[tuple[Item, ...], ...] = (PATHS,),
        *,
        is_crowd: bool = False,
    ) -> None:
        """`teams`: the paths that the agents of each team want."""
        self.chance = Random(seed)
        self.is_crowd = is_crowd
        self.scheduler = Scheduler()
        self.invariants = Invariants(self.scheduler)
        self.is_remote = self.chance.random() < 0.6 and not is_crowd
        self.authority = Authority(self.invariants, has_gate=self.is_remote and self.chance.random() < 0.5)
        self.faults = Faults() if is_crowd else self._faults()
        self.machines = [self._machine(f"m{n}") for n in range(self.chance.randint(1, 3) if self.is_remote else 1)]
        self.authority.machine = self._machine("server")
        self.processes: dict[str, Process] = {}
        self.dozing: dict[tuple[str, str], set[str]] = {}
        self.clients = [self._client(f"a{n}") for n in range(agents)]
        shared = 0.0 if is_crowd else 0.25
        self.goals = {
            client.agent: [Goal(self.chance, teams[n % len(teams)], shared) for _ in range(goals)]
            for n, client in enumerate(self.clients)
        }
        self.authority.moved = self._notify
        self.scheduler.after(CALM, self._calm_down)
        for _ in range(0 if is_crowd else self.chance.randint(0, 4)):
            self.scheduler.after(self.chance.randint(0, CALM), self._disaster)
        for _ in range(0 if is_crowd else self.chance.choice((0, 0, 3, 6))):
            self.scheduler.after(self.chance.randint(0, CALM // 6), self._hand_over)

    def _faults(self) -> Faults:
        rare = self.chance.choice((0.0, 0.002, 0.01))
        death = self.chance.choice((0.0, 0.002, 0.01))
        if not self.is_remote:
            return Faults(pause=rare, death=death)
        lost = self.chance.choice((0.0, 0.01, 0.1))
        return Faults(lost, self.chance.choice((0.0, 0.05)), rare, death, self.chance.choice((20, 200)))

    def _machine(self, name: str) -> Machine:
        machine = Machine(name, self.scheduler, self.chance, self.authority.view(), is_remote=self.is_remote)
        machine.faults = self.faults
        if self.is_remote:
            machine.rate = self.chance.choice((1.0, 1.0, 0.98, 1.02))
            machine.offset = self.chance.choice((0, 0, -600, 600))
        return machine

    def _client(self, agent: str) -> Client:
        machine = self.chance.choice(self.machines)
        client = Client(agent, machine, self.authority, self.chance, self.invariants, self.scheduler)
        client.is_calm = lambda: self.is_crowd or self.scheduler.now >= CALM
        client.dozing = self.dozing
        client.is_woken_by_grants = self.is_crowd
        return client

    # --- processes

    def _start(self, client: Client) -> None:
        if self.goals[client.agent]:
            self._run(client, client.work(self.goals[client.agent]))

    def _run(self, client: Client, steps: Steps) -> None:
        def ended(finished: bool) -> None:
            if not finished:
                self.invariants.note(f"the process of {client.agent} dies")
                # The agent is started again, sooner or later.
                self.scheduler.after(self.chance.randint(1_000, 600_000), lambda: self._start(client))

        self.processes[client.agent] = Process(self.scheduler, steps, self._disturb, ended)

    def _disturb(self) -> int:
        if self.scheduler.now >= CALM:
            return 0
        faults = self.faults
        luck = self.chance.random()
        if luck < faults.death:
            return -1
        if luck < faults.death + faults.pause:
            return self.chance.choice((1_000, 60_000, 400_000))
        return 0

    def _notify(self, changes: Changes) -> None:
        """Wake those who wait for what changed, on the authority's own machine."""
        if self.is_remote:
            return
        parts = [key.split("/") for key in changes if key.startswith(("claims/", "waits/"))]
        keys = [(part[1], part[2]) for part in parts]
        if self.is_crowd:
            keys = [("grant", r["agent"]) for r in changes.values() if r is not None and r.get("reserved")]
        for agent in sorted({agent for key in keys for agent in self.dozing.get(key, ())}):
            self.processes[agent].wake()

    # --- disasters

    def _disaster(self) -> None:
        """Cause a disaster that no agent caused."""
        victim = self.chance.choice(self.clients)
        kinds = [self._kill, self._sweep]
        if self.is_remote:
            kinds += [self._cut, self._jump, self._rewind, self._rewind]
        self.chance.choice(kinds)(victim)

    def _cut(self, victim: Client) -> None:
        seconds = self.chance.choice((10, 100, 700))
        self.invariants.note(f"the link of {victim.machine.name} is cut for {seconds} s")
        victim.machine.cut_until = self.scheduler.now + seconds * 1000

    def _jump(self, victim: Client) -> None:
        victim.machine.offset += self.chance.choice((-600, 600))
        self.invariants.note(f"the wall clock of {victim.machine.name} jumps")

    def _rewind(self, victim: Client) -> None:
        """Restore a backup. If a machine that has seen more is cut off, others write before it can notice."""
        self.authority.rewind(self.chance.randint(1, 12))
        if self.chance.random() < 0.5:
            self._cut(victim)

    def _kill(self, victim: Client) -> None:
        """Kill an agent as a person would, and revive it a little later."""
        person = self._client(PERSON.agent)

        def steps() -> Steps:
            yield from person.transact(decide_kill, Kill(PERSON, victim.agent, "too slow"))
            yield 30_000
            for _ in range(20):
                answer = yield from person.transact(decide_revive, Revive(PERSON, victim.agent))
                if isinstance(answer, dict):
                    return

        Process(self.scheduler, steps(), lambda: 0, lambda finished: None)

    def _revive_killed(self) -> None:
        """After the faults, a person looks now and then for agents whose revival was lost."""
        for record in self.authority.state.below("agents").values():
            if record["state"] == KILLED:
                again = self._client(PERSON.agent).transact(decide_revive, Revive(PERSON, record["agent"]))
                Process(self.scheduler, again, lambda: 0, lambda finished: None)
        self.scheduler.after(HOUR // 6, self._revive_killed)

    def _hand_over(self) -> None:
        """An agent offers all that it holds to one that waits, which accepts at once."""
        state = self.authority.state
        givers = sorted({record["agent"] for record in state.below("claims").values()})
        takers = sorted({record["agent"] for record in state.below("waits").values() if record["blocking"]})
        pairs = [(giver, taker) for giver in givers for taker in takers if giver != taker]
        if not pairs:
            return
        names = self.chance.choice(pairs)
        giver, taker = (next(client for client in self.clients if client.agent == name) for name in names)
        sections = dict.fromkeys(("state", "changed", "remaining", "next"), "as it is")

        def steps() -> Steps:
            offered = yield from giver.transact(decide_offer, Offer(giver.actor, sections, taker.agent))
            if isinstance(offered, dict):
                yield from taker.transact(decide_accept, Accept(taker.actor, str(offered["id"])))

        Process(self.scheduler, steps(), lambda: 0, lambda finished: None)

    def _sweep(self, victim: Client) -> None:
        sweeper = self._client("sweeper")

        def steps() -> Steps:
            yield from sweeper.transact(decide_sweep, Sweep(sweeper.actor))

        Process(self.scheduler, steps(), lambda: 0, lambda finished: None)

    def _calm_down(self) -> None:
        """End all faults: from here on every agent must finish."""
        self.invariants.note("no more faults")
        self.faults = Faults(delay=20)
        self._revive_killed()
        for machine in (*self.machines, self.authority.machine):
            if machine is not None:
                machine.faults, machine.cut_until = self.faults, 0

    # --- the run

    def run(self) -> None:
        for client in self.clients:
            self._start(client)
        self.scheduler.run(CALM)
        self.scheduler.run(CALM + BOUND)
        for client in self.clients:
            left = self.goals[client.agent]
            self.invariants.require(not left, f"{client.agent} was not done {BOUND // HOUR} hours after the last fault")
        self.invariants.at_end(self.authority)


def simulate_crowd(seed: int, agents: int, goals: int = 2) -> Outcome:
    """Many agents on one machine without faults, in teams of a hundred that share twenty files: for the curve over their number."""
    files = [Item("path", f"d{n // 10}/f{n % 10}") for n in range(max(1, agents // 5))]
    teams = tuple(tuple(files[n : n + 20]) for n in range(0, len(files), 20))
    simulation = Simulation(seed, agents, goals, teams, is_crowd=True)
    simulation.authority.keep_one_state()
    simulation.invariants.follows_queue = False
    for goals_of_one in simulation.goals.values():
        for goal in goals_of_one:
            goal.way = "queue" if goal.way == "queue" else "wait"
    return _outcome(simulation, seed)


def simulate(seed: int, agents: int = 5, goals: int = 4) -> Outcome:
    """Run one seed. The same seed, agents and goals give the same history."""
    return _outcome(Simulation(seed, agents, goals), seed)


def _outcome(simulation: Simulation, seed: int) -> Outcome:
    violation = ""
    try:
        simulation.run()
    except Violation as error:
        violation = str(error)
    waits = [wait for client in simulation.clients for wait in client.waited]
    return Outcome(seed, violation, simulation.invariants.lines, simulation.invariants.figures, waits)
