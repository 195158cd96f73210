"""One seed: a simulation from its first message to its last, and the invariants that it held or violated."""

from __future__ import annotations

from random import Random

from gitcoord.claims.model import Item
from gitcoord.simulation.authority import Authority
from gitcoord.simulation.client import Client, Goal
from gitcoord.simulation.invariants import Invariants, Violation
from gitcoord.simulation.machine import Faults, Machine
from gitcoord.simulation.memory import remembering
from gitcoord.simulation.people import BUSY, HOUR, People
from gitcoord.simulation.scheduler import Process, Scheduler
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.state import Changes
    from gitcoord.simulation.scheduler import Steps

CALM = HOUR // 2  # faults happen up to here
BOUND = 4 * HOUR  # from then on every agent must have done all its work within this time
_CHECKED = 1_000  # agents of a crowd that is checked against the invariants of the queue without being asked
PATHS = tuple(Item("path", name) for name in ("a", "a/b", "a/b/c", "d/e", "d/f", "d", "g"))
HOT = tuple(Item("path", name) for name in ("a", "b", "c"))


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
        fails_over = not is_crowd and seed % 20 == 10  # not drawn, so that all other seeds stay as they are
        is_hot = not is_crowd and self.chance.random() < 0.25
        if is_hot:  # more agents on few files, so that requests are overtaken until they may not be any more
            agents, teams = agents + 3, (HOT,)
        self.scheduler = Scheduler()
        self.invariants = Invariants(self.scheduler)
        self.is_remote = (self.chance.random() < 0.6 or fails_over) and not is_crowd
        self.authority = Authority(self.invariants, has_gate=self.is_remote and self.chance.random() < 0.5)
        self.faults = Faults() if is_crowd else self._faults()
        count = self.chance.randint(2 if fails_over else 1, 3) if self.is_remote else 1
        self.machines = [self._machine(f"m{n}") for n in range(count)]
        self.authority.machine = self._machine("server")
        self.processes: dict[str, Process] = {}
        self.dozing: dict[tuple[str, str], set[str]] = {}
        self.clients = [self.client(f"a{n}") for n in range(agents)]
        shared = 0.0 if is_crowd or is_hot else 0.25
        self.goals = {
            client.agent: [Goal(self.chance, teams[n % len(teams)], shared) for _ in range(goals)]
            for n, client in enumerate(self.clients)
        }
        if is_hot:
            for goal in (goal for each in self.goals.values() for goal in each):
                goal.think, goal.priority = goal.think // 4, self.chance.choice(("high", "normal", "low"))
        self.authority.moved = self._notify
        self.scheduler.after(CALM, self._calm_down)
        for _ in range(self.chance.randint(0, 4) if self.is_remote else 0):
            self.scheduler.after(self.chance.randint(0, self.chance.choice((BUSY, CALM))), self._disaster)
        for _ in range(4 if fails_over else 0):
            self.scheduler.after(self.chance.randint(0, BUSY), self._fail_over)
        if not is_crowd:
            self.people = People(self)

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

    def client(self, agent: str) -> Client:
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
        """Cause a disaster of the network, of a clock or of the authority."""
        machine = self.chance.choice(self.clients).machine
        self.chance.choice((self._cut, self._jump, self._rewind, self._rewind))(machine)

    def _fail_over(self) -> None:
        """For a while one machine alone reaches the authority. Then a replica takes its place, which lacks what that machine wrote."""
        alone, known = self.chance.choice(self.machines), len(self.authority.history)
        self.invariants.note(f"{alone.name} alone reaches the authority, which is replaced soon")
        for machine in self.machines:
            if machine is not alone:
                self._cut(machine, 40)

        def replace() -> None:
            self.authority.rewind(max(0, len(self.authority.history) - known))
            self._cut(alone, self.chance.choice((10, 40)))

        self.scheduler.after(40_000, replace)

    def _cut(self, machine: Machine, seconds: int = 0) -> None:
        seconds = seconds or self.chance.choice((10, 100, 700))
        self.invariants.note(f"the link of {machine.name} is cut for {seconds} s")
        machine.cut_until = self.scheduler.now + seconds * 1000

    def _jump(self, machine: Machine) -> None:
        # Ten minutes off at most: two clocks that differ by more than the largest skew are not promised anything.
        machine.offset = max(-600, min(600, machine.offset + self.chance.choice((-600, 600))))
        self.invariants.note(f"the wall clock of {machine.name} jumps")

    def _rewind(self, machine: Machine) -> None:
        """Restore a backup. If a machine that has seen more is cut off, others write before it can notice."""
        self.authority.rewind(self.chance.randint(1, 12))
        if self.chance.random() < 0.5:
            self._cut(machine)

    def _calm_down(self) -> None:
        """End all faults: from here on every agent must finish."""
        self.invariants.note("no more faults")
        self.faults = Faults(delay=20)
        if not self.is_crowd:
            self.people.look_after()
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


def simulate_crowd(seed: int, agents: int, goals: int = 2, *, checks_queue: bool = False) -> Outcome:
    """Many agents on one machine without faults, in teams of a hundred that share twenty files: for the curve over their number.

    `checks_queue`: also the invariants of the queue where there are more than a thousand agents."""
    files = [Item("path", f"d{n // 10}/f{n % 10}") for n in range(max(1, agents // 5))]
    teams = tuple(tuple(files[n : n + 20]) for n in range(0, len(files), 20))
    simulation = Simulation(seed, agents, goals, teams, is_crowd=True)
    simulation.authority.keep_one_state()
    simulation.invariants.follows_queue = checks_queue or agents <= _CHECKED
    for goals_of_one in simulation.goals.values():
        for goal in goals_of_one:
            goal.way = "queue" if goal.way == "queue" else "wait"
    return outcome(simulation, seed)


def simulate(seed: int, agents: int = 5, goals: int = 4) -> Outcome:
    """Run one seed. The same seed, agents and goals give the same history."""
    return outcome(Simulation(seed, agents, goals), seed)


def outcome(simulation: Simulation, seed: int) -> Outcome:
    """Run this simulation."""
    violation = ""
    try:
        with remembering():
            simulation.run()
    except Violation as error:
        violation = str(error)
    waits = [wait for client in simulation.clients for wait in client.waited]
    return Outcome(seed, violation, simulation.invariants.lines, simulation.invariants.figures, waits)
