"""`git coord dispatch`: the one process that starts workers, as many as there are tasks for, up to the cap."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from gitcoord.base.errors import GitcoordError, Refused, UsageError, refused
from gitcoord.base.names import LEDGER, check_agent, printable
from gitcoord.claims.cli_sleep import Bell
from gitcoord.claims.facts import project_settings
from gitcoord.claims.model import Item, overlapping, own_claim
from gitcoord.claims.service import release, take
from gitcoord.claims.take import Take
from gitcoord.git.files import read_file
from gitcoord.git.locks import flock
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import transact
from gitcoord.sessions import service as sessions
from gitcoord.sessions.cli_supervisor import GRACE, become_subreaper, descendants, exit_code
from gitcoord.tasks.events.lapse import Collect, decide
from gitcoord.tasks.model import ACTIVE, ASSIGNED, all_held, ready
from gitcoord.tasks.workers import Workers, parse_workers
from gitcoord.terminal.call import Call, number
from gitcoord.terminal.parser import Values

DISPATCHER = Item("resource", "dispatcher")
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_LONGEST = 10.0
_TO_GIVE_BACK = 10.0  # for a launcher to end the session of a worker that had to be killed
_QUICK, _SLOWEST = 2.0, 60.0  # a worker that ends sooner than this did nothing: the next one waits, longer each time


def dispatch(call: Call, values: Values, command: list[str]) -> int:
    """0 when the queue is empty, where that was asked for; else until it is stopped."""
    actor = call.actor()
    name = str(values.get("as", "worker"))
    check_agent(f"{name}-1")
    settings = parse_workers(project_settings(call.ctx, read_snapshot(call.ctx)))
    cap = _cap(settings, number(values, "max"))
    longest = min(_LONGEST, settings.heartbeat)  # a missing heartbeat sends no notification
    lock = DispatcherLock(call, actor)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    crew = Crew(call, command, name, lock)
    told = False
    bell = Bell(f"{call.ctx.repo.common_dir}/{LEDGER.rpartition('/')[0]}")
    try:
        while True:
            crew.reap()
            crew.end_lost(_collect(call, actor))
            lock.keep()
            todo, going = _work(call)
            if values.get("until-empty") and not todo and not going and not crew.workers:
                return 0
            strays = crew.strays(going)
            pause = crew.fill(min(cap - strays, todo + crew.at_work(going)))
            if not todo and not crew.workers and not told:
                told = True
                call.screen.note("waiting for tasks")
            came, _ = bell.wait(min(pause, longest), *_SIGNALS)
            if came in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                return 128 + came
    finally:
        bell.close()
        crew.dismiss()
        lock.leave()


class DispatcherLock:
    """The dispatcher's place: a file that one process of this machine holds, and a claim that one agent holds.

    The claim alone is not enough, since its holder may take it again from another process. A dispatcher whose claim is gone, or
    was granted to another process, ends.
    """

    def __init__(self, call: Call, actor: Actor) -> None:
        self._call = call
        self._actor = actor
        self.held = flock.acquire(call.ctx.scratch("dispatch.lock"))
        if self.held < 0:
            raise refused("dispatching", f"there is a dispatcher: @{DISPATCHER.name} is held by {self._holder()}")
        self._reason = f"starts workers ({call.ctx.host.random()[:8]})"
        self._token = self._take()

    def _holder(self) -> str:
        claims = overlapping(read_snapshot(self._call.ctx).state, DISPATCHER)
        return ", ".join(claim.agent for claim in claims) or "another process of this machine"

    def _take(self) -> int:
        result: Any = take(self._call.ctx, Take(self._actor, (DISPATCHER,), ttl=60, reason=self._reason))
        return int(result["claims"][0]["token"])

    def keep(self) -> None:
        """Refused where the place is another's now."""
        own = own_claim(read_snapshot(self._call.ctx).state, DISPATCHER, self._actor.agent)
        if own is None:
            self._token = self._take()  # it had expired
        elif own.token != self._token:
            raise refused("dispatching", f"another process dispatches as '{self._actor.agent}' now")

    def leave(self) -> None:
        try:
            self.keep()
            release(self._call.ctx, self._actor, (DISPATCHER,))
        except (GitcoordError, OSError) as error:
            self._call.screen.note(f"gitcoord: the dispatcher's claim was not released: {printable(str(error))}")
        flock.release(self.held)


def _cap(settings: Workers, most: int) -> int:
    known = [cap for cap in (most, settings.caps.get("", 0)) if cap]
    if not known:
        raise UsageError(
            "how many workers at once?",
            hints=("say --max <n>, or set it for all: [workers] cap = 4 in .gitcoord/config",),
        )
    return min(known)


def _collect(call: Call, actor: Actor) -> list[str]:
    """Send a heartbeat and open tasks again whose owners are lost; gives these owners."""
    try:
        sessions.beat(call.ctx, actor)
        rows = transact(call.ctx, decide, Collect(actor))["lapsed"]
    except Refused:
        raise
    except (GitcoordError, OSError) as error:
        call.screen.note(f"gitcoord: {printable(str(error))}")
        return []
    for row in rows:
        call.screen.note(f"{row['id']} of {row['agent']} was left behind: it is {row['to']}")
    return [row["agent"] for row in rows]


def _work(call: Call) -> tuple[int, list[str]]:
    """The number of ready tasks, and the agents that have one."""
    state = read_snapshot(call.ctx, prefetch=(("names", "work/ready"), ("below", "work/of"))).state
    return len(ready(state)), [row.agent for row in all_held(state) if row.state in (ACTIVE, ASSIGNED)]


class Crew:
    """The workers that this dispatcher launched."""

    def __init__(self, call: Call, command: list[str], name: str, lock: DispatcherLock) -> None:
        self._call = call
        self._command = command
        self._name = name
        self._lock = lock
        self._count = 0
        self._wait_until = 0.0
        self._delay = 0.0
        self.workers: dict[int, tuple[str, float]] = {}  # pid -> name, when it began
        self._ending: dict[int, float] = {}
        self._others: set[str] = set()
        become_subreaper()  # orphans of a killed launcher become our children

    def at_work(self, going: list[str]) -> int:
        """The number of these workers that have a task. Idle ones are not counted as needed."""
        return len(self._names() & set(going))

    def strays(self, going: list[str]) -> int:
        """The number of workers of an earlier dispatcher that have a task. They count, and keep their names."""
        begin = f"{self._name}-"
        self._others = {agent for agent in going if agent.startswith(begin) and agent[len(begin) :].isdecimal()}
        self._others -= self._names()
        return len(self._others)

    def _names(self) -> set[str]:
        return {name for name, _ in self.workers.values()}

    def fill(self, wanted: int) -> float:
        """Start workers up to that many; gives how long to wait before looking again."""
        now = time.monotonic()
        if len(self.workers) >= wanted:
            return _LONGEST
        if now < self._wait_until:
            return self._wait_until - now
        while len(self.workers) < wanted:
            self._start()
        return _LONGEST

    def _start(self) -> None:
        self._count += 1
        while f"{self._name}-{self._count}" in self._others:
            self._count += 1
        name = f"{self._name}-{self._count}"
        pid = os.fork()
        if not pid:
            _become(self._command, name, self._lock.held)
        self.workers[pid] = (name, time.monotonic())
        self._call.screen.note(f"started {name}")

    def reap(self) -> None:
        for pid in list(self.workers):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                if pid in self._ending and time.monotonic() - self._ending[pid] > GRACE:
                    self._end_by_force(pid)
                continue
            name, began = self.workers.pop(pid)
            self._ending.pop(pid, None)
            if os.WIFSIGNALED(status):
                self._end_orphans(name)
            self._call.screen.note(f"{name} ended ({exit_code(status)})")
            self._delay = backoff(self._delay, time.monotonic() - began)
            self._wait_until = time.monotonic() + self._delay

    def _end_by_force(self, pid: int) -> None:
        """Kill the launcher's descendants first, so that it can still release the worker's claims; then the launcher."""
        below = descendants(pid)
        for each in below:
            _kill(each)
        if time.monotonic() - self._ending[pid] > GRACE + _TO_GIVE_BACK:
            _kill(pid)

    def _end_orphans(self, name: str) -> None:
        """End a worker whose launcher was killed, since nobody sends its heartbeats any more."""
        mark = f"GITCOORD_AGENT={name}".encode()
        for pid in descendants(os.getpid()):
            if pid not in self.workers and mark in read_file(f"/proc/{pid}/environ").split(b"\0"):
                _kill(pid)

    def end_lost(self, names: list[str]) -> None:
        """A worker whose task was given to others has nothing left to do here."""
        for pid, (name, _) in self.workers.items():
            if name in names and pid not in self._ending:
                self._ending[pid] = time.monotonic()
                os.kill(pid, signal.SIGTERM)

    def dismiss(self) -> None:
        """All end before the dispatcher does: TERM, and KILL after the grace."""
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)
            self._ending.setdefault(pid, time.monotonic())
        while self.workers:
            self.reap()
            if self.workers:
                signal.sigtimedwait([signal.SIGCHLD], 0.5)


def backoff(delay: float, lived: float) -> float:
    """The pause before the next worker, after one that lived this long."""
    return 0.0 if lived > _QUICK else min(_SLOWEST, max(0.25, delay * 2))


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _become(command: list[str], name: str, held: int) -> None:
    """In the child: be `git coord run --as <name> -- <command>`, with nothing of the dispatcher's but its terminal."""
    code = 4
    try:
        from gitcoord.cli.entry import main

        os.close(held)  # a worker that outlives the dispatcher does not keep the next one out
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        code = main("coord", ["run", "--as", name, "--", *command])
    finally:
        os._exit(code)
