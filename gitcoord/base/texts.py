"""Checks of texts by people and agents before they are stored.

Refused: text that could mislead a later reader or upset a terminal (control and escape characters, marks that reorder text,
characters that cannot be encoded) and what is too long to be read. Everything else is kept as it is, and shown line by
line through `names.printable`.
"""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote

LINE, PROSE = 200, 65_536
_JOINER = "\u200d"  # part of many an emoji


def one_line(text: str, what: str, limit: int = LINE, *, empty: bool = False) -> str:
    """One line of text without blanks around it."""
    text = text.strip(" ")
    _check(text, what, limit, "", empty)
    return text


def prose(text: str, what: str, limit: int = PROSE, *, empty: bool = False) -> str:
    """Text of any number of lines, each without blanks at its end, and none empty at either end."""
    if len(text) <= 2 * limit:
        text = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n")).strip("\n")
    _check(text, what, limit, "\n\t", empty)
    return text


def _check(text: str, what: str, limit: int, also: str, empty: bool) -> None:
    if not text and not empty:
        raise UsageError(f"{what} is empty")
    if len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit:
        raise UsageError(f"{what} is longer than {limit} bytes")
    if text.isprintable():
        return
    bad = next((char for char in text if not char.isprintable() and char not in also and char != _JOINER), "")
    if bad:
        raise UsageError(f"{what} holds a character that may not be kept: {quote(bad)}")
