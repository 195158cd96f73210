"""The queue of writers on one machine: a flock, first come first served.

It serves fairness and throughput and is not needed for correctness: a process that waited too long behind another one (a stopped
one, for example) goes on without the lock, and the compare-and-swap decides. A process keeps waiting as long as the queue moves:
on a busy machine, processes that leave it would only lose races to each other.
"""

from __future__ import annotations

from _signal import ITIMER_REAL, SIGALRM, setitimer, signal
from fcntl import LOCK_EX, LOCK_NB, flock
from time import monotonic, sleep

from gitcoord.base.errors import StoreError
from gitcoord.base.names import printable
from gitcoord.git.files import close, fstat, open_to_change, read_file, utime, write_file
from gitcoord.git.host import process_state, start_time
from gitcoord.startup.annotations import Callable


class _Expired(Exception):
    pass


_LONGEST_WAIT = 120.0  # seconds in all, in a queue that moves
# Seconds until the user is told which process has the lock; a stopped one is not waited for any longer.
_NOTIFY_AFTER = 2.0
_POLL_INTERVAL = 0.05


def _no_longer() -> float:
    return 0.0


class QueuedLock:
    """The lock as a context. It waits at most `seconds` for one process, 0 for not at all; `acquired`: this process has the lock.

    `longer` gives the additional seconds to wait for a process that is not stopped. A process that gets the lock after a wait sets the
    time of the file, so that others see the queue move. `tell` reports which process has the lock. With it, the wait for a stopped
    process is shorter, and there is none for a stopped process that is noted beside the file, because an earlier wait was in vain.
    """

    def __init__(
        self,
        path: str,
        seconds: float,
        *,
        longer: Callable[[], float] = _no_longer,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._path = path
        self._seconds = seconds
        self._longer = longer
        self._tell = tell
        self._fd = -1
        self.acquired = False

    def __enter__(self) -> QueuedLock:
        try:
            self._fd = open_to_change(self._path)
        except OSError as error:
            raise StoreError(f"cannot open {self._path}: {error.strerror}") from None
        try:
            flock(self._fd, LOCK_EX | LOCK_NB)
            self.acquired = True
        except BlockingIOError:
            if self._seconds:
                self._wait()
        return self

    def _wait(self) -> None:
        pid = self._holder()
        if self._tell is not None and is_stopped(pid) and read_file(f"{self._path}.stopped") == _identity_of(pid):
            self._give_up(pid)
            return
        waiting = True

        def expired(number: int, frame: object) -> None:
            if waiting:
                raise _Expired

        try:
            before = signal(SIGALRM, expired)
        except ValueError:  # not the main thread: it can set no alarm
            self._wait_in_queue(self._poll)
            return
        # An alarm that the caller has set is restored after the wait, with the time that it had left.
        left, every = setitimer(ITIMER_REAL, 0)
        began = monotonic()

        def lock_until_alarm(seconds: float) -> None:
            if left and monotonic() - began >= left:
                raise _Expired
            setitimer(ITIMER_REAL, max(min(seconds, left - (monotonic() - began) if left else seconds), 0.001))
            try:
                flock(self._fd, LOCK_EX)
                self.acquired = True
            except _Expired:
                pass

        try:
            self._wait_in_queue(lock_until_alarm)
        except _Expired:
            pass
        finally:
            waiting = False
            setitimer(ITIMER_REAL, 0)
            signal(SIGALRM, before)
            if left:
                setitimer(ITIMER_REAL, max(left - (monotonic() - began), 0.001), every)

    def _poll(self, seconds: float) -> None:
        end = monotonic() + seconds
        while monotonic() < end:
            sleep(_POLL_INTERVAL)
            try:
                flock(self._fd, LOCK_EX | LOCK_NB)
                self.acquired = True
                return
            except BlockingIOError:
                pass

    def _wait_in_queue(self, attempt: Callable[[float], None]) -> None:
        """Wait until this process has the lock, or one process has kept it for too long."""
        began = since = monotonic()
        turn, told = self._turn(), False
        while True:
            waited = monotonic() - since
            pid = self._holder() if waited >= min(_NOTIFY_AFTER, self._seconds) else 0
            most = self._seconds
            if waited >= most and self._longer is not _no_longer:
                most = max(most, self._longer() + waited)
            hopeless = self._tell is not None and is_stopped(pid)
            if waited >= most or hopeless or monotonic() - began >= _LONGEST_WAIT:
                self._give_up(pid)
                return
            if waited >= _NOTIFY_AFTER and not told and self._tell is not None:
                told = True
                self._tell(f"waiting behind {described(pid)}")
            attempt(min((_NOTIFY_AFTER if waited < _NOTIFY_AFTER < self._seconds else most) - waited, self._seconds))
            if self.acquired:
                utime(self._fd)
                return
            if turn != self._turn():
                turn, since = self._turn(), monotonic()

    def _give_up(self, pid: int) -> None:
        if self._tell is None:
            return
        if is_stopped(pid):
            self._tell(f"note: going on past {described(pid)}")
            self._tell(f"hint: let it go on: kill -CONT {pid}")
            try:
                write_file(f"{self._path}.stopped", _identity_of(pid))
            except OSError:
                pass  # the next process waits too
        else:
            self._tell(f"note: going on past {described(pid)}, which kept the lock")

    def _turn(self) -> int:
        return fstat(self._fd).st_mtime_ns

    def _holder(self) -> int:
        """The process that has the lock; 0 where it is unknown."""
        inode = f":{fstat(self._fd).st_ino} ".encode()
        for row in read_file("/proc/locks", 1 << 24).split(b"\n"):
            words = row.split()
            if inode in row and b"->" not in words and b"FLOCK" in words and words[4].isdigit():
                return int(words[4])
        return 0

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:  # else the queue could not be opened
            close(self._fd)
        self._fd = -1
        self.acquired = False


def is_stopped(pid: int) -> bool:
    """Return whether the process is stopped by SIGSTOP, Ctrl-Z or a debugger."""
    return bool(pid) and process_state(pid) in ("T", "t")


def described(pid: int) -> str:
    """A process in words: its number, its command, and whether it is stopped."""
    if not pid:
        return "another command in this repository"
    words = read_file(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")[:-1]
    own = [n for n, word in enumerate(words) if word.rpartition("/")[2] in ("git-claim", "git-coord", "git-handoff")]
    names = [words[own[0]].rpartition("/")[2], *words[own[0] + 1 :]] if own else words[:1]
    what = f" ({printable(' '.join(names))[:80]})" if names else ""
    return f"process {pid}{what}{', which is stopped' if is_stopped(pid) else ''}"


def _identity_of(pid: int) -> bytes:
    return f"{pid} {start_time(pid)}".encode()
