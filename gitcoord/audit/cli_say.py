"""Checks as lines at a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from gitcoord.audit.model import ADVICE, BAD, OK, UNKNOWN, Check
from gitcoord.base.names import printable
from gitcoord.terminal.call import Call
from gitcoord.terminal.fit import wrapped

MARKS = {OK: ("ok", "green"), BAD: ("BAD", "red"), UNKNOWN: ("?", "yellow"), ADVICE: ("tip", "yellow")}
_MARK = 3  # columns
_INDENT = " " * (_MARK + 4)


def say_checks(call: Call, checks: Iterable[Check]) -> None:
    """A mark, the evidence, and below it the command that helps; wrapped at the width of the terminal."""
    screen, width = call.screen, call.screen.width()
    room = max(20, width - len(_INDENT)) if width else 0
    for check in checks:
        mark, colour = MARKS[check.state]
        first, *more = wrapped(f"{check.id}: {printable(check.words)}", room, whole=True)
        screen.say(f"  {screen.paint(mark.ljust(_MARK), colour)}  {first}", *(_INDENT + line for line in more))
        if check.help and check.state != OK:
            screen.say(_INDENT + screen.paint(printable(check.help), "cyan"))
