"""Text that fits a terminal: columns that characters take, names shortened in the middle, tables that shrink where they are widest."""

from __future__ import annotations

from gitcoord.startup.annotations import Iterator

CUT = "…"
_READABLE = 16  # columns for a name or a text before others give, and for what stands between them
_NAME, _TEXT = 12, 6  # for a name and for a text at its end
_NARROWEST = 4  # no column gets narrower than this


def columns(text: str) -> int:
    """The columns that a terminal needs for a printable text: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def padded(text: str, width: int) -> str:
    return text + " " * max(0, width - columns(text))


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns, its end left out."""
    return text if columns(text) <= width else _start(text, width - 1) + CUT if width > 0 else ""


def shortened(text: str, width: int) -> str:
    """The text in at most `width` columns, its middle left out: the end of a path says most, the beginning where it is."""
    if columns(text) <= width:
        return text
    if width < 3:
        return cut(text, width)
    end = _start(text[::-1], (width - 1) * 2 // 3)[::-1]
    return _start(text, width - 1 - columns(end)) + CUT + end


def _start(text: str, width: int) -> str:
    """As many characters from the beginning as fit."""
    used = 0
    for index, char in enumerate(text):
        used += columns(char)
        if used > width:
            return text[:index]
    return text


def wrapped(text: str, width: int, *, whole: bool = False) -> list[str]:
    """The text in lines of at most `width` columns, broken at blanks; a word that is longer is shortened, or broken (`whole`). 0: one
    line."""
    if not width or columns(text) <= width:
        return [text]
    lines = [""]
    for word in text.split(" "):
        while whole and columns(word) > width > 1:
            first = _start(word, width)
            lines, word = [*lines, first], word[len(first) :]
        word = shortened(word, width)
        if lines[-1] and columns(lines[-1]) + 1 + columns(word) > width:
            lines.append(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return lines if lines[0] else lines[1:]


def fitted(rows: list[list[str]], room: int) -> list[list[str]]:
    """Printable cells, padded to the width of their columns; within `room`, where it is not 0: what is longer is shortened, names (the
    first column) in the middle, other cells at the end. Where columns would get too narrow to read, the last ones are left out."""
    widths = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))]
    if room:
        text = len(widths) - 1  # the last column is free text, which may be short
        while len(widths) > 2 and min(widths[0], _NAME) + sum(_least(widths, text)) > room:
            widths.pop()
        widths = shrunk(widths, room)
        rows = [
            [(cut if at else shortened)(cell, width) for at, (cell, width) in enumerate(zip(row, widths))]
            for row in rows
        ]
    return [[padded(cell, width) for cell, width in zip(row, widths)] for row in rows]


def _least(widths: list[int], text: int) -> Iterator[int]:
    """The columns that each but the first needs at least, with the blanks before it."""
    for at, width in enumerate(widths[1:], 1):
        yield min(width, _TEXT if at == text else _READABLE) + 2


def shrunk(widths: list[int], room: int) -> list[int]:
    """The widths of columns that fit into `room` with two blanks between them. Names (the first column) and free text (the last one) give
    first; the others only where that is not enough."""
    room -= 2 * (len(widths) - 1)
    last = len(widths) - 1
    found = list(widths)
    for giving, least in (
        ({0, last}, _READABLE), (set(range(1, last)), _READABLE), ({0}, _NAME), ({last}, _TEXT), (set(range(last + 1)), _NARROWEST),
    ):  # fmt: skip
        found = _leveled(found, giving, room, least)
    return found


def _leveled(widths: list[int], giving: set[int], room: int, least: int) -> list[int]:
    """Take from the widest of the columns that give, one by one, until all fit or none of them is wider than `least`."""
    while giving and sum(widths) > room:
        widest = max(giving, key=lambda at: widths[at])
        if widths[widest] <= least:
            break
        widths[widest] -= 1
    return widths
