"""`git coord top`: the overview, live in the terminal; as lines for screen readers and pipes (`--plain`), or as JSON.

It redraws when the ledger moves, and every few seconds, since heartbeats and expiry move without it.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gitcoord.base.codec import dumps
from gitcoord.base.errors import GitcoordError, NotInitialised, UsageError
from gitcoord.base.names import printable
from gitcoord.claims.cli_sleep import Bell
from gitcoord.claims.model import Item
from gitcoord.journal.why import why, why_numbered
from gitcoord.ledger.log import event_row, event_words, events
from gitcoord.ledger.watch import Follower, Place
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago, put
from gitcoord.views.cli import EMPTY, painted
from gitcoord.views.detail import detail
from gitcoord.views.live import DETAIL, QUIT, WHY, View, keys
from gitcoord.views.overview import overview
from gitcoord.views.render import AGENT, TASK, Line, plain, render

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY = 5.0  # seconds between looks where the ledger does not move
_SOONEST = 0.2  # seconds between looks where it moves all the time
_REMOTE = 10  # seconds between two fetches from a remote authority
_STORY = 200
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # the alternate screen, the cursor


def top(call: Call, values: Values, words: list[str]) -> int:
    is_live = os.isatty(0) and os.isatty(1) and not values.get("plain") and not call.screen.json
    if is_live and call.environ.get(b"TERM", b"dumb") == b"dumb":
        raise UsageError("this terminal cannot be drawn on", hints=("git coord top --plain",))
    try:
        with _Bell(call) as bell:
            return _Live(call, bell).run() if is_live else _lines(call, bell)
    except NotInitialised:
        call.screen.answer({"initialised": False, **EMPTY})
        call.note_not_set_up()
        return 0
    except KeyboardInterrupt:
        return 130


def look(call: Call, *, looks: bool = True) -> Row:
    """The overview now. Where a remote decides, it is asked at most every few seconds; `offline` says why it could not be.

    `looks`: look for work that will conflict if that is due.
    """
    age: Row = {}
    if call.ctx.remote:
        from gitcoord.ledger.remote.fetch import refresh_if_older

        age = refresh_if_older(call.ctx, _REMOTE)
        if "offline" in age:  # looking changes nothing anyway
            age["offline"] = str(age["offline"]).removesuffix("; nothing was changed")
    return {**overview(call.ctx, call.actor_or_none(), beats=False, looks=looks), **age}


class _Bell:
    """Wakes `wait` when the ledger moves, a key is pressed or the window changes."""

    def __init__(self, call: Call) -> None:
        directory = "reftable" if call.ctx.settings.get("extensions.refstorage") == "reftable" else "refs/heads"
        self._directory = f"{call.ctx.repo.common_dir}/{directory}"
        self._pipe = os.pipe()
        self._next = self._due = 0.0
        self._moved = False

    def __enter__(self) -> _Bell:
        for end in self._pipe:
            os.set_blocking(end, False)
        self._old = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in (signal.SIGIO, signal.SIGWINCH):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)  # as Ctrl-C: the terminal is put in order
        self._bell = Bell(self._directory)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
        return self

    def __exit__(self, *_: object) -> None:
        self._bell.close()
        signal.set_wakeup_fd(self._old)
        for end in self._pipe:
            os.close(end)

    def is_due(self) -> bool:
        """Is it time to look again?"""
        now = time.monotonic()
        return now >= self._due or (self._moved and now >= self._next)

    def looked(self, cost: float) -> None:
        """A look took so long. The next comes after some rest, however much happens."""
        now = time.monotonic()
        self._next, self._due, self._moved = now + max(_SOONEST, 3 * cost), now + _EVERY + 3 * cost, False

    def wait(self, *fds: int) -> bool:
        """Wait until something happens or a look is due; gives whether one of these files can be read."""
        end = self._next if self._moved else self._due
        ready = select.select([self._pipe[0], *fds], [], [], max(0.0, end - time.monotonic()))[0]
        if self._pipe[0] in ready:
            with suppress(BlockingIOError):
                self._moved = signal.SIGIO in os.read(self._pipe[0], 4096) or self._moved
        return any(fd in ready for fd in fds)


# --- as lines ----------------------------------------------------------------------------------------------------------


def _lines(call: Call, bell: _Bell) -> int:
    """The overview once, then each change as a line: events, and what needs somebody or does not any more."""
    model = _looked(call, bell)
    if call.screen.json:
        put(1, dumps({"ok": True, "initialised": True, **model}) + "\n")
    else:
        put(1, "".join(f"{line}\n" for line in [*(row.text for row in render(model)), *_unseen(model)]))
    follower = Follower(call.ctx, Place(str(model["ledger"]), int(model["seq"])))
    while True:
        bell.wait()
        if bell.is_due():
            before, model = model, _looked(call, bell)
            if call.screen.json:
                if _told(before) != _told(model) or before["ledger"] != model["ledger"]:
                    put(1, dumps({"ok": True, "initialised": True, **model}) + "\n")
            else:
                put(1, "".join(f"{line}\n" for line in [*_news(follower), *changes(before, model)]))


def _looked(call: Call, bell: _Bell) -> Row:
    began = time.monotonic()
    model = look(call)
    bell.looked(time.monotonic() - began)
    return model


def _news(follower: Follower) -> Iterator[str]:
    for commit, event in follower.new():
        yield f"event {event.seq}: {event_words(event_row(commit, event))}"


def _told(model: Row) -> dict[tuple[str, str, str], Row]:
    rows = [("needs you", row) for row in model["needs_you"]] + [
        ("needs a person", row) for row in model["needs_person"]
    ]
    return {(who, row["kind"], row["subject"]): row for who, row in rows}


def _unseen(model: Row) -> list[str]:
    """That the remote that decides could not be asked, where that is so."""
    return [f"note: {printable(str(model['offline']))}"] if "offline" in model else []


def changes(before: Row, after: Row) -> list[str]:
    """The needs that are new and those that are settled. The time that passes is no change."""
    old, new = _told(before), _told(after)
    lines = [
        f"{key[0]}: {printable(row['message'])}: {printable(row['help'])}" for key, row in new.items() if key not in old
    ]
    lines += [f"settled: {printable(row['message'])}" for key, row in old.items() if key not in new]
    if after.get("offline", "") != before.get("offline", ""):
        lines += _unseen(after)
    if before["needs_you"] and not after["needs_you"]:
        lines.append("nothing needs you")
    return lines


# --- live --------------------------------------------------------------------------------------------------------------


class _Live:
    """The terminal: drawn whole each time, put back as it was at the end."""

    def __init__(self, call: Call, bell: _Bell) -> None:
        self._call = call
        self._bell = bell
        self._view = View(look(call))
        call.ctx.listen(self._note)

    def _note(self, words: str) -> None:
        self._view.note = words

    def run(self) -> int:
        with _raw():
            while True:
                if self._bell.is_due():
                    self._look()
                self._draw()
                if self._bell.wait(0) and not self._read():
                    return 0

    def _look(self) -> None:
        """Look again. Where that fails, the last overview stays, with the reason below it."""
        began = time.monotonic()
        try:
            self._view.model = look(self._call)
            self._view.note = str(self._view.model.get("offline", ""))
        except GitcoordError as error:
            self._view.note = error.message
        self._bell.looked(time.monotonic() - began)

    def _read(self) -> bool:
        """Take the keys that were pressed; gives whether to go on."""
        data = os.read(0, 1024)
        for key in keys(data.decode("utf-8", "replace")):
            wish = self._view.press(key)
            if wish == QUIT:
                return False
            if wish == DETAIL:
                self._view.tell(detail(self._view.model, self._view.subject[1]))
            if wish == WHY:
                self._tell(*self._view.subject)
        return bool(data)

    def _tell(self, kind: str, subject: str) -> None:
        try:
            self._view.tell(story(self._call, kind, subject), end=True)
        except GitcoordError as error:
            self._view.note = error.message

    def _draw(self) -> None:
        try:
            width, height = os.get_terminal_size(1)
        except OSError:
            width, height = 80, 24
        lines = [painted(self._call.screen, line) for line in self._view.frame(width or 80, height or 24)]
        put(
            1, "\x1b[H" + "\n".join(f"\x1b[K{line}" for line in lines)
        )  # cleared first: behind a full line it would eat its end


@contextmanager
def _raw() -> Iterator[None]:
    """Keys one by one and not shown, on the alternate screen. Ctrl-Z gives the terminal back until the process goes on."""
    before = termios.tcgetattr(0)
    raw = [*before[:3], before[3] & ~(termios.ICANON | termios.ECHO), *before[4:]]

    def enter() -> None:
        termios.tcsetattr(0, termios.TCSADRAIN, raw)
        put(1, _ENTER)

    def leave() -> None:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        put(1, _LEAVE)

    def stop(*_: object) -> None:
        leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        enter()

    signal.signal(signal.SIGTSTP, stop)
    enter()
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        leave()


def story(call: Call, kind: str, subject: str) -> list[Line]:
    """The story of a path, a task or an agent: oldest first."""
    ctx = call.ctx
    if kind == AGENT:
        rows = [[row["seq"], row["at"], event_words(row)] for row in events(ctx, agent=subject, limit=_STORY)][::-1]
    elif kind == TASK:
        rows = _rows(why_numbered(ctx, None, subject, _STORY))
    else:
        item = Item("resource", subject[1:]) if subject.startswith("@") else Item("path", subject)
        rows = _rows(why(ctx, None, item, _STORY))
    lines = [
        Line(((f"{seq:>6}  ", "dim"), (f"{ago(at):>12}  ", "yellow"), (printable(str(said)), "")))
        for seq, at, said in rows
    ]
    return [plain(printable(subject), "bold"), *(lines or [plain("nothing is on record about it")])]


def _rows(found: dict[str, object] | None) -> list[list[object]]:
    told: list[Row] = found["story"] if found is not None else []  # type: ignore[assignment]
    return [[row["seq"], row["at"], row["words"]] for row in told]
