"""The queue of writers on one machine: a flock, first come first served.

It is there for fairness and throughput only. Not needed for correctness: whoever waited too long (behind a stopped
process, say) goes on without it, and the compare-and-swap decides.
"""

import posix
from _signal import ITIMER_REAL, SIGALRM, setitimer, signal
from fcntl import LOCK_EX, LOCK_NB, flock

from gitcoord.errors import StoreError


class _Expired(Exception):
    pass


class Queue:
    """A place in the queue, as a context. Waits at most `seconds`; `held` tells whether it was had."""

    def __init__(self, path: str, seconds: float) -> None:
        self._path = path
        self._seconds = seconds
        self._fd = -1
        self.held = False

    def __enter__(self) -> "Queue":
        flags = posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC
        try:
            self._fd = posix.open(self._path, flags, 0o666)
        except OSError as error:
            raise StoreError(f"cannot open {self._path}: {error.strerror}") from None
        try:
            flock(self._fd, LOCK_EX | LOCK_NB)
            self.held = True
        except BlockingIOError:
            self._wait()
        return self

    def _wait(self) -> None:
        waiting = True

        def expired(number: int, frame: object) -> None:
            if waiting:
                raise _Expired

        try:
            before = signal(SIGALRM, expired)
        except ValueError:
            # Not the main thread: no alarm to be had, so wait without a bound.
            flock(self._fd, LOCK_EX)
            self.held = True
            return
        # Whoever has a deadline keeps it: it goes on after the wait with what was left of it.
        left, every = setitimer(ITIMER_REAL, self._seconds)
        patience = min(self._seconds, left) if left else self._seconds
        setitimer(ITIMER_REAL, patience)
        try:
            flock(self._fd, LOCK_EX)
            self.held = True
        except _Expired:
            pass
        finally:
            waiting = False
            spent = patience - setitimer(ITIMER_REAL, 0)[0]
            signal(SIGALRM, before)
            if left:
                setitimer(ITIMER_REAL, max(left - spent, 0.001), every)

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            posix.close(self._fd)
            self._fd = -1
            self.held = False
