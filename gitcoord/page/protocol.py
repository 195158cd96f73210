"""HTTP with bounds: how many connections at once, and how long one may take to send a request."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 160
MOST_HEADER = 16 << 10  # bytes
REQUEST_SECONDS = 10.0  # until a whole request has come


class BoundedProtocol(H11Protocol):
    """uvicorn bounds neither: a connection that sends nothing, or a byte a minute, would stay."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._expect()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def _expect(self) -> None:
        """A whole request has to come in time."""
        self._disarm()
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body:  # else a whole request is being answered
            self.transport.abort()


def options() -> dict[str, Any]:
    """The settings of uvicorn: no access log, no guessing from headers of proxies, no websockets."""
    return {
        "http": BoundedProtocol, "ws": "none", "loop": "asyncio", "lifespan": "on", "log_config": None, "log_level": "critical", "access_log": False,
        "server_header": False, "proxy_headers": False, "limit_concurrency": MOST_CONNECTIONS + 1, "timeout_keep_alive": 5,
        "timeout_graceful_shutdown": 1, "h11_max_incomplete_event_size": MOST_HEADER, "backlog": 128,
    }  # fmt: skip
