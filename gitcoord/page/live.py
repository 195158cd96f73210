"""The one watcher of the ledger for all open pages: one computation of the overview, told to every page.

All reading happens in one thread, which has the repository open; the event loop stays free to answer. Pages are told that something
changed, and ask for what they show. Without an open page nothing is computed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from gitcoord.base.codec import dumps
from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import LEDGER
from gitcoord.cli.caller import Caller, Row
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.watch import Follower, Place, place_now
from gitcoord.page.answers import NEEDS
from gitcoord.page.history import History, timeline_row
from gitcoord.radar.kept import may_look, read_kept, standing_conflicts
from gitcoord.terminal.call import Call
from gitcoord.views.cli_top import look

MOST_STREAMS = 64
HEARTBEAT = 15.0  # seconds after which a silent stream says that it is there
_EVERY = 5.0  # seconds between looks where the ledger does not move
_SOONEST = 0.1  # seconds between looks where it moves all the time
_KEPT = 500  # events for pages that come back


class Live:
    """The newest overview and the last events. Its methods are called in the event loop; what they read is read in the thread."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._thread = ThreadPoolExecutor(1, "gitcoord-page")
        self._radar = ThreadPoolExecutor(1, "gitcoord-radar")
        self._radar_caller = Caller()
        self._around: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self._opened = asyncio.Event()
        self._streams: set[asyncio.Event] = set()
        self._place: Place | None = None
        self.looked_at = 0.0  # on the monotonic clock
        self._looking = asyncio.Lock()
        self._key: tuple[object, ...] = ()
        self.model: Row = {}
        self.version = 0
        self.events: deque[Row] = deque(maxlen=_KEPT)
        self.trouble = ""  # why the last look failed
        self.history = History()
        self.closing = False

    async def ask(self, question: Callable[[Call], Row]) -> tuple[Row, bool]:
        """Let the thread answer: (answer, whether it is an error)."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._caller.ask, question)

    def moved(self) -> None:
        """The ledger has moved, or may have."""
        self._moved.set()

    async def run(self) -> None:
        """Look when the ledger moves and every few seconds, while a page is open."""
        while not self.closing:
            if not self._streams:
                self._opened.clear()
                await self._opened.wait()
            began = time.monotonic()
            await self.look()
            cost = time.monotonic() - began
            await asyncio.sleep(max(_SOONEST, cost))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), max(_EVERY, 24 * cost))

    async def current(self) -> Row:
        """The overview of the ledger as it is now. Where no page is open, also heartbeats are looked at again after a while."""
        old = not self._streams and time.monotonic() - self.looked_at > _EVERY
        if old or not (await self.ask(self._is_newest))[0].get("newest"):
            await self.look()
        return self.model

    def _is_newest(self, call: Call) -> Row:
        return {"newest": call.ctx.store.resolve([LEDGER])[0] == self.model.get("ledger")}

    async def look(self) -> None:
        """Read what is new: events are told before the overview is computed, which takes longer."""
        async with self._looking:
            self._moved.clear()
            found, wrong = await self.ask(self._news)
            if not wrong and found["events"]:
                self.events.extend(found["events"])
                self._tell()
            found, wrong = await self.ask(_overview)
            self.looked_at = time.monotonic()
            self.trouble = str(found["message"]) if wrong else ""
            if not wrong:
                self.model = found["model"]
                if found["may_look"] and (self._around is None or self._around.done()):
                    self._around = asyncio.create_task(self._look_around())
            key = (self.trouble, _lasting(self.model))
            if key != self._key:
                self._key = key
                self.version += 1
            self._tell()

    async def _look_around(self) -> None:
        """Look for work that will conflict, beside all else: pages need not wait for that."""
        loop = asyncio.get_running_loop()
        found, wrong = await loop.run_in_executor(self._radar, self._radar_caller.ask, _look_around)
        if not wrong and found["changed"]:
            self._moved.set()

    def _news(self, call: Call) -> Row:
        """The events since the last look. After a rewind there is no way on: pages begin anew."""
        if self._place is None:
            self._place = place_now(call.ctx)
            return {"events": []}
        follower = Follower(call.ctx, self._place)
        try:
            rows = [timeline_row(commit) for commit, _ in follower.new()]
        except GitcoordError:
            self._place = None
            self.events.clear()
            raise
        self._place = follower.place
        return {"events": rows}

    # --- streams

    def is_full(self) -> bool:
        return len(self._streams) >= MOST_STREAMS

    def _tell(self) -> None:
        for stream in self._streams:
            stream.set()

    async def stream(self, last: int) -> AsyncIterator[str]:
        """Server-sent events for one page. `last`: the number of the event that it saw last, where it comes back. A page that does not
        read gets less: only its newest message waits."""
        woken = asyncio.Event()
        self._streams.add(woken)
        self._opened.set()
        version = -1
        try:
            yield "retry: 1000\n\n"
            await self.current()
            last = last or self._last()
            while not self.closing:
                if version != self.version or last < self._last():
                    version = self.version
                    yield self._message(last)
                    last = self._last()
                woken.clear()
                try:
                    await asyncio.wait_for(woken.wait(), HEARTBEAT)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._streams.discard(woken)

    def _last(self) -> int:
        return int(str(self.events[-1]["seq"])) if self.events else int(self.model.get("seq", 0))

    def _message(self, last: int) -> str:
        rows = [row for row in self.events if int(str(row["seq"])) > last]
        first = int(str(self.events[0]["seq"])) if self.events else self._last() + 1
        told = {
            "seq": self._last(), "version": self.version, "events": rows, "gap": last + 1 < first and last < self._last(),
            "trouble": self.trouble,
        }  # fmt: skip
        return f"id: {self._last()}\nevent: change\ndata: {dumps(told)}\n\n"

    def close(self) -> None:
        self.closing = True
        self._moved.set()
        self._opened.set()
        self._tell()

    async def end(self) -> None:
        """Let the threads finish what they are at, and close the repository there."""
        if self._around is not None:
            await self._around
        for thread, caller in ((self._radar, self._radar_caller), (self._thread, self._caller)):
            thread.submit(caller.close)
            await asyncio.to_thread(thread.shutdown)


def _overview(call: Call) -> Row:
    """The overview with what is known of work that will conflict, and whether it is time to look for that again."""
    model = look(call, looks=False)
    snapshot = call.ctx.snapshot
    return {"model": model, "may_look": snapshot is not None and may_look(call.ctx, snapshot.state)}


def _look_around(call: Call) -> Row:
    before = read_kept(call.ctx).conflicts
    after, _ = standing_conflicts(call.ctx, read_snapshot(call.ctx, trusting=True).state)
    return {"changed": tuple(after) != before}


def _lasting(model: Row) -> str:
    """The overview without what changes with time alone, to tell whether pages have to draw anew."""
    if not model:
        return ""
    claims = [{k: v for k, v in row.items() if k != "expires_in_seconds"} for row in model["claims"]]
    agents = [{k: v for k, v in row.items() if k != "silent_seconds"} for row in model["agents"]]
    needs = [[row["kind"], row["subject"]] for key in NEEDS for row in model[key]]
    timely = ("as_of_seconds", "claims", "agents", *NEEDS)
    return dumps([{k: v for k, v in model.items() if k not in timely}, claims, agents, needs])
