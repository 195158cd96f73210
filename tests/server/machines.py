"""Other machines: network namespaces whose cable can be pulled. Needs root and a system that allows it.

Unlike a `Link`'s, the bytes of a pulled cable are neither refused nor reset: both ends just hear nothing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.server.process import Port, program


class Machine:
    """Reaches this machine at `host`, through a cable of its own; servers listen there with `serving(kind, host)`."""

    def __init__(self, number: int) -> None:
        self.name = f"gitcoord{number}"
        self._cable = f"gc{number}"
        # A network of four addresses of its own, in the range that is set aside for tests of devices.
        first = 4 * (number % 32768)
        self.host, self.address = (f"198.{18 + (n >> 16)}.{n >> 8 & 255}.{n & 255}" for n in (first + 1, first + 2))

    def wrap(self, words: list[str]) -> list[str]:
        """The command that runs there."""
        return [program("ip"), "netns", "exec", self.name, *words]

    def cut(self) -> None:
        _ip("link", "set", self._cable, "down")

    def mend(self) -> None:
        _ip("link", "set", self._cable, "up")
        # Whoever was asked in vain for its address meanwhile would count as unreachable for some seconds more.
        _ip("neigh", "flush", "dev", self._cable)
        _ip("-n", self.name, "neigh", "flush", "dev", "eth0")

    def make(self) -> None:
        _ip("netns", "add", self.name)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("addr", "add", f"{self.host}/30", "dev", self._cable)
        _ip("-n", self.name, "addr", "add", f"{self.address}/30", "dev", "eth0")
        _ip("-n", self.name, "link", "set", "lo", "up")
        _ip("-n", self.name, "link", "set", "eth0", "up")
        self.mend()

    def remove(self) -> None:
        # The cable at once: with the namespace it would only go when its last process has ended.
        for words in (("link", "del", self._cable), ("netns", "del", self.name)):
            subprocess.run([program("ip"), *words], capture_output=True, check=False)


@contextmanager
def machine() -> Iterator[Machine]:
    """One more machine. OSError, with the reason, where that is not allowed or not installed."""
    if not program("ip"):
        raise OSError("ip is not installed")
    number = Port()  # the kernel gives no port twice, so neither are name and addresses
    made = Machine(number.number)
    try:
        made.make()
        yield made
    finally:
        made.remove()
        number.close()


def _ip(*words: str) -> None:
    done = subprocess.run([program("ip"), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
