"""This machine and this process: clocks, boot, randomness, Ctrl-C, the environment, the terminal. Everyday verbs read a clock only here."""

from __future__ import annotations

import posix
import time
from _signal import (
    SIG_BLOCK,
    SIG_IGN,
    SIG_UNBLOCK,
    SIGHUP,
    SIGINT,
    SIGTERM,
    default_int_handler,
    getsignal,
    pthread_sigmask,
    signal,
)
from posix import _exit as _exit
from posix import chdir as chdir
from posix import getpid as getpid
from posix import getppid as getppid
from posix import isatty as isatty

from gitcoord.git.files import read_file, readlink

TICK_NS = 10_000_000  # of the kernel's start times: 100 a second, on every architecture of Linux
INTERRUPTS = (SIGINT, SIGTERM, SIGHUP)
# Linux's CLOCK_MONOTONIC does not count sleep; on macOS that is CLOCK_UPTIME_RAW.
_CLOCK = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)


class Host:
    """`one_shot`: this process exits after one result, so a grant that was made is printed even if Ctrl-C came meanwhile."""

    def __init__(self, *, one_shot: bool = False) -> None:
        self.boot = _boot()
        self.one_shot = one_shot
        self._deferred: list[int] = []

    def wall(self) -> int:
        return int(time.time())

    def mono(self) -> int:
        return time.clock_gettime_ns(_CLOCK) // 1_000_000

    def random(self) -> str:
        return posix.urandom(16).hex()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds * (1 + posix.urandom(1)[0] / 128))

    def defer_interrupts(self, on: bool) -> None:
        """Block interrupts while on: Ctrl-C, and SIGTERM and SIGHUP where they act as Ctrl-C. Only signals that were blocked here are unblocked here."""
        if on and not self._deferred:
            numbers = [n for n in INTERRUPTS if n == SIGINT or getsignal(n) in (default_int_handler, interrupt)]
            before = pthread_sigmask(SIG_BLOCK, numbers)
            self._deferred = [n for n in numbers if n not in before]
        elif not on and self._deferred:
            numbers, self._deferred = self._deferred, []
            pthread_sigmask(SIG_UNBLOCK, numbers)


def interrupt(number: int, frame: object) -> None:
    """A handler: interrupts, and ignores what comes during the clean-up. At a terminal `git` passes on to its command the Ctrl-C that the command got itself,
    and a shell the SIGHUP."""
    for each in INTERRUPTS:
        if getsignal(each) is interrupt:
            signal(each, SIG_IGN)
    raise KeyboardInterrupt


def _boot() -> str:
    """The kernel's boot and the time namespace: readings of the monotonic clock compare only within both."""
    boot = read_file("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()
    if not boot:
        return _boot_elsewhere()
    try:
        return f"{boot}/{readlink('/proc/self/ns/time').strip('time:[]')}"
    except OSError:
        return boot


def _boot_elsewhere() -> str:
    from gitcoord.base.errors import StoreError
    from gitcoord.git.process import environ, run

    for name in ("kern.bootsessionuuid", "kern.boottime"):
        try:
            code, out, _ = run(["sysctl", "-n", name], dict(environ))
        except StoreError:
            continue
        if not code and out.strip():
            return "".join(c for c in out.decode("ascii", "replace").strip() if c.isalnum() or c == "-")
    return "unknown"


# --- processes ----------------------------------------------------------------------------------------------------------

_DIGITS = 18  # more than any number of a process has


def own_namespace() -> str:
    """The pid namespace of this process; '' where that is unknown."""
    try:
        return readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def start_time(pid: int) -> str:
    """The start time of a process, in the kernel's ticks; '' where there is no such process or no /proc."""
    stat = read_file(f"/proc/{pid}/stat")
    return stat.rpartition(b") ")[2].split()[19].decode() if stat else ""


def started_at(pid: int) -> int:
    """The start time of a process, in nanoseconds of the file clock, within one TICK_NS; 0 if unknown."""
    ticks = start_time(pid)
    if not ticks or not hasattr(time, "CLOCK_BOOTTIME"):
        return 0
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + int(ticks) * TICK_NS


def own_process() -> str:
    """The number and start time of this process, as `runs_still` takes them."""
    pid = posix.getpid()
    return f"{pid} {start_time(pid)}"


def runs_still(pid: str, start: str) -> bool:
    """Return whether the process of this number and start time still exists and is no zombie."""
    if not pid.isdecimal() or len(pid) > _DIGITS:
        return False
    since = start_time(int(pid))
    if not since:
        return is_running(int(pid))  # some systems hide the processes of other users: a hidden one may be alive
    return since == start and process_state(int(pid)) not in ("Z", "X")


def process_state(pid: int) -> str:
    stat = read_file(f"/proc/{pid}/stat")
    return stat.rpartition(b") ")[2][:1].decode() if stat else ""


def stopped_process(pid: int) -> int:
    """The process of this number if it is stopped, or the one that started it, if that is; 0 if neither is."""
    for _ in range(2):
        stat = read_file(f"/proc/{pid}/stat")
        state, parent = stat.rpartition(b") ")[2].split()[:2] if stat else (b"", b"0")
        if state in (b"T", b"t"):
            return pid
        pid = int(parent)
    return 0


def is_running(pid: int) -> bool:
    """Return whether a process of this number exists, of any user."""
    try:
        posix.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def terminal_height(fd: int) -> int:
    """Lines of the terminal; 0 where that is unknown."""
    try:
        return posix.get_terminal_size(fd).lines
    except OSError:
        return 0


def terminal_width(fd: int) -> int:
    """Columns of the terminal; 80 where that is unknown."""
    try:
        return posix.get_terminal_size(fd).columns or 80
    except OSError:
        return 80
