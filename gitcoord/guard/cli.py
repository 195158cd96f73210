"""`git coord guard` with options or from a program; without, the entry calls the hook itself."""

from __future__ import annotations

from gitcoord.guard.hook import main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.terminal.call import Call
    from gitcoord.terminal.parser import Values


def guard(call: Call, values: Values, words: list[str]) -> int:
    return main([])
