"""The screen of `git coord top` without a terminal: keys in, lines out."""

from __future__ import annotations

from gitcoord.base.names import printable
from gitcoord.startup.annotations import Iterator
from gitcoord.terminal.fit import columns, cut
from gitcoord.terminal.screen import Row
from gitcoord.views.render import Line, plain, render

QUIT, TELL = "quit", "tell"
UP, DOWN, PAGE_UP, PAGE_DOWN, ENTER, ESCAPE, ERASE = "up", "down", "page up", "page down", "enter", "escape", "erase"
_SEQUENCES = {
    "\x1b[A": UP, "\x1bOA": UP, "\x1b[B": DOWN, "\x1bOB": DOWN, "\x1b[5~": PAGE_UP, "\x1b[6~": PAGE_DOWN,
}  # fmt: skip
_SINGLE = {"\r": ENTER, "\n": ENTER, "\x1b": ESCAPE, "\x7f": ERASE, "\x08": ERASE, "\x04": "q"}
_MOVES = {"j": DOWN, "k": UP, " ": PAGE_DOWN}
_LONGEST = 100  # characters of a filter


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
        """Take a key; gives QUIT, TELL (the story of `subject` is wanted) or ''."""
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
        elif key == ENTER:
            return TELL if self._subject[1] else ""
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
        step = {DOWN: 1, UP: -1, PAGE_DOWN: self._room, PAGE_UP: -self._room}.get(_MOVES.get(key, key), 0)
        self._from = max(0, min(self._from + step, len(self._story or ()) - self._room))
        if key in ("q", ESCAPE, ENTER):
            self._story, self._from = None, 0
        return ""

    def _move(self, key: str) -> None:
        """Select another line that a story can be told of."""
        step = {DOWN: 1, UP: -1, PAGE_DOWN: self._room, PAGE_UP: -self._room}.get(key, 0)
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

    def tell(self, lines: list[Line]) -> None:
        """Show a story, its end first in sight."""
        self._story = lines
        self._from = max(0, len(lines) - self._room)

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
            body = self._story[self._from : self._from + room]
        else:
            lines, at = self._lines(), self._selected()
            if at >= 0:
                self._top = max(min(self._top, at), at - room + 1)
                cells = lines[at].cells
                lines[at] = lines[at]._replace(cells=((">" + cells[0][0][1:], "bold"), *cells[1:]))
            self._top = max(0, min(self._top, len(lines) - room))
            body = lines[self._top : self._top + room]
        body += [plain("")] * (room - len(body))
        return [_cut(line, self._size[0]) for line in [*body, self._footer()]]

    def _footer(self) -> Line:
        if self._typing:
            return plain(f"filter: {printable(self.filter)}_   Enter: keep  Esc: clear", "bold")
        if self.note:
            return plain(printable(self.note), "yellow")
        if self._story is not None:
            return plain("q: back  arrows: move", "dim")
        kept = f"   filter: {printable(self.filter)} (Esc clears)" if self.filter else ""
        return plain(f"q: quit  arrows: select  Enter: its story  /: filter{kept}", "dim")


def _cut(line: Line, width: int) -> Line:
    cells: list[tuple[str, str]] = []
    for text, colour in line.cells:
        cells.append((cut(text, width), colour))
        width = max(0, width - columns(text))
    return line._replace(cells=tuple(cells))
