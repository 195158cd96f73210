"""Several git processes within one limit of time, a few of them at once."""

from __future__ import annotations

from _signal import SIGKILL
from time import monotonic

from gitcoord.git.long_process import run_all_bounded
from gitcoord.git.process import Answer, Env

_AT_ONCE = 4
_MOST = 1 << 24  # bytes of one output


class TimeLimit:
    """The seconds that one piece of work has, from now on."""

    def __init__(self, seconds: float) -> None:
        self._began = monotonic()
        self._seconds = seconds

    @property
    def spent(self) -> float:
        return monotonic() - self._began

    @property
    def left(self) -> float:
        return max(0.0, self._seconds - self.spent)


def run_several(argvs: list[list[str]], env: Env, limit: TimeLimit) -> list[Answer]:
    """The answers in this order. The code is negative for one that was ended or not begun since the time was over, and for one whose
    output is too long to be whole."""
    answers: list[Answer] = []
    while len(answers) < len(argvs):
        some = argvs[len(answers) : len(answers) + _AT_ONCE]
        if not limit.left:
            answers += [Answer(-SIGKILL, b"", "the time was over")] * len(some)
            continue
        found = run_all_bounded(some, env, limit.left, _MOST)
        answers += [row if len(row.out) < _MOST else Answer(-SIGKILL, b"", "it is too much") for row in found]
    return answers
