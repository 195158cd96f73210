"""The agents of a drill, at work at the same time: honest ones edit and land the same few files, and all of them try the ways in."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from threading import Lock, Thread

from gitcoord.base.errors import GitcoordError
from gitcoord.cli.drill.ground import Ground
from gitcoord.cli.drill.model import UNKNOWN, Hold, Outcome, Try
from gitcoord.cli.drill.tries import Way, all_ways, known_gaps

_WAIT = "60s"  # for a claim
_LANDINGS = 3  # one of so many honest rounds lands

Job = Callable[[str], None]


class Crowd:
    """The agents, the jobs that they share, and what came of them."""

    def __init__(self, ground: Ground, agents: int, seed: int) -> None:
        self.agents = [f"drill-{number:02}" for number in range(1, agents + 1)]
        self._ground, self._seed, self._random = ground, seed, Random(seed)
        self._lock = Lock()
        self._jobs: list[Job] = []
        self._fill: Callable[[], list[Job]] = list
        self.tries: list[Try] = []
        self._holds: list[Hold] = []
        self._refused: list[str] = []
        self._edits: Counter[str] = Counter()  # by path: acknowledged
        self._landed: dict[str, list[str]] = {}  # by path: lines that were said to have landed
        self._trouble: GitcoordError | None = None
        self._ways: list[Way] = []

    @property
    def refused(self) -> int:
        return len(self._refused)

    def run(self, *, rounds: int, again: bool) -> None:
        """Every agent does `rounds` honest rounds, and each way in is tried once; `again`: and so on until the time is over."""
        ways = self._ways = all_ways(self._ground)
        self.tries += known_gaps(self._ground)

        def jobs() -> list[Job]:
            found: list[Job] = [lambda agent, way=way: self._try(way, agent) for way in ways]  # type: ignore[misc]
            for number in range(rounds * len(self.agents)):
                path = self._random.choice(self._ground.paths.hot)
                work = self._land if number % _LANDINGS == 0 else self._edit
                found.append(lambda agent, work=work, path=path: work(agent, path))  # type: ignore[misc]
            self._random.shuffle(found)
            return found

        self._jobs, self._fill = jobs(), jobs if again else list
        threads = [Thread(target=self._work, args=(agent,), daemon=True) for agent in self.agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)  # so that Ctrl-C is heard
        if self._trouble is not None:
            raise self._trouble

    def _work(self, agent: str) -> None:
        while (job := self._next()) is not None:
            try:
                job(agent)
            except GitcoordError as error:
                self._trouble = error

    def _next(self) -> Job | None:
        with self._lock:
            if self._trouble is not None or time.monotonic() > self._ground.last_start:
                return None
            self._jobs = self._jobs or self._fill()
            return self._jobs.pop() if self._jobs else None

    # --- jobs

    def _try(self, way: Way, agent: str) -> None:
        self.tries.append(way.tried(agent))

    def _edit(self, agent: str, path: str) -> None:
        """A number in a file grows by one, read and written under the claim."""
        began = time.monotonic()
        if not self._claim(agent, path):
            return
        start = time.monotonic()
        file = self._ground.home / f"count-{self._ground.paths.hot.index(path)}"
        count = (
            int(file.read_text() or 0) if file.exists() else 0
        )  # empty while another writes, who should not at this moment
        self._ground.git("hash-object", "--stdin")  # the other agents get time to interfere
        file.write_text(str(count + 1))
        self._edits[path] += 1
        self._release(agent, path, began, start)

    def _land(self, agent: str, path: str) -> None:
        """A line is added to the file, committed and landed."""
        ground, tree = self._ground, self._ground.tree(agent)
        began = time.monotonic()
        if not self._claim(agent, path):
            return
        start = time.monotonic()
        ground.must("checkout", "-q", "-B", f"drill/{agent}", ground.trunk_ref, cwd=tree)
        line = f"{agent} {len(self._holds)} {start}"
        with (tree / path).open("a") as stream:
            stream.write(f"\n{line}\n")
        done = ground.git("commit", "-q", "-m", "drill", "--", path, cwd=tree, agent=agent)
        if done.code:
            self._refused.append(done.words)
            ground.must("reset", "-q", "--hard", cwd=tree)
            return self._release(agent, path, began, start)
        self._holds.append(Hold(path, agent, start, time.monotonic(), start - began))
        with ground.trunk_lock:
            done = ground.git("coord", "land", "--json", cwd=tree, agent=agent)
        if done.code == 0 and json.loads(done.out.split(b"\n")[0]).get("ok"):
            self._landed.setdefault(path, []).append(line)
        else:
            self._refused.append(done.words)
            ground.git("claim", "release", "--all", "--dirty", cwd=tree, agent=agent)

    def _claim(self, agent: str, path: str) -> bool:
        done = self._ground.git("claim", "--wait", _WAIT, "--json", path, cwd=self._ground.tree(agent), agent=agent)
        if done.code:
            self._refused.append(done.words)
        return done.code == 0

    def _release(self, agent: str, path: str, began: float, start: float) -> None:
        self._holds.append(Hold(path, agent, start, time.monotonic(), start - began))
        self._ground.git("claim", "release", path, "--dirty", cwd=self._ground.tree(agent), agent=agent)

    # --- what came of it

    def outcome(self, seconds: float, length: str = "") -> Outcome:
        ground = self._ground
        lost = 0
        for path, count in self._edits.items():
            file = ground.home / f"count-{ground.paths.hot.index(path)}"
            lost += count - int(file.read_text())
        for path, lines in self._landed.items():
            text = ground.git("show", f"{ground.trunk_ref}:{path}").out.decode("utf-8", "replace").split("\n")
            lost += sum(line not in text for line in lines)
        tried = {(row.way, row.where) for row in self.tries}
        late = [
            Try(way.name, way.where, UNKNOWN, "there was no time for it")
            for way in self._ways
            if (way.name, way.where) not in tried
        ]
        checked = ground.git("coord", "fsck")
        landed = sum(map(len, self._landed.values()))
        return Outcome(
            self._seed, len(self.agents), seconds, ground.actions, (*self.tries, *late), tuple(self._holds),
            sum(self._edits.values()) + landed, lost, landed, tuple(self._refused), checked.words if checked.code else "", tuple(ground.mirror.notes),
            f"{ground.trunk} at {ground.mirror.project.commit[:12]}", length,
        )  # fmt: skip
