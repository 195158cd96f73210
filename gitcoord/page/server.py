"""The server process of the page: its socket, its signals, its link, and the browser that is opened with it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import uvicorn

from gitcoord.base.codec import dumps
from gitcoord.base.errors import StoreError, UsageError
from gitcoord.base.names import printable
from gitcoord.claims.cli_sleep import Bell
from gitcoord.cli.caller import Caller
from gitcoord.page.app import About, Page
from gitcoord.page.live import Live
from gitcoord.page.protocol import options
from gitcoord.page.security import Gate, Sessions, is_loopback
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import put

PORT = 8417
_TRIED = 20  # ports after that one, where it is taken


class Wish(NamedTuple):
    """How the page is to be served. `port` None: the usual one, or the next that is free; 0: any."""

    listen: str
    port: int | None
    acts: bool
    opens: bool


class _Server(uvicorn.Server):
    """uvicorn's server, without its handlers of signals: they would end the process by the signal itself."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(call: Call, wish: Wish) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP; gives the exit code."""
    actor = call.actor_or_none()
    listener = _listener(wish)
    port = listener.getsockname()[1]
    sessions = Sessions(port)
    about = About(os.path.basename(call.ctx.repo.worktree or call.ctx.repo.common_dir), actor.agent if actor is not None else "", wish.acts)  # fmt: skip
    link = _Link(call, wish, port, sessions)
    page = Page(Caller(actor), sessions, about, link.show_next)
    ended: list[int] = []

    @contextmanager
    def serving(live: Live) -> Iterator[Callable[[], None]]:
        with _signals(call, live, ended, server):
            yield link.show

    server = _Server(uvicorn.Config(Gate(page.app(serving), sessions, wish.listen), **options()))
    asyncio.run(server.serve(sockets=[listener]))
    if not ended:
        raise StoreError("the page ended by itself")
    return 130 if ended[0] == signal.SIGINT else 0


def _listener(wish: Wish) -> socket.socket:
    """A socket that listens; the first free port from the usual one on, so that a browser finds the page again."""
    ports = range(PORT, PORT + _TRIED) if wish.port is None else (wish.port,)
    family = socket.AF_INET6 if ":" in wish.listen else socket.AF_INET
    for port in ports:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((wish.listen, port))
            found.listen(128)
            return found
        except OSError as error:
            found.close()
            problem = error
    raise UsageError(
        f"cannot listen at {printable(wish.listen)}, port {ports[0]}: {problem.strerror or problem}",
        hints=("at any free port: git coord page --port 0",),
    )


@contextmanager
def _signals(call: Call, live: Live, ended: list[int], server: uvicorn.Server) -> Iterator[None]:
    """Ends come as signals, and so does the news that the ledger moved."""
    loop = asyncio.get_running_loop()

    def end(number: int) -> None:
        ended.append(number)
        live.close()
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    loop.add_signal_handler(signal.SIGIO, live.moved)
    directory = "reftable" if call.ctx.settings.get("extensions.refstorage") == "reftable" else "refs/heads"
    bell = Bell(f"{call.ctx.repo.common_dir}/{directory}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
    try:
        yield
    finally:
        bell.close()


class _Link:
    """The one-time link, printed when the page is there, and a new one each time it was used."""

    def __init__(self, call: Call, wish: Wish, port: int, sessions: Sessions) -> None:
        self._call = call
        self._wish = wish
        self._sessions = sessions
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(wish.listen, wish.listen)
        self._address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    @property
    def url(self) -> str:
        """The key is in the fragment, which browsers send to nobody."""
        return f"{self._address}#key={self._sessions.link_key}"

    def show(self) -> None:
        if not is_loopback(self._wish.listen):
            self._call.screen.note("warning: what is sent over the network is not encrypted")
            self._call.screen.hint(f"from another machine take this one's address instead of {self._address}")
        if not (self._wish.acts or self._call.screen.json):
            self._call.screen.note("note: it only shows; a person acts from it with: git coord page --act")
        self._say("open this link, which works once")
        if self._wish.opens and _has_desktop() and os.isatty(1):
            webbrowser.open(self.url)

    def show_next(self) -> None:
        self._say("that link was used; for another browser")

    def _say(self, words: str) -> None:
        if self._call.screen.json:
            put(1, dumps({"ok": True, "address": self._address, "url": self.url, "act": self._wish.acts}) + "\n")
        else:
            put(1, f"{words}: {printable(self.url)}\n")


def _has_desktop() -> bool:
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
