"""The verb `git coord drill`."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from random import SystemRandom
from threading import Event, Thread

from gitcoord.base.errors import UsageError
from gitcoord.cli.drill.crowd import Crowd
from gitcoord.cli.drill.ground import Ground
from gitcoord.cli.drill.mirror import read_mirror
from gitcoord.cli.drill.model import MISSED, lines, markdown, to_json
from gitcoord.terminal.call import Call, number
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import put

LEAST, MOST = 10, 100
_MINUTES = 2


def drill(call: Call, values: Values, words: list[str]) -> int:
    agents = number(values, "agents", 12)
    minutes = number(values, "minutes", _MINUTES)
    if not LEAST <= agents <= MOST:
        raise UsageError(f"{agents} agents are not {LEAST} to {MOST}")
    if not 1 <= minutes <= 24 * 60:
        raise UsageError("--minutes is 1 or more", hints=("for a first look: git coord drill --quick",))
    seed = number(values, "seed", 0) or SystemRandom().randrange(1, 1_000_000)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gitcoord-drill-", ignore_cleanup_errors=True) as directory:
        ground = Ground(Path(directory), read_mirror(call.ctx, os.environ), seed, began + 60 * minutes)
        crowd = Crowd(ground, agents, seed)
        with _Progress(crowd, ground):
            try:
                ground.build(crowd.agents)
                crowd.run(rounds=1, again=not values.get("quick"))
                length = " --quick" if values.get("quick") else f" --minutes {minutes}" if minutes != _MINUTES else ""
                outcome = crowd.outcome(time.monotonic() - began, length)
            finally:
                ground.stop()
    result, code = to_json(outcome), outcome.exit_code
    call.screen.answer(result, ok=not code)
    if not call.screen.json:
        call.screen.say(*(markdown(result) if values.get("markdown") else lines(result)))
    return code


class _Progress:
    """A line about the drill at a terminal, renewed every second."""

    def __init__(self, crowd: Crowd, ground: Ground) -> None:
        self._crowd, self._ground = crowd, ground
        self._over = Event()
        self._thread = Thread(target=self._show, daemon=True)

    def __enter__(self) -> None:
        if os.isatty(2):
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
            put(2, "\r\x1b[K")

    def _show(self) -> None:
        while not self._over.wait(1):
            tries = list(self._crowd.tries)
            missed = sum(row.state == MISSED for row in tries)
            left = max(0, int(self._ground.deadline - time.monotonic()))
            put(
                2,
                f"\r\x1b[K{self._ground.actions} actions, {len(tries)} bypasses tried, {missed} missed; at most {left} s more",
            )
