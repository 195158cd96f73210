"""A real page of a real repository, and a client that speaks to it as a browser does, or as none would."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from tests.cli.support import World
from tests.support import COORD

SECONDS = 30.0


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Page:
    """A server, and the session of one browser with it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url
        self.host, self.port = parts.hostname or "", parts.port or 0
        self.link_key = parts.fragment.removeprefix("key=")
        self.cookie = self.key = ""

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    # --- requests

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request with exactly these headers; '_' in a name stands for '-', and Host is right unless it is given."""
        connection = HTTPConnection(self.host, self.port, timeout=SECONDS)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body is not None and "Content_Length" not in headers and "Transfer_Encoding" not in headers:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            return _read(connection.getresponse())
        finally:
            connection.close()

    def open(self, key: str = "") -> Answer:
        """Use the link."""
        found = self.send(
            "POST", "/api/session", json.dumps({"key": key or self.link_key}).encode(), Content_Type="application/json", Origin=self.origin
        )  # fmt: skip
        if found.status == 200:
            self.cookie = found.headers["set-cookie"].partition(";")[0]
            self.key = found.json["key"]
        return found

    @property
    def proof(self) -> dict[str, str]:
        return {"Cookie": self.cookie, "X_Gitcoord_Page": self.key}

    def get(self, path: str, **query: object) -> Answer:
        words = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in query.items())
        return self.send("GET", f"/api/{path}?{words}", None, **self.proof)

    def post(self, path: str, row: dict[str, object]) -> Answer:
        body = json.dumps(row).encode()
        return self.send(
            "POST", f"/api/{path}", body, Content_Type="application/json", Origin=self.origin, **self.proof
        )

    def do(self, action: str, subject: str = "", value: str = "", reason: str = "") -> Answer:
        """An action with its confirmation, as the page does it."""
        asked = {"action": action, "subject": subject, "value": value}
        planned = self.get("plan", **asked)
        if planned.status != 200:
            return planned
        return self.post("act", {**asked, "reason": reason, "seal": planned.json["seal"]})

    @contextmanager
    def stream(self, last: int | None = None) -> Iterator[Iterator[dict[str, Any]]]:
        """The messages of the event stream, each with its `id`."""
        connection = HTTPConnection(self.host, self.port, timeout=SECONDS)
        headers = {"Cookie": self.cookie, **({"Last-Event-ID": str(last)} if last is not None else {})}
        connection.request("GET", f"/api/stream?key={self.key}", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        try:
            yield _messages(answer)
        finally:
            connection.close()
            answer.close()


def _read(answer: HTTPResponse) -> Answer:
    return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def _messages(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    id = 0
    while line := answer.readline():
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "id":
            id = int(value)
        elif name == "data":
            yield {**json.loads(value), "id": id}


@contextmanager
def serving(world: World, *words: str, agent: str = "") -> Iterator[Page]:
    """A page that only shows, on a free port; its link is not used yet."""
    with process(world, *words, agent=agent) as started:
        yield Page(first_url(started))


@contextmanager
def process(world: World, *words: str, agent: str = "") -> Iterator[subprocess.Popen[str]]:
    argv = [*COORD, "page", "--json", "--no-open", *([] if "--port" in words else ["--port", "0"]), *words]
    started = subprocess.Popen(
        argv, cwd=world.top, env=world.environ(agent, {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        yield started
    finally:
        started.terminate()
        out, err = started.communicate(timeout=SECONDS)
        assert not err, err
        assert started.returncode == 0, out


def first_url(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    line = started.stdout.readline()
    assert line, started.stderr.read() if started.stderr else ""
    return str(json.loads(line)["url"])


@contextmanager
def acting(world: World, *words: str) -> Iterator[Page]:
    """A page with --act, started by a person at a terminal; the link was used."""
    with world.terminal("page", "--act", "--no-open", "--port", "0", *words, argv=COORD) as terminal:
        terminal.until(lambda shown: b"#key=" in shown and shown.endswith(b"\n"))
        page = Page(terminal.shown.decode().split()[-1])
        assert page.open().status == 200
        yield page
        terminal.process.terminate()
        assert terminal.end().code == 0


def raw(page: Page, data: bytes) -> socket.socket:
    """A connection on which these bytes were sent."""
    found = socket.create_connection((page.host, page.port), timeout=SECONDS)
    found.sendall(data)
    return found


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
