"""A machine: its clock, its copy of the authority's refs, and its link to the authority."""

from __future__ import annotations

from gitcoord.simulation.scheduler import Request
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from typing import Any

    from gitcoord.ledger.sessions import Heartbeat, Seen
    from gitcoord.ledger.state import State
    from gitcoord.simulation.scheduler import Scheduler

EPOCH = 1_900_000_000  # the wall clock's second at the beginning of a simulation
TIMEOUT = 30_000


class View(NamedTuple):
    """The authority's refs as they were at one moment: the ledger's head, its state, and the heartbeats."""

    head: str
    state: State
    beats: dict[str, Heartbeat]


class Faults(NamedTuple):
    """The rates of faults: shares of all messages or steps."""

    lost: float = 0.0  # messages that never arrive, requests and answers alike
    doubled: float = 0.0  # requests that arrive twice
    pause: float = 0.0  # steps before which a process is stopped for a while
    death: float = 0.0  # steps before which a process is killed
    delay: int = 40  # milliseconds that a message takes at most; a few take fifty times as long


class Machine:
    """One machine. `rate` and `offset` make its clock wrong; `is_remote`: the authority is reached over a network."""

    def __init__(self, name: str, scheduler: Scheduler, chance: Random, view: View, *, is_remote: bool) -> None:
        self.name = name
        self.view = view
        self.is_remote = is_remote
        self.rate = 1.0
        self.offset = 0  # of the wall clock, in seconds
        self.sightings: dict[str, Seen] = {}
        self.grants: dict[int, int] = {}  # when a grant that waits for its confirmation was first seen here
        self.cut_until = 0  # the link is down up to this time
        self.highest = view.state.seq  # the highest number of an event that was ever seen here
        self.is_behind = False  # the authority has lost events that were seen here
        self.faults = Faults()
        self._scheduler = scheduler
        self._chance = chance
        self._asked = 0  # of the look that made the view

    def mono(self) -> int:
        return int(self._scheduler.now * self.rate) + 1_000_000

    def wall(self) -> int:
        return EPOCH + self._scheduler.now // 1000 + self.offset

    # --- the link

    def request(self, serve: Callable[[], Any]) -> Request:
        """Ask the authority: `serve` runs there once, twice or never. The answer is None if none came in time."""
        return Request(lambda answer: self._send(serve, answer))

    def _send(self, serve: Callable[[], Any], answer: Callable[[Any], None]) -> None:
        after = self._scheduler.after
        if not self.is_remote:
            after(self._chance.randint(1, 3), lambda: answer(serve()))
            return
        after(TIMEOUT, lambda: answer(None))
        if not self._passes():
            return

        def arrive() -> None:
            found = serve()
            if self._passes():
                after(self._delay(), lambda: answer(found))

        after(self._delay(), arrive)
        if self._chance.random() < self.faults.doubled:
            after(self._delay() * 2, serve)

    def _passes(self) -> bool:
        return self._scheduler.now >= self.cut_until and self._chance.random() >= self.faults.lost

    def _delay(self) -> int:
        slow = 50 if self._chance.random() < 0.02 else 1
        return self._chance.randint(1, self.faults.delay) * slow

    # --- the copy

    def look(self, view: Callable[[], View], contains: Callable[[str, str], bool]) -> Request:
        """Fetch the authority's refs into this machine's copy. `contains(a, b)`: whether `a` has `b` as an ancestor."""
        begun = self._scheduler.now

        def fetch() -> tuple[View, int]:
            return view(), begun

        def send(answer: Callable[[Any], None]) -> None:
            def keep(found: tuple[View, int] | None) -> None:
                if found is not None:
                    self._keep(*found, contains)
                answer(found)

            self._send(fetch, keep)

        return Request(send)

    def _keep(self, view: View, begun: int, contains: Callable[[str, str], bool]) -> None:
        if begun < self._asked:
            return  # a look that began later has been answered already
        self._asked = begun
        self.is_behind = not contains(view.head, self.view.head)
        if not self.is_behind:
            self.keep(view)

    def keep(self, view: View) -> None:
        """Keep this view as the authority's newest known history."""
        self.view = view
        self.highest = max(self.highest, view.state.seq)
