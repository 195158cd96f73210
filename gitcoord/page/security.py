"""The gate in front of the page: Host and Origin, the one-time link, the session, and the size of a request.

A browser proves itself by two secrets that it gets for the link's key: a cookie, which scripts cannot read, and a page key, which only
scripts of this origin can read. The cookie alone is not enough, since browsers send it to every port of this machine: also to a server
that an agent wrote.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from hashlib import sha256
from typing import Any

from gitcoord.base.codec import dumps
from gitcoord.git.files import read_file

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST = 16 << 10  # bytes of a request's body
MOST_SESSIONS = 16
SESSION = "/api/session"
STREAM = "/api/stream"
_API = "/api/"
_KEY = b"x-gitcoord-page"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Sessions:
    """The link that was not used yet, and the browsers that used one."""

    def __init__(self, port: int) -> None:
        self.cookie = f"gitcoord-page-{port}"  # cookies are shared by all ports of a host
        self.link_key = ""
        self._hashes: list[tuple[bytes, bytes]] = []  # of cookie and page key
        self.renew_link()

    def renew_link(self) -> None:
        self.link_key = secrets.token_urlsafe(32)

    def open(self, link_key: str) -> tuple[str, str] | None:
        """(cookie, page key) for the key of the link, which is void from then on; None for any other."""
        if not hmac.compare_digest(_hash(link_key), _hash(self.link_key)):
            return None
        self.renew_link()
        cookie, key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._hashes = [*self._hashes[1 - MOST_SESSIONS :], (_hash(cookie), _hash(key))]
        return cookie, key

    def has(self, cookie: str, key: str) -> bool:
        given = (_hash(cookie), _hash(key))
        found = [
            hmac.compare_digest(c, given[0]) and hmac.compare_digest(k, given[1]) for c, k in self._hashes
        ]  # all are compared
        return any(found)

    def set_cookie(self, value: str) -> str:
        return f"{self.cookie}={value}; Path=/; HttpOnly; SameSite=Strict"


def _hash(text: str) -> bytes:
    return sha256(text.encode("utf-8", "replace")).digest()


def is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """The name in a Host header, without its port; '' where it is none."""
    name, bracket, rest = host.partition("]") if host.startswith("[") else (host, "", "")
    if bracket:
        name, port = name[1:], rest.removeprefix(":") if rest else "0"
    else:
        name, _, port = host.partition(":")
        port = port or "0"
    return name.lower() if port.isascii() and port.isdecimal() else ""


def serves(listen: str, host: str) -> bool:
    """Return whether a page that listens at this address answers to this Host. Names are what DNS rebinding needs, so beside 'localhost'
    only the name that was asked for counts; behind a forwarded port the port may be any."""
    name = host_name(host)
    if is_loopback(listen):
        return is_loopback(name)
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return name in ("localhost", listen.lower())


def of_another_user(peer: str, port: int) -> bool:
    """Return whether this connection on the loopback interface comes from a process of another user of this machine, as far as is known.
    The link may be seen by all in the list of processes while a browser is opened with it."""
    if not is_loopback(peer):
        return False
    for table in ("tcp", "tcp6"):
        for line in read_file(f"/proc/net/{table}", 16 << 20).decode("ascii", "replace").split("\n")[1:]:
            words = line.split()
            if len(words) > 7 and words[3] == "01" and words[1].endswith(f":{port:04X}") and _is_here(words[1]):
                if int(words[7]) not in (0, os.getuid()):
                    return True
    return False


def _is_here(local: str) -> bool:
    """Is this hexadecimal address of the kernel's table on the loopback interface?"""
    address = local.partition(":")[0]
    return address.endswith("7F") or address == "00000000000000000000000001000000"


class Gate:
    """ASGI: refuses what does not come from the page itself, and puts the headers on every answer."""

    def __init__(self, app: App, sessions: Sessions, listen: str) -> None:
        self._app = app
        self._sessions = sessions
        self._listen = listen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None  # a websocket: closed

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            return await answer(send_with_headers, *refusal)
        await self._app(scope, _bounded(receive), send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """(status, code, message) of a request that is refused."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        hosts = headers.get(b"host", [])
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not serves(self._listen, host):
            return 421, "host", "this page does not answer to that name"
        method = scope["method"]
        if method not in ("GET", "HEAD", "POST"):
            return 405, "method", "only GET and POST"
        path: str = scope["path"]
        origins = [value.decode("latin-1") for value in headers.get(b"origin", [])]
        if origins not in ([], [f"http://{host}"]) or (method == "POST" and not origins):
            return 403, "origin", "that comes from another site"
        if path.startswith(_API):
            site = headers.get(b"sec-fetch-site", [])
            if site not in ([], [b"same-origin"]):
                return 403, "origin", "that comes from another site"
        if method == "POST":
            kind = b"".join(headers.get(b"content-type", [])).partition(b";")[0].strip().lower()
            if kind != b"application/json":
                return 415, "type", "only application/json"
            size = b"".join(headers.get(b"content-length", [b"0"]))
            if not size.isdigit() or int(size) > LARGEST:
                return 413, "size", f"more than {LARGEST} bytes"
        if path.startswith(_API) and path != SESSION and not self._is_known(scope, headers):
            return 401, "session", "this browser has not used the link of this page"
        return None

    def _is_known(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> bool:
        cookies = [part.strip() for value in headers.get(b"cookie", []) for part in value.decode("latin-1").split(";")]
        mine = [part.partition("=")[2] for part in cookies if part.partition("=")[0] == self._sessions.cookie]
        key = b"".join(headers.get(_KEY, []))
        if scope["path"] == STREAM:  # an EventSource sends no header of ours
            key = scope["query_string"].removeprefix(b"key=")
        return len(mine) == 1 and self._sessions.has(mine[0], key.decode("latin-1"))


def _bounded(receive: Receive) -> Receive:
    """The body of a request, ended by a disconnect where it is larger than it may be: no header has to say so before."""
    left = LARGEST

    async def receive_some() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return receive_some


async def answer(send: Send, status: int, code: str, message: str) -> None:
    """An error as JSON, on a connection that ends with it."""
    body = dumps({"ok": False, "error": code, "message": message, "hints": []}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
