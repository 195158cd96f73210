"""Virtual time: callbacks in order of their time, and processes that run as generators between them."""

from __future__ import annotations

from heapq import heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    # A process yields milliseconds to sleep, or a request; it is sent the answer (None: nothing came in time).
    Steps = Generator["int | Request", Any, None]
    Run = Generator["int | Request", Any, Any]


class Request:
    """A request that a process waits for; `send` starts it and calls back with the answer."""

    __slots__ = ("send",)

    def __init__(self, send: Callable[[Callable[[Any], None]], None]) -> None:
        self.send = send


class Scheduler:
    """The only clock of a simulation, in milliseconds. Callbacks at the same time run in the order in which they were added."""

    def __init__(self) -> None:
        self.now = 0
        self._added = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []

    def after(self, delay: int, call: Callable[[], None]) -> None:
        self._added += 1
        heappush(self._heap, (self.now + max(0, delay), self._added, call))

    def run(self, until: int) -> None:
        """Run all callbacks up to this time. A callback may add others."""
        while self._heap and self._heap[0][0] <= until:
            self.now, _, call = heappop(self._heap)
            call()
        self.now = max(self.now, until)

    @property
    def is_idle(self) -> bool:
        return not self._heap


class Process:
    """A running generator. `disturb` is asked before each step: 0 goes on, a positive number pauses it, -1 kills it."""

    def __init__(
        self, scheduler: Scheduler, steps: Steps, disturb: Callable[[], int], ended: Callable[[bool], None]
    ) -> None:
        self._scheduler = scheduler
        self._steps = steps
        self._disturb = disturb
        self._ended = ended
        self._waits = 0  # a number for each wait, so that a late answer to an earlier one is ignored
        self.alive = True
        scheduler.after(0, lambda: self._resume(0, None))

    def wake(self) -> None:
        """End the present sleep early."""
        number = self._waits
        self._scheduler.after(1, lambda: self._resume(number, None))

    def kill(self) -> None:
        """Kill the process between two steps, without a message."""
        self.alive = False
        self._steps.close()
        self._ended(False)

    def _resume(self, number: int, answer: Any) -> None:
        if not self.alive or number != self._waits:
            return
        disturbance = self._disturb()
        if disturbance < 0:
            self.kill()
        elif disturbance:
            self._waits += 1
            paused = self._waits
            self._scheduler.after(disturbance, lambda: self._go_on(paused, answer))
        else:
            self._go_on(number, answer)

    def _go_on(self, number: int, answer: Any) -> None:
        if not self.alive or number != self._waits:
            return
        self._waits += 1
        mine = self._waits
        try:
            wanted = self._steps.send(answer)
        except StopIteration:
            self.alive = False
            self._ended(True)
            return
        if isinstance(wanted, Request):
            wanted.send(lambda found: self._resume(mine, found))
        else:
            self._scheduler.after(wanted, lambda: self._resume(mine, None))
