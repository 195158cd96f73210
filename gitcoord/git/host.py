"""This machine: clocks, boot, chance, Ctrl-C. The one place where the everyday verbs read a clock."""

from __future__ import annotations

import posix
import time
from _signal import SIG_BLOCK, SIG_UNBLOCK, SIGINT, pthread_sigmask

from gitcoord.git.files import read_file

# Linux's CLOCK_MONOTONIC does not count sleep; on macOS that is CLOCK_UPTIME_RAW.
_CLOCK = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)


class Host:
    """`one_shot`: this process exits after one result, so a grant that was made is printed even if Ctrl-C came meanwhile."""

    def __init__(self, *, one_shot: bool = False) -> None:
        self.boot = _boot()
        self.one_shot = one_shot
        self._deferring = False

    def wall(self) -> int:
        return int(time.time())

    def mono(self) -> int:
        return time.clock_gettime_ns(_CLOCK) // 1_000_000

    def random(self) -> str:
        return posix.urandom(16).hex()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds * (1 + posix.urandom(1)[0] / 128))

    def defer_interrupts(self, on: bool) -> None:
        """Only what was blocked here is unblocked here."""
        if on and not self._deferring:
            self._deferring = SIGINT not in pthread_sigmask(SIG_BLOCK, [SIGINT])
        elif not on and self._deferring:
            self._deferring = False
            pthread_sigmask(SIG_UNBLOCK, [SIGINT])


def _boot() -> str:
    """What the monotonic clock's readings belong to: the kernel's boot, and the time namespace that may shift them."""
    boot = read_file("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()
    if not boot:
        return _boot_elsewhere()
    try:
        return f"{boot}/{posix.readlink('/proc/self/ns/time').strip('time:[]')}"
    except OSError:
        return boot


def _boot_elsewhere() -> str:
    from gitcoord.base.errors import StoreError
    from gitcoord.git.process import run

    for name in ("kern.bootsessionuuid", "kern.boottime"):
        try:
            code, out, _ = run(["sysctl", "-n", name], dict(posix.environ))
        except StoreError:
            continue
        if not code and out.strip():
            return "".join(c for c in out.decode("ascii", "replace").strip() if c.isalnum() or c == "-")
    return "unknown"
