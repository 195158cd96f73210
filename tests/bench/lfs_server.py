"""A small git-lfs lock server on the loopback interface, in memory: the peer that gitcoord is compared with.

It speaks the locking part of the git-lfs API (docs/api/locking.md of git-lfs) and nothing else, for one user, and keeps
connections open. `python -m tests.bench.lfs_server` prints its address and serves until its input ends.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import PIPE, Popen
from typing import Any
from urllib.parse import parse_qs, urlsplit

_TYPE = "application/vnd.git-lfs+json"
_WHEN = "2030-01-02T03:04:05Z"
Answer = tuple[int, dict[str, Any]]


class Locks:
    """The locks, by id and by path. Any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[str, dict[str, Any]] = {}
        self._by_path: dict[str, dict[str, Any]] = {}
        self._last = 0

    def create(self, path: str) -> Answer:
        with self._lock:
            held = self._by_path.get(path)
            if held is not None:
                return 409, {"lock": held, "message": "already created lock"}
            self._last += 1
            lock: dict[str, Any] = {"id": str(self._last), "path": path, "locked_at": _WHEN, "owner": {"name": "bench"}}
            self._by_id[lock["id"]] = self._by_path[path] = lock
            return 201, {"lock": lock}

    def listing(self, path: str, id: str) -> list[dict[str, Any]]:
        with self._lock:
            locks = [self._by_path[path]] if path in self._by_path else [] if path else list(self._by_id.values())
        return [lock for lock in locks if not id or lock["id"] == id]

    def remove(self, id: str) -> Answer:
        with self._lock:
            lock = self._by_id.pop(id, None)
            if lock is None:
                return 404, {"message": "no such lock"}
            del self._by_path[lock["path"]]
            return 200, {"lock": lock}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    locks = Locks()
    tuned = True

    def setup(self) -> None:
        super().setup()
        # An answer is two small writes. As the standard library's server comes, the second waits for the client's
        # delayed acknowledgement, which `git lfs unlock` with its two requests pays for; tuned, it does not.
        if self.tuned:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path != "/locks":
            self._answer((404, {"message": "not here"}))
            return
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self._answer(
            (200, {"locks": self.locks.listing(query.get("path", ""), query.get("id", "")), "next_cursor": ""})
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        path = urlsplit(self.path).path
        if path == "/locks":
            self._answer(self.locks.create(json.loads(body)["path"]))
        elif path == "/locks/verify":
            self._answer((200, {"ours": self.locks.listing("", ""), "theirs": [], "next_cursor": ""}))
        elif path.startswith("/locks/") and path.endswith("/unlock"):
            self._answer(self.locks.remove(path.split("/")[2]))
        else:
            self._answer((404, {"message": "not here"}))

    def _answer(self, answer: Answer) -> None:
        data = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Type", _TYPE)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def serve(*, tuned: bool) -> None:
    Handler.tuned = tuned
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


@contextmanager
def running(root: str, *, tuned: bool = True) -> Iterator[str]:
    """The server in a process of its own, so that it does not share an interpreter with the clock; gives its address."""
    with Popen(
        [sys.executable, "-m", "tests.bench.lfs_server", "tuned" if tuned else "plain"],
        cwd=root,
        stdin=PIPE,
        stdout=PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


if __name__ == "__main__":
    serve(tuned=sys.argv[1:] != ["plain"])
