"""`git coord version`; `--version` of all three commands prints the same."""

from __future__ import annotations

from gitcoord import __version__
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


def version(call: Call, values: Values, words: list[str]) -> int:
    call.screen.answer({"version": __version__})
    call.screen.say(f"gitcoord {__version__}")
    return 0
