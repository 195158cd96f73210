"""A check: one question about this clone or this project, with its answer, the evidence, and the command that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gitcoord.base.errors import GitcoordError

OK, BAD, UNKNOWN, ADVICE = "ok", "bad", "unknown", "advice"
LOW, MEDIUM, HIGH, CRITICAL = "low", "medium", "high", "critical"
SEVERITIES = (LOW, MEDIUM, HIGH, CRITICAL)
_SHOWN = 3


class Check(NamedTuple):
    """`state`: OK, BAD (a rule says no), UNKNOWN (could not be judged) or ADVICE (works, could be better)."""

    id: str
    state: str
    words: str  # the evidence
    help: str = ""  # the next command
    severity: str = ""  # of an audit's item

    def to_json(self) -> dict[str, str]:
        row = {"id": self.id, "state": self.state, "message": self.words, "help": self.help}
        return {**row, "severity": self.severity} if self.severity else row


def ok(id: str, words: str) -> Check:
    return Check(id, OK, words)


def some(names: Iterable[str]) -> str:
    """The first of these names, and how many more there are."""
    all_ = list(names)
    return ", ".join(all_[:_SHOWN]) + (f" and {len(all_) - _SHOWN} more" if len(all_) > _SHOWN else "")


def ask(id: str, look: Callable[[], Check]) -> Check:
    """The answer of `look`; UNKNOWN where what it needs cannot be read."""
    try:
        return look()
    except GitcoordError as error:
        return Check(id, UNKNOWN, error.message, error.hints[0] if error.hints else "")


def exit_code(checks: Iterable[Check]) -> int:
    """0: nothing to do; 1: something is wrong; 4: nothing is known to be wrong, but something could not be judged."""
    states = {check.state for check in checks}
    return 1 if BAD in states else 4 if UNKNOWN in states else 0


def at_least(checks: Iterable[Check], severity: str) -> list[Check]:
    """The checks of this severity or a higher one."""
    lowest = SEVERITIES.index(severity)
    return [check for check in checks if SEVERITIES.index(check.severity) >= lowest]
