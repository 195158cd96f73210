"""The queue of writers on one machine: a flock, first come first served.

It is there for fairness and throughput only. Not needed for correctness: whoever waited too long behind one process (that was
stopped, say) goes on without it, and the compare-and-swap decides. As long as the queue moves it is waited in: on a busy machine
those who left it would only make each other lose.
"""

import posix
from _signal import ITIMER_REAL, SIGALRM, setitimer, signal
from fcntl import LOCK_EX, LOCK_NB, flock
from time import monotonic

from gitcoord.errors import StoreError


class _Expired(Exception):
    pass


_TURNS = 24


class Queue:
    """A place in the queue, as a context. Waits at most `seconds` for one process, not at all for 0; `held` tells whether it was
    had.

    Whoever gets its turn after a wait marks the file, by its time.
    """

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
            if self._seconds:
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
        began = monotonic()
        try:
            for _ in range(_TURNS):
                turn = self._turn()
                rest = left - (monotonic() - began) if left else self._seconds
                setitimer(ITIMER_REAL, max(min(self._seconds, rest), 0.001))
                try:
                    flock(self._fd, LOCK_EX)
                    self.held = True
                    posix.utime(self._fd)
                    break
                except _Expired:
                    if turn == self._turn() or left and monotonic() - began >= left:
                        break
        finally:
            waiting = False
            setitimer(ITIMER_REAL, 0)
            signal(SIGALRM, before)
            if left:
                setitimer(ITIMER_REAL, max(left - (monotonic() - began), 0.001), every)

    def _turn(self) -> int:
        return posix.fstat(self._fd).st_mtime_ns

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Before its end. Harmless to repeat."""
        if self._fd >= 0:
            posix.close(self._fd)
            self._fd = -1
            self.held = False
