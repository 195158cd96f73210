"""Words for people, JSON for machines. Everything from outside is made printable; colour follows git's own rules."""

from __future__ import annotations

import time
from _signal import SIGINT, default_int_handler, getsignal, signal

from gitcoord.base.codec import dumps
from gitcoord.base.durations import format_duration
from gitcoord.base.errors import GitcoordError, StoreError
from gitcoord.base.names import LANDING, printable
from gitcoord.git.config import Settings
from gitcoord.git.files import write_all
from gitcoord.git.host import _exit, interrupt, isatty, terminal_width
from gitcoord.git.process import Environ, environ
from gitcoord.startup.annotations import Any, Callable

Row = dict[str, "Any"]
_INDENT = 2  # of lists below a heading

_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}


class Screen:
    """The output of a command: stdout, stderr, colours, JSON."""

    def __init__(self, environ: Environ, *, json: bool = False, quiet: bool = False) -> None:
        self.json = json
        self.quiet = quiet
        self._environ = environ
        self._colour = {1: False, 2: False}
        self.ask_news: Callable[[], tuple[Row, list[str]]] | None = None  # told once, with the answer
        self.beside: Row = {}  # of each answer: what the command did before
        # The hints as they can be followed in this work tree now.
        self.fit: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda hints: hints

    def use_settings(self, settings: Settings) -> None:
        """`color.ui` decides, as for git; NO_COLOR and a dumb terminal say no where it is 'auto'."""
        wish = settings.get("color.ui", "auto").lower()
        dull = self._environ.get(b"NO_COLOR") or self._environ.get(b"TERM", b"dumb") == b"dumb"
        for fd in self._colour:
            self._colour[fd] = wish == "always" or (wish in ("auto", "true") and not dull and isatty(fd))

    def paint(self, text: str, colour: str, fd: int = 1) -> str:
        return f"\x1b[{_CODES[colour]}m{text}\x1b[m" if self._colour[fd] and colour else text

    def say(self, *lines: str) -> None:
        if not self.quiet and not self.json:
            put(1, "".join(line + "\n" for line in lines))

    def note(self, *lines: str) -> None:
        """Prose that is not the answer."""
        if not self.quiet:
            put(2, "".join(line + "\n" for line in lines))

    def hint(self, *lines: str) -> None:
        self.note(*(f"hint: {printable(line)}" for line in self.fit(lines)))

    def answer(self, result: Row, *, ok: bool = True) -> None:
        if self.json:
            put(1, dumps({"ok": ok, **result, **self.beside, **self.news()[0]}) + "\n")

    def news(self) -> tuple[Row, list[str]]:
        """The news for the agent: fields of the answer, or lines. Asked once, and never where nothing is printed."""
        ask, self.ask_news = self.ask_news, None
        return ask() if ask is not None and not self.quiet else ({}, [])

    def tell_news(self) -> None:
        """After the answer: the news as lines. With --json they are part of the answer."""
        if not self.json:
            self.note(*(f"note: {line}" for line in self.news()[1]))

    def fail(self, error: GitcoordError) -> int:
        """Print an error; gives its exit code."""
        hints = self.fit(error.hints)
        if self.json:
            row: Row = {"ok": False, "error": error.code, "message": error.message, **error.data}
            if hints:
                row["hints"] = list(hints)
            put(1, dumps({**row, **self.beside, **self.news()[0]}) + "\n")
        else:
            put(2, f"error: {printable(error.message)}\n")
            held = error.data.get("held")
            if isinstance(held, list):
                put(2, "".join(f"  {line}\n" for line in self.claim_lines(held, 2)))
            put(2, "".join(f"hint: {printable(hint)}\n" for hint in hints))
            self.tell_news()
        return error.exit_code

    def width(self, fd: int = 1) -> int:
        """The columns that a list may take, indented; 0 where there is no terminal."""
        return max(_INDENT, terminal_width(fd) - _INDENT) if isatty(fd) else 0

    def cut(self, text: str, used: int = 0) -> str:
        """The text, shortened at its end to what a line of the terminal has left beside `used` columns."""
        width = self.width()
        if not width or len(text) <= (width - used) // 2:  # wide characters take two columns
            return text
        from gitcoord.terminal.fit import cut

        return cut(text, max(1, width - used))

    def table(self, rows: list[list[str]], colours: list[str], fd: int = 1) -> list[str]:
        """Aligned columns, as wide as the terminal at most; the last one is not padded."""
        width = self.width(fd)
        return [
            "  ".join(self.paint(cell, colour, fd) for cell, colour in zip(row, colours)).rstrip()
            for row in aligned(rows, width)
        ]

    def claim_lines(self, claims: list[Row], fd: int = 1) -> list[str]:
        return self.table(*claim_table(claims), fd)

    def server_lines(self, result: Row) -> list[str]:
        """Claims that only the server's history holds, each marked as the server's."""
        claims: list[Row] = result.get("server_claims", [])
        return [f"at the server: {line}" for line in self.claim_lines(claims)]


def claim_table(claims: list[Row]) -> tuple[list[list[str]], list[str]]:
    """A row of cells for each claim, and the colours of the columns."""
    rows = []
    late = [""] if any(expected(claim) for claim in claims) else []  # a column only where there is something in it
    for claim in claims:
        units = f" x{claim['units']}" if claim["kind"] == "resource" and claim["units"] != 1 else ""
        rows.append(
            [
                printable(str(claim["path"])) + units,
                str(claim["agent"]),
                str(claim["mode"]),
                f"#{claim['token']}",
                expiry(claim),
                *(expected(claim) for _ in late),
                f"since {ago(claim['since'])}",
                printable(str(claim["reason"])),
            ]
        )
    return rows, ["bold", "cyan", "", "dim", "yellow", *late, "dim", ""]


def aligned(rows: list[list[str]], room: int = 0) -> list[list[str]]:
    """The cells, printable and padded to the width of their columns; `room`: the columns of the terminal, 0 where there is none."""
    rows = [[printable(cell) for cell in row] for row in rows]
    if rows and (room or not all(cell.isascii() for row in rows for cell in row)):
        from gitcoord.terminal.fit import fitted

        return fitted(rows, room)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [[cell.ljust(width) for cell, width in zip(row, widths)] for row in rows]


def expiry(claim: Row) -> str:
    left = claim["expires_in_seconds"]  # counted from the end of the heartbeat's slot: up to a slot more than the ttl
    if claim.get("silent"):
        return "expired, free to take"
    if claim.get("reserved") and isinstance(left, int):
        return f"reserved for {format_duration(left)} more"
    if not isinstance(left, int):
        return "alive"
    return f"expires in {format_duration(min(left, int(str(claim['ttl_seconds']))))}"


def is_landing(claim: Row) -> bool:
    """Is this claim part of a turn to land? Such a turn lasts until the branch has landed, at most for the time that it has."""
    taken = str(claim["path"]).startswith(LANDING) or str(claim["reason"]).startswith(("lands ", "resolves "))
    return taken and claim["ttl_seconds"] == claim["expected_seconds"]


def expected(claim: Row) -> str:
    """How much longer the holder thinks that it needs a claim; '' where it did not say, and for a landing."""
    seconds = 0 if is_landing(claim) else int(claim["expected_seconds"] or 0)
    left = int(claim["since"]) + seconds - int(time.time())
    if not seconds:
        return ""
    return f"expected {format_duration(left)} more" if left > 0 else f"expected to end {format_duration(-left)} ago"


def counted(count: int, noun: str) -> str:
    """'1 event', '2 events'."""
    return f"{count} {noun}" + "s" * (count != 1)


def ago(at: object) -> str:
    passed = int(time.time()) - int(str(at))
    return "now" if passed < 1 else f"{format_duration(passed)} ago"


def put(fd: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "backslashreplace"))
    try:
        write_all(fd, data)
    except BrokenPipeError:
        _exit(141)


def guarded(screen: Screen, body: Callable[[], int]) -> int:
    """Run a command; every failure ends as one error with its exit code, never as a traceback."""
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, interrupt)
    try:
        return body()
    except GitcoordError as error:
        return screen.fail(error)
    except KeyboardInterrupt as error:
        screen.note(f"interrupted: {str(error) or 'nothing was changed'}")
        return 130
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return screen.fail(StoreError(f"{error.strerror or error}{where}"))
    except Exception as error:
        if environ.get(b"GITCOORD_TRACE"):
            raise
        message = f"gitcoord failed: {type(error).__name__}: {error}"
        return screen.fail(GitcoordError(message, hints=("this is a bug; GITCOORD_TRACE=1 shows where",)))
