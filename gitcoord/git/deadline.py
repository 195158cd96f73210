"""How long a command waits for a remote: one bound for all that it asks there, and a word when it takes long.

Only waiting for a remote that does not answer is counted: each answer begins the time anew, so whoever loses races to others may
try for longer, and much data may take its time.
"""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

WORD = 2.0  # seconds: then people are told what is waited for
_AT_FIRST = 0.5  # seconds: less than any bound, so it need not be known yet
_GOES_ON = 5.0  # seconds: what is asked so soon after the time ran out belongs to the same command
_TO_FIND_OUT = 5.0  # seconds: kept for a look at what came of a push that was not answered


class Patience:
    """The time that a command has for one remote. The outermost `asking` sets it; what is asked within shares it."""

    def __init__(self, name: str, limit: Callable[[bool], float]) -> None:
        """`limit` gives the seconds for looking (False) or changing (True); it is asked for only where it takes long."""
        self.tell: Callable[[str], None] = _nobody
        self.most = 0.0  # where a caller has a deadline of its own, no more than that; 0: it has none
        self._name = name
        self._limit = limit
        self._changes = False
        self._depth = 0
        self._spent = 0.0  # in waiting, since the last answer
        self._since: float | None = None  # it is being waited for
        self._gave_up: float | None = None
        self._told = False

    def asking(self, *, changes: bool) -> Patience:
        """As a context, around all that is asked there for one purpose."""
        if self._depth:
            return self
        now = monotonic()
        recent = self._gave_up is not None and now - self._gave_up < _GOES_ON
        # A change always asks. A look that comes right after one in vain does not.
        if not recent or (changes and self._limit(True) <= self._spent):
            self._spent, self._told = 0.0, False
        self._changes = changes
        return self

    def __enter__(self) -> Patience:
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def counting(self) -> _Counting:
        """As a context, around each wait. What else a command does in between does not count."""
        return _Counting(self)

    def begin(self) -> None:
        self._since = monotonic()

    def end(self) -> None:
        self._spent, self._since = self._passed(), None

    def _passed(self) -> float:
        return self._spent + (monotonic() - self._since if self._since is not None else 0.0)

    def heard(self) -> None:
        """The remote has answered, or others were waited for."""
        self.goes_on()
        self._gave_up, self._told = None, False

    def goes_on(self) -> None:
        """The answer is under way."""
        self._spent = 0.0
        if self._since is not None:
            self._since = monotonic()

    def gave_up(self) -> None:
        """The time was waited for to its end."""
        self._gave_up = monotonic()

    @property
    def seconds(self) -> float:
        limit = self._limit(self._changes)
        return min(limit, self.most) if self.most else limit

    @property
    def is_over(self) -> bool:
        return self._passed() > _AT_FIRST and self.left() <= 0

    @property
    def words(self) -> str:
        return f"no answer within {self.seconds:.0f} seconds"

    def left(self, *, sends: bool = False) -> float:
        """How long to wait from now on. Whoever `sends` something leaves time to find out what came of it."""
        kept = min(_TO_FIND_OUT, self.seconds / 3) if sends else 0.0
        return self.seconds - kept - self._passed()

    def next_wait(self, *, sends: bool) -> float:
        """How long to wait before asking here again; 0 when the time is over. Tells people what is waited for."""
        passed = self._passed()
        if passed < _AT_FIRST:
            return _AT_FIRST - passed
        if not self._told and passed >= WORD:
            self._told = True
            self.tell(f"waiting for '{self._name}', which has not answered yet (at most {self.seconds:.0f} seconds)")
        left = max(0.0, self.left(sends=sends))
        return left if self._told else min(left, WORD - passed)


class _Counting:
    def __init__(self, patience: Patience) -> None:
        self._patience = patience

    def __enter__(self) -> None:
        self._patience.begin()

    def __exit__(self, *_: object) -> None:
        self._patience.end()


def _nobody(words: str) -> None:
    """The default listener: it drops the words."""


def fixed(seconds: float) -> Callable[[bool], float]:
    """The same time for looking and changing."""
    return lambda changes: seconds
