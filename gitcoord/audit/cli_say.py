"""Checks as lines at a terminal."""

from __future__ import annotations

from gitcoord.audit.model import ADVICE, BAD, OK, UNKNOWN, Check
from gitcoord.base.names import printable
from gitcoord.terminal.call import Call

MARKS = {OK: ("ok", "green"), BAD: ("BAD", "red"), UNKNOWN: ("?", "yellow"), ADVICE: ("could be better", "yellow")}


def say_checks(call: Call, checks: list[Check]) -> None:
    for check in checks:
        mark, colour = MARKS[check.state]
        call.screen.say(f"  {call.screen.paint(mark, colour)}  {check.id}: {printable(check.words)}")
        if check.help and check.state != OK:
            call.screen.say(f"      {printable(check.help)}")
