"""A TCP link between client and server that a test cuts or stalls, at a moment or after a number of bytes.

`up` is from client to server, `down` is back. Bytes are counted over all connections since the link was made.

    with Link(server.port) as link:
        alice = served.by("alice", port=link.port.number)
        link.hold(down=True)         # from now on nothing passes in that direction; connections stay open
        link.resume()
        link.cut()                   # every connection is reset at both ends, new ones are refused
        link.mend()                  # new ones are taken again
        link.reset()                 # both at once: nobody finds it cut
        link.cut_after(up=500)       # exactly so many more bytes pass, then it is cut
        link.hold_after(down=1)      # the same, and then it is held
        link.wait_reached()          # until that happened
        link.passed("up")            # how many bytes so far

When a call returns, it has taken effect. A reset may overtake bytes that the other side has not read yet: to be sure that
the server got and did something, hold the link, wait for the effect at the server, then cut.
"""

from __future__ import annotations

import queue
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import Literal, Self

from tests.server.process import DEADLINE, Port

Way = Literal["up", "down"]
_RESET = struct.pack("ii", 1, 0)  # close with a reset, not with an orderly end


class _Pipe:
    """One direction of one connection."""

    def __init__(self, way: Way, source: socket.socket, sink: socket.socket) -> None:
        self.way = way
        self.source = source
        self.sink = sink
        self.waiting = b""
        self.ended = False


class Link:
    """The proxy. All sockets belong to its one thread; the methods hand it their work and wait until it is done."""

    def __init__(self, target: Port) -> None:
        self._target = (target.host, target.number)
        self.port = Port(target.host)
        self._passed: dict[Way, int] = {"up": 0, "down": 0}
        self._held: dict[Way, bool] = {"up": False, "down": False}
        self._limit: dict[Way, int | None] = {"up": None, "down": None}
        self._then: Callable[[], None] = self._cut
        self._reached = threading.Event()
        self._pairs: list[tuple[_Pipe, _Pipe]] = []
        self._listener: socket.socket | None = None
        self._work: queue.SimpleQueue[tuple[Callable[[], None], threading.Event]] = queue.SimpleQueue()
        self._wake, self._bell = socket.socketpair()
        self._running = True
        self._thread = threading.Thread(target=self._loop, name="link", daemon=True)

    # --- for tests

    def cut(self) -> None:
        self._do(self._cut)

    def mend(self) -> None:
        self._do(self._mend)

    def reset(self) -> None:
        def reset() -> None:
            self._drop_all()
            self._clear()

        self._do(reset)

    def hold(self, *, up: bool = False, down: bool = False) -> None:
        self._do(lambda: self._held.update({"up": self._held["up"] or up, "down": self._held["down"] or down}))

    def resume(self) -> None:
        """Let everything pass: what was held, and without the limits that were set."""
        self._do(self._clear)

    def cut_after(self, *, up: int | None = None, down: int | None = None) -> None:
        self._do(lambda: self._arm(up, down, self._cut))

    def hold_after(self, *, up: int | None = None, down: int | None = None) -> None:
        self._do(lambda: self._arm(up, down, lambda: self._held.update({"up": True, "down": True})))

    def passed(self, way: Way) -> int:
        """The number of bytes delivered, including those that the receiver has just read."""
        self._do(lambda: None)
        return self._passed[way]

    def wait_reached(self) -> None:
        """Until the number of bytes of `cut_after` or `hold_after` has passed and it was done."""
        assert self._reached.wait(DEADLINE), f"after {self._passed} bytes the limit was not reached"

    def __enter__(self) -> Self:
        self._thread.start()
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._finish)
        self._thread.join()
        self._wake.close()
        self._bell.close()
        self.port.close()

    # --- in the thread

    def _do(self, action: Callable[[], None]) -> None:
        done = threading.Event()
        self._work.put((action, done))
        self._bell.send(b"!")
        assert done.wait(DEADLINE), "the link's thread does not answer"

    def _finish(self) -> None:
        self._cut()
        self._running = False

    def _drop_all(self) -> None:
        for pair in list(self._pairs):
            self._close(pair, reset=True)

    def _cut(self) -> None:
        self._drop_all()
        if self._listener:
            self._listener.close()
            self._listener = None

    def _mend(self) -> None:
        self._clear()
        if not self._listener:
            self._listener = socket.socket()
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind((self.port.host, self.port.number))
            self._listener.listen(128)

    def _clear(self) -> None:
        self._held.update({"up": False, "down": False})
        self._limit.update({"up": None, "down": None})

    def _arm(self, up: int | None, down: int | None, then: Callable[[], None]) -> None:
        self._reached.clear()
        self._then = then
        self._limit.update({"up": up, "down": down})
        self._check_limits()

    def _check_limits(self) -> None:
        if 0 in self._limit.values():
            self._limit.update({"up": None, "down": None})
            self._then()
            self._reached.set()

    def _loop(self) -> None:
        while self._running:
            with selectors.DefaultSelector() as ready:
                ready.register(self._wake, selectors.EVENT_READ, {selectors.EVENT_READ: self._serve})
                if self._listener:
                    ready.register(self._listener, selectors.EVENT_READ, {selectors.EVENT_READ: self._accept})
                for place, actions in self._wanted().items():
                    ready.register(place, sum(actions), actions)
                # One at a time: it may have cut or held all others.
                key, events = ready.select()[0]
                next(action for event, action in key.data.items() if event & events)()

    def _wanted(self) -> dict[socket.socket, dict[int, Callable[[], None]]]:
        """The sockets that can go on, and how. Each is the source of one pipe and the sink of another."""
        wanted: dict[socket.socket, dict[int, Callable[[], None]]] = {}
        for pipe in (pipe for pair in self._pairs for pipe in pair if not self._held[pipe.way]):
            if pipe.waiting:
                wanted.setdefault(pipe.sink, {})[selectors.EVENT_WRITE] = partial(self._write, pipe)
            elif not pipe.ended:
                wanted.setdefault(pipe.source, {})[selectors.EVENT_READ] = partial(self._read, pipe)
        return wanted

    def _serve(self) -> None:
        self._wake.recv(1)
        action, done = self._work.get()
        action()
        done.set()

    def _accept(self) -> None:
        assert self._listener
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.close()
            return
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pairs.append((_Pipe("up", client, server), _Pipe("down", server, client)))

    def _read(self, pipe: _Pipe) -> None:
        limit = self._limit[pipe.way]
        try:
            pipe.waiting = pipe.source.recv(65536 if limit is None else min(limit, 65536))
        except OSError:
            self._drop(pipe)
            return
        if not pipe.waiting:
            self._end(pipe)

    def _write(self, pipe: _Pipe) -> None:
        limit = self._limit[pipe.way]
        try:
            sent = pipe.sink.send(pipe.waiting[:limit])
        except OSError:
            self._drop(pipe)
            return
        pipe.waiting = pipe.waiting[sent:]
        self._passed[pipe.way] += sent
        if limit is not None:
            self._limit[pipe.way] = limit - sent
            self._check_limits()

    def _end(self, pipe: _Pipe) -> None:
        """One side has said all; the other direction may go on."""
        pipe.ended = True
        try:
            pipe.sink.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(pipe)
            return
        pair = self._pair(pipe)
        if all(one.ended for one in pair):
            self._close(pair, reset=False)

    def _drop(self, pipe: _Pipe) -> None:
        self._close(self._pair(pipe), reset=True)

    def _pair(self, pipe: _Pipe) -> tuple[_Pipe, _Pipe]:
        return next(pair for pair in self._pairs if pipe in pair)

    def _close(self, pair: tuple[_Pipe, _Pipe], *, reset: bool) -> None:
        for pipe in pair:
            if reset:
                pipe.source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            pipe.source.close()
        self._pairs.remove(pair)
