"""The routes of the page: one page with its style and script, questions, the stream of changes, and actions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gitcoord.base.codec import dumps
from gitcoord.base.errors import refused
from gitcoord.cli.caller import Caller, Row
from gitcoord.page import answers
from gitcoord.page.actions import Plan, plan
from gitcoord.page.live import Live
from gitcoord.page.security import LARGEST, SESSION, STREAM, Sessions, of_another_user
from gitcoord.terminal.call import Call
from gitcoord.views.overview import overview_at
from gitcoord.views.past import snapshot_at

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STATUS = {"usage": 400, "store": 500, "session": 401}
_REASON = 1000  # characters


class About(NamedTuple):
    """The page's words about itself."""

    repository: str
    person: str  # who looks; '' where nobody is named
    acts: bool


class Page:
    """One server's handlers."""

    def __init__(self, caller: Caller, sessions: Sessions, about: About, told: Callable[[], None]) -> None:
        """`told`: called where the link was used, since there is a new one."""
        self.live = Live(caller)
        self._caller = caller
        self._sessions = sessions
        self._about = about
        self._told = told
        self._first: tuple[float, bytes] = (0.0, b"")  # the first page, and the look that it is of

    def app(self, serving: Callable[[Live], Any]) -> Starlette:
        """`serving`: a context manager around the time in which requests are answered; gives what shows the link."""

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            with serving(self.live) as show_link:
                await self.live.look()  # so that the first page has its answer at once
                show_link()
                watching = asyncio.create_task(self.live.run())
                yield
                self.live.close()
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
                await self.live.end()

        details = {
            "path": lambda call, model, word: answers.path_detail(call, word),
            "agent": lambda call, model, word: answers.agent_detail(call, model, self.live.history, word),
            "task": lambda call, model, word: answers.task_detail(call, word),
            "landing": lambda call, model, word: answers.landing_detail(call, model, self.live.history, word),
            "approval": lambda call, model, word: answers.approval_detail(call, word),
            "contention": lambda call, model, word: answers.contention(call, word or "7d"),
        }
        routes = [
            *(self._static(file) for file in files("gitcoord.page").joinpath("static").iterdir()),
            Route(SESSION, self._session, methods=["POST"]),
            Route(STREAM, self._stream, methods=["GET"]),
            Route("/api/overview", self._overview, methods=["GET"]),
            Route("/api/rows", self._rows, methods=["GET"]),
            Route("/api/timeline", self._timeline, methods=["GET"]),
            Route("/api/plan", self._plan, methods=["GET"]),
            Route("/api/act", self._act, methods=["POST"]),
            *(Route(f"/api/{name}", self._detail(look), methods=["GET"]) for name, look in details.items()),
        ]
        return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _not_found, 405: _not_allowed})

    # --- the page itself and its session

    def _static(self, file: Traversable) -> Route:
        data, kind = file.read_bytes(), _TYPES[f".{file.name.rpartition('.')[2]}"]

        async def get(request: Request) -> Response:
            return Response(data, media_type=kind)

        return Route("/" if file.name == "page.html" else f"/{file.name}", get, methods=["GET"])

    async def _session(self, request: Request) -> Response:
        """The key of the link becomes a cookie and a page key, once."""
        given = await _body(request)
        if isinstance(given, Response):
            return given
        peer = request.client
        if peer is not None and of_another_user(peer.host, peer.port):
            return _error(403, "user", "that is another user of this machine")
        found = self._sessions.open(str(given.get("key", "")))
        if found is None:
            return _error(401, "link", "this link was used before, or is of an earlier start")
        self._told()
        cookie, key = found
        return _json({"ok": True, "key": key}, headers={"set-cookie": self._sessions.set_cookie(cookie)})

    # --- looking

    async def _overview(self, request: Request) -> Response:
        """The first page of the overview; `seq`: as it was after that event."""
        word = request.query_params.get("seq", "")
        if word:
            number = _number(word)
            model, wrong = await self.live.ask(lambda call: self._past(call, number))
            return _answer(model if wrong else {**answers.first_page(model), "past": True, **self._self()}, wrong)
        model = await self.live.current()
        if not model:
            return _error(503, "store", self.live.trouble or "the ledger cannot be read")
        if self._first[0] != self.live.looked_at:  # made once for all pages
            row = {**answers.first_page(model), "past": False, **self._self()}
            self._first = (self.live.looked_at, dumps(row).encode())
        return Response(self._first[1], media_type="application/json")

    def _self(self) -> Row:
        return {
            **self._about._asdict(),
            "version": self.live.version,
            "trouble": self.live.trouble,
            "page": answers.PAGE,
        }

    def _past(self, call: Call, seq: int) -> Row:
        snapshot = snapshot_at(call.ctx, self.live.history.commit_at(call.ctx, seq))
        return {**overview_at(call.ctx, snapshot, call.actor_or_none()), "at": snapshot.event.at}

    async def _rows(self, request: Request) -> Response:
        """Further rows of one list, or those that have a text."""
        given = request.query_params
        name, offset, seq = given.get("list", ""), _number(given.get("offset", "0")), given.get("seq", "")
        if name not in answers.LISTS:
            return _error(400, "usage", "there is no such list")
        if seq:
            number = _number(seq)
            model, wrong = await self.live.ask(lambda call: self._past(call, number))
            if wrong:
                return _answer(model, wrong)
        else:
            model = await self.live.current()
        rows = answers.rows_of(model, name, given.get("find", "")[:200])
        return _json({"rows": rows[offset : offset + answers.PAGE], "count": len(rows), "offset": offset})

    async def _timeline(self, request: Request) -> Response:
        before = _number(request.query_params.get("before", "0"))
        return _answer(*await self.live.ask(lambda call: self.live.history.page(call.ctx, before, answers.PAGE)))

    def _detail(self, look: Callable[[Call, Row, str], Row]) -> Callable[[Request], Awaitable[Response]]:
        async def get(request: Request) -> Response:
            word = request.query_params.get("of", "")[:5000]
            model = await self.live.current()
            return _answer(*await self.live.ask(lambda call: look(call, model, word)))

        return get

    async def _stream(self, request: Request) -> Response:
        if self.live.is_full():
            return _error(503, "full", "too many pages are open")
        last = _number(request.headers.get("last-event-id", "0"))
        return StreamingResponse(self.live.stream(last), media_type="text/event-stream")

    # --- acting

    async def _plan(self, request: Request) -> Response:
        """The words of a confirmation: all that an action will do."""
        given = dict(request.query_params)
        model = await self.live.current()
        return _answer(*await self.live.ask(lambda call: self._planned(call, model, given).to_json()))

    def _planned(self, call: Call, model: Row, given: Row) -> Plan:
        if not self._about.acts:
            raise refused("read-only", "this page only shows: it was started without --act", "git coord page --act")
        return plan(call, model, given)

    async def _act(self, request: Request) -> Response:
        given = await _body(request)
        if isinstance(given, Response):
            return given
        await self.live.look()  # the plan is made anew from what is so now
        done = await self.live.ask(lambda call: self._done(call, given))
        await self.live.look()
        return _answer(*done)

    def _done(self, call: Call, given: Row) -> Row:
        made = self._planned(call, self.live.model, given)
        if made.seal != given.get("seal"):
            raise refused("changed", "it has changed since you were shown it: look again")
        reason = str(given.get("reason", ""))[:_REASON]
        for verb, values, words in made.steps(reason):
            row, wrong = self._caller.call(verb, values, list(words))
            if wrong:
                return row
        return row


# --- requests and answers ----------------------------------------------------------------------------------------------


async def _body(request: Request) -> Row | Response:
    """The JSON object that was posted, or the answer that there is none."""
    try:
        given = json.loads(await request.body())
    except ClientDisconnect:
        return _error(413, "size", f"more than {LARGEST} bytes")
    except (ValueError, RecursionError):
        return _error(400, "usage", "no JSON")
    return given if isinstance(given, dict) else _error(400, "usage", "no JSON object")


def _number(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 16):
        return 0
    return int(word)


def _json(row: Row, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(dumps(row), status, headers, media_type="application/json")


def _answer(row: Row, wrong: bool) -> Response:
    is_error = wrong or row.get("ok") is False
    return _json(row, _STATUS.get(str(row.get("error")), 409) if is_error else 200)


def _error(status: int, code: str, message: str) -> Response:
    return _json({"ok": False, "error": code, "message": message, "hints": []}, status, {"connection": "close"})


async def _not_found(request: Request, error: Exception) -> Response:
    return _error(404, "unknown", "there is nothing here")


async def _not_allowed(request: Request, error: Exception) -> Response:
    return _error(405, "method", "not by this method")
