"""The time that a command waits for a remote: one bound for all requests of the command, and a message when it takes long.

Only the time in which the remote does not answer counts. Each answer starts the time anew: a command that loses races to others
may try for longer, and a large transfer may take its time.
"""

from __future__ import annotations

from time import monotonic

from gitcoord.startup.annotations import Callable

NOTIFY_AFTER = 2.0  # seconds until the user is told what the command waits for
_FREE = 0.5  # seconds: less than any limit, so the limit need not be read yet
_SAME_COMMAND = 5.0  # seconds: a request this soon after the deadline belongs to the same command
_TO_VERIFY = 5.0  # seconds that are kept for finding out what became of an unanswered push


class Deadline:
    """The time that a command has for one remote. The outermost `request` sets it; requests within it share it."""

    def __init__(self, name: str, limit: Callable[[bool], float]) -> None:
        """`limit` gives the seconds for reading (False) or changing (True). It is called only where the remote is slow."""
        self.tell: Callable[[str], None] = _drop
        self.cap = 0.0  # an upper bound where the caller has a deadline of its own; 0: none
        self._name = name
        self._limit = limit
        self._changes = False
        self._depth = 0
        self._spent = 0.0  # seconds of waiting since the last answer
        self._since: float | None = None  # when the current wait began
        self._expired: float | None = None
        self._told = False

    def request(self, *, changes: bool) -> Deadline:
        """A context around all that is asked there for one purpose."""
        if self._depth:
            return self
        now = monotonic()
        recent = self._expired is not None and now - self._expired < _SAME_COMMAND
        # A change always asks the remote. A read right after one that timed out does not.
        if not recent or (changes and self._limit(True) <= self._spent):
            self._spent, self._told = 0.0, False
        self._changes = changes
        return self

    def __enter__(self) -> Deadline:
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def waiting(self) -> _Waiting:
        """A context around each wait. Other work of the command does not count."""
        return _Waiting(self)

    def begin(self) -> None:
        self._since = monotonic()

    def end(self) -> None:
        self._spent, self._since = self._passed(), None

    def _passed(self) -> float:
        return self._spent + (monotonic() - self._since if self._since is not None else 0.0)

    def answered(self) -> None:
        """The remote has answered, or the wait was for another process."""
        self.progressed()
        self._expired, self._told = None, False

    def progressed(self) -> None:
        """A part of the answer has arrived."""
        self._spent = 0.0
        if self._since is not None:
            self._since = monotonic()

    def expired(self) -> None:
        """The whole time has passed without an answer."""
        self._expired = monotonic()

    @property
    def seconds(self) -> float:
        limit = self._limit(self._changes)
        return min(limit, self.cap) if self.cap else limit

    @property
    def is_over(self) -> bool:
        return self._passed() > _FREE and self.remaining() <= 0

    @property
    def message(self) -> str:
        return f"no answer within {self.seconds:.0f} seconds"

    def remaining(self, *, sends: bool = False) -> float:
        """Seconds that are left. `sends`: without the time that is needed to find out what became of a push."""
        kept = min(_TO_VERIFY, self.seconds / 3) if sends else 0.0
        return self.seconds - kept - self._passed()

    def next_wait(self, *, sends: bool) -> float:
        """Seconds to wait before the next call of this; 0 at the deadline. Tells the user what the command waits for."""
        passed = self._passed()
        if passed < _FREE:
            return _FREE - passed
        if not self._told and passed >= NOTIFY_AFTER:
            self._told = True
            self.tell(f"waiting for '{self._name}', which has not answered yet (at most {self.seconds:.0f} seconds)")
        left = max(0.0, self.remaining(sends=sends))
        return left if self._told else min(left, NOTIFY_AFTER - passed)


class _Waiting:
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def __enter__(self) -> None:
        self._deadline.begin()

    def __exit__(self, *_: object) -> None:
        self._deadline.end()


def _drop(message: str) -> None:
    """The default of `tell`: discard the words."""


def fixed(seconds: float) -> Callable[[bool], float]:
    """The same limit for reading and changing."""
    return lambda changes: seconds
