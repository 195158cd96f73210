"""Machines with clocks of their own, which the test moves: libfaketime for the readings, a time namespace for the boot.

An hour passes when the test says so; nobody waits for it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.server.process import program

_PLACES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime")
LIBRARY = next((f"{place}/libfaketime.so.1" for place in _PLACES if Path(f"{place}/libfaketime.so.1").exists()), "")


def missing() -> str:
    """The reason why such machines cannot be made here; '' if they can."""
    if not LIBRARY:
        return "libfaketime is not installed"
    test = [program("unshare") or "unshare", "--time", "--fork", "true"]
    try:
        done = subprocess.run(test, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"no time namespaces: {error}"
    return f"no time namespaces: {done.stderr.strip()}" if done.returncode else ""


class Clock:
    """Readings `rate` times as fast as those of the world; `env` makes a process see them."""

    def __init__(self, file: Path, ahead: int = 0, rate: int = 1) -> None:
        self._file = file
        self._ahead = ahead
        self._rate = rate
        self.env = {"LD_PRELOAD": LIBRARY, "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1"}
        self.pass_to(0)

    def pass_to(self, seconds: int) -> None:
        """Let so much time have passed since the beginning."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{self._ahead + self._rate * seconds:+d}\n")
        new.rename(self._file)


class World:
    """All clocks, and how late it is."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._clocks: list[Clock] = []
        self._now = 0

    def clock(self, ahead: int = 0, rate: int = 1) -> Clock:
        self._clocks.append(Clock(self._place / f"clock{len(self._clocks)}", ahead, rate))
        self._clocks[-1].pass_to(self._now)
        return self._clocks[-1]

    def wait(self, seconds: int) -> None:
        self._now += seconds
        for clock in self._clocks:
            clock.pass_to(self._now)


@contextmanager
def another_boot() -> Iterator[list[str]]:
    """The words before a command that let it run on a machine that was started at another time."""
    holder = subprocess.Popen(
        ["unshare", "--time", "--fork", "--kill-child", "sh", "-c", "echo $$; exec cat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        yield ["nsenter", "--time", "-t", holder.stdout.readline().strip(), "--"]
    finally:
        holder.communicate("")
