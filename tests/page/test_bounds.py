"""Bounds: slow clients, many connections, large requests. The page goes on answering."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn

from gitcoord.page import protocol
from gitcoord.page.live import MOST_STREAMS
from gitcoord.page.security import LARGEST, Receive, Scope, Send
from tests.cli.support import World
from tests.page.support import Page, first_url, open_files, process, raw


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, int]]:
    """A page, opened, and its process."""
    with process(World(tmp_path_factory.mktemp("page")).init()) as started:
        found = Page(first_url(started))
        assert found.open().status == 200
        yield found, started.pid


def _is_closed(connection: socket.socket) -> bool:
    """Wait until the other side has closed it."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


class _Slow:
    """An application whose answer takes as long as the test wants."""

    def __init__(self) -> None:
        self.loop = asyncio.get_event_loop_policy().new_event_loop()
        self.goes_on = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"be", "more_body": True})
        if scope["path"] == "/slow":
            await self.goes_on.wait()
        await send({"type": "http.response.body", "body": b"gun"[:2]})


@contextmanager
def _served(app: _Slow) -> Iterator[Page]:
    """The page's own server, around another application."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, **{**protocol.options(), "lifespan": "off"}))
    thread = threading.Thread(target=lambda: app.loop.run_until_complete(server.serve(sockets=[listener])))
    thread.start()
    try:
        yield Page(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    finally:
        server.should_exit = True
        thread.join()
        app.loop.close()


def test_slow_clients_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that send nothing, half a header or half a body, also behind a whole request; but not a slow answer to a whole request."""
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.2)
    app = _Slow()
    get = "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
    post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"
    with _served(app) as page, ExitStack() as stack:
        waiting = stack.enter_context(raw(page, (get % "slow").encode()))
        slow = [
            stack.enter_context(raw(page, data.encode()))
            for data in ("", "GET / HT", "GET / HTTP/1.1\r\nA: b\r\n", post, get % "" + "GET /", get % "" + post)
        ]
        assert all(map(_is_closed, slow))
        app.loop.call_soon_threadsafe(app.goes_on.set)
        assert b"".join(iter(lambda: waiting.recv(4096), b"")).endswith(b"\r\n\r\nbegu")


def test_connections_above_the_limit_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the clock: the others are still there, and answered."""
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 1000)
    with _served(_Slow()) as page, ExitStack() as stack:
        kept = [stack.enter_context(raw(page, b"GET / HTTP/1.1\r\n")) for _ in range(5)]
        assert _is_closed(stack.enter_context(raw(page, b"")))
        for connection in kept:
            connection.sendall(b"Host: x\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_thousand_connections(page: tuple[Page, int]) -> None:
    found, pid = page
    at_rest = open_files(pid)
    with ExitStack() as stack:
        many = [stack.enter_context(raw(found, b"")) for _ in range(1000)]
        kept = protocol.MOST_CONNECTIONS
        assert all(map(_is_closed, many[kept + 1 :])), "those above the limit are closed at once"
        assert open_files(pid) <= at_rest + kept + 1
    while open_files(pid) > at_rest + 1:  # until it has seen that they are gone
        pass
    assert found.get("overview").status == 200


def test_large_requests(page: tuple[Page, int]) -> None:
    found, _ = page
    kind = {"Content_Type": "application/json", "Origin": found.origin}
    large = json.dumps({"key": "x" * LARGEST}).encode()
    assert found.send("POST", "/api/session", large, **kind).status == 413
    chunks = b"".join(b"1000\r\n" + b"x" * 4096 + b"\r\n" for _ in range(5)) + b"0\r\n\r\n"
    assert found.send("POST", "/api/session", chunks, Transfer_Encoding="chunked", **kind).status == 413
    assert found.send("POST", "/api/session", b"", Content_Length=str(10**9), **kind).status == 413
    with raw(found, b"GET / HTTP/1.1\r\n") as long, pytest.raises((BrokenPipeError, ConnectionResetError)):
        for _ in range(10_000):
            long.sendall(b"X-Long: " + b"y" * 4096 + b"\r\n")
    assert found.get("overview").status == 200


def test_open_pages_are_counted(page: tuple[Page, int]) -> None:
    found, _ = page
    with ExitStack() as stack:
        for _ in range(MOST_STREAMS):
            next(stack.enter_context(found.stream()))
        answer = found.send("GET", f"/api/stream?key={found.key}", None, Cookie=found.cookie)
        assert answer.status == 503 and answer.json["error"] == "full"
