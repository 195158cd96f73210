"""The screen of `git coord top` without a terminal: keys in, lines out."""

from __future__ import annotations

from gitcoord.base.names import printable
from gitcoord.startup.annotations import Iterator
from gitcoord.terminal.fit import columns, cut, wrapped
from gitcoord.terminal.screen import Row
from gitcoord.views.render import Line, plain, render

QUIT, DETAIL, WHY = "quit", "detail", "why"
UP, DOWN, PAGE_UP, PAGE_DOWN, ENTER, ESCAPE, ERASE = "up", "down", "page up", "page down", "enter", "escape", "erase"
_SEQUENCES = {
    "\x1b[A": UP, "\x1bOA": UP, "\x1b[B": DOWN, "\x1bOB": DOWN, "\x1b[5~": PAGE_UP, "\x1b[6~": PAGE_DOWN,
}  # fmt: skip
_SINGLE = {"\r": ENTER, "\n": ENTER, "\x1b": ESCAPE, "\x7f": ERASE, "\x08": ERASE, "\x04": "q"}
_ASKS = {ENTER: DETAIL, "w": WHY}
_MOVES = {"j": DOWN, "k": UP, " ": PAGE_DOWN}
_LONGEST = 100  # characters of a filter
_FAR = 1_000_000  # lines
_NARROW = 10  # columns in which no text is wrapped


def keys(text: str) -> Iterator[str]:
    """The keys in what a terminal sent; sequences that are not known are left out."""
    at = 0
    while at < len(text):
        if text[at] == "\x1b" and text[at + 1 : at + 2] in ("[", "O"):
            end = at + 2
            while end < len(text) and not (text[end].isalpha() or text[end] == "~"):
                end += 1
            key = _SEQUENCES.get(text[at : end + 1], "")
            at = end + 1
        else:
            key = _SINGLE.get(text[at], text[at])
            at += 1
        if key:
            yield key


class View:
    """The list or one story: the line that is selected, the filter, and the part that is in sight."""

    def __init__(self, model: Row) -> None:
        self.model = model
        self.filter = ""
        self.note = ""  # shown at the bottom
        self._typing = False
        self._subject = ("", "")  # what the selected line is about
        self._at = -1  # where the selected line was: several lines may be about one thing
        self._story: list[Line] | None = None
        self._top = 0
        self._size = (80, 24)
        self._from = 0  # the first line of a story in sight

    # --- keys

    def press(self, key: str) -> str:
        """Take a key; gives QUIT, DETAIL or WHY (the facts or the story of `subject` are wanted) or ''."""
        if self._typing:
            self._type(key)
            return ""
        if self._story is not None:
            return self._press_in_story(key)
        if key in ("q", ESCAPE) and not (key == ESCAPE and self.filter):
            return QUIT
        if key == ESCAPE:
            self.filter = ""
        elif key == "/":
            self._typing = True
        elif key in _ASKS:
            return _ASKS[key] if self._subject[1] else ""
        else:
            self._move(_MOVES.get(key, key))
        return ""

    def _type(self, key: str) -> None:
        if key == ENTER:
            self._typing = False
        elif key == ESCAPE:
            self._typing, self.filter = False, ""
        elif key == ERASE:
            self.filter = self.filter[:-1]
        elif len(key) == 1 and key.isprintable():
            self.filter = (self.filter + key)[:_LONGEST]

    def _press_in_story(self, key: str) -> str:
        self._scroll(self._step(_MOVES.get(key, key)))
        if key in ("q", ESCAPE, ENTER):
            self._story, self._from = None, 0
        return WHY if key == "w" else ""

    def _step(self, key: str) -> int:
        return {DOWN: 1, UP: -1, PAGE_DOWN: self._room, PAGE_UP: -self._room}.get(key, 0)

    def _scroll(self, step: int) -> list[Line]:
        """Move in the story; gives its lines as wide as the terminal."""
        lines = [part for line in self._story or () for part in _wrapped(line, self._size[0])]
        self._from = max(0, min(self._from + step, len(lines) - self._room))
        return lines

    def _move(self, key: str) -> None:
        """Select another line that a story can be told of."""
        step = self._step(key)
        there = [at for at, line in enumerate(self._lines()) if line.subject]
        if not step or not there:
            return
        now = self._selected()
        later = [at for at in there if at >= now + step] if step > 0 else [at for at in there if at <= now + step]
        at = (later[0] if step > 0 else later[-1]) if later else (there[-1] if step > 0 else there[0])
        line = self._lines()[at]
        self._subject = (line.kind, line.subject)
        self._at = at

    def _selected(self) -> int:
        """The selected line; -1 for none. It is found again where lines came or went."""
        lines = self._lines()
        same = [at for at, line in enumerate(lines) if line.subject and (line.kind, line.subject) == self._subject]
        if not same:
            return -1
        return min(same, key=lambda at: abs(at - self._at))

    # --- stories

    @property
    def subject(self) -> tuple[str, str]:
        return self._subject

    def tell(self, lines: list[Line], *, end: bool = False) -> None:
        """Show these lines; `end`: the last ones first."""
        self._story, self._from = lines, 0
        self._scroll(_FAR if end else 0)

    # --- lines

    @property
    def _room(self) -> int:
        return max(1, self._size[1] - 1)

    def _lines(self) -> list[Line]:
        lines = render(self.model, self._size[0])
        wanted = self.filter.casefold()
        return [line for at, line in enumerate(lines) if not wanted or at == 0 or wanted in line.text.casefold()]

    def frame(self, width: int, height: int) -> list[Line]:
        """Exactly `height` lines, each of at most `width` columns."""
        self._size = (max(1, width), max(2, height))
        room = self._room
        if self._story is not None:
            lines = self._scroll(0)
            body = lines[self._from : self._from + room]
        else:
            lines, at = self._lines(), self._selected()
            if at >= 0:
                self._top = max(min(self._top, at), at - room + 1)
                cells = lines[at].cells
                lines[at] = lines[at]._replace(cells=((">" + cells[0][0][1:], "bold"), *cells[1:]))
            self._top = max(0, min(self._top, len(lines) - room))
            body = lines[self._top : self._top + room]
        above = self._top if self._story is None else self._from
        more = len(lines) - above - len(body)
        body += [plain("")] * (room - len(body))
        return [_cut(line, self._size[0]) for line in [*body, self._footer(more)]]

    def _footer(self, more: int) -> Line:
        if self._typing:
            return plain(f"filter: {printable(self.filter)}_   Enter: keep  Esc: clear", "bold")
        if self.note:
            return plain(printable(self.note), "yellow")
        below = f"{more} more below  " if more > 0 else ""
        if self._story is not None:
            return plain(f"{below}q: back  w: why  arrows: move", "dim")
        kept = f"  filter: {printable(self.filter)} (Esc clears)" if self.filter else ""
        return plain(f"{below}q: quit  Enter: detail  w: why  /: filter  arrows: select{kept}", "dim")


def _wrapped(line: Line, width: int) -> Iterator[Line]:
    """The line in several where it is too long, its last text below itself."""
    *first, (text, colour) = line.cells
    used = sum(columns(before) for before, _ in first)
    if used + columns(text) <= width or used + _NARROW > width:
        yield line
        return
    for at, part in enumerate(wrapped(text, width - used, whole=True)):
        yield Line((*first, (part, colour)) if at == 0 else ((" " * used + part, colour),))


def _cut(line: Line, width: int) -> Line:
    cells: list[tuple[str, str]] = []
    for text, colour in line.cells:
        cells.append((cut(text, width), colour))
        width = max(0, width - columns(text))
    return line._replace(cells=tuple(cells))
