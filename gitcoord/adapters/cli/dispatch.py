"""`git coord dispatch`: one at a time, it keeps as many workers at work as there is work for, up to the cap."""

import os
import signal
import time

from gitcoord.adapters.cli.supervise import GRACE, exit_code
from gitcoord.app import sessions, tasks
from gitcoord.app.claims import release, take
from gitcoord.app.ledger import read_snapshot, settle
from gitcoord.core.asking import Take
from gitcoord.core.claims import Item
from gitcoord.core.sessions import Actor
from gitcoord.core.tasks import ACTIVE, ASSIGNED, all_held, ready
from gitcoord.core.workers import parse_workers
from gitcoord.errors import GitcoordError, Refused, UsageError
from gitcoord.hot.verbs import Call
from gitcoord.hot.wait import Bell
from gitcoord.names import LEDGER, check_agent, printable

DISPATCHER = Item("resource", "dispatcher")
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_LONGEST = 10.0
_QUICK, _SLOWEST = 2.0, 60.0  # a worker that ends sooner than this did nothing: the next one waits, longer each time


def run_dispatch(call: Call, command: list[str], *, most: int, name: str, until_empty: bool) -> int:
    """0 when the queue is empty, where that was asked for; else until it is stopped."""
    actor = call.actor()
    check_agent(f"{name}-1")
    cap = _cap(call, most)
    take(call.ctx, Take(actor, (DISPATCHER,), ttl=60, reason="starts workers"))
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    crew = Crew(call, actor, command, name)
    bell = Bell(f"{call.ctx.repo.common_dir}/{LEDGER.rpartition('/')[0]}")
    try:
        while True:
            crew.reap()
            crew.end_lost(_collect(call, actor))
            todo, going = _work(call)
            if until_empty and not todo and not going and not crew.workers:
                return 0
            pause = crew.fill(min(cap, todo + crew.at_work(going)))
            came, _ = bell.wait(min(pause, _LONGEST), *_SIGNALS)
            if came in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                return 128 + came
    finally:
        bell.close()
        crew.dismiss()
        try:
            release(call.ctx, actor, (DISPATCHER,))
        except (GitcoordError, OSError) as error:
            call.screen.note(f"gitcoord: the dispatcher's claim stays until its ttl: {printable(str(error))}")


def _cap(call: Call, most: int) -> int:
    from gitcoord.app.facts import project_settings

    caps = parse_workers(project_settings(call.ctx, read_snapshot(call.ctx))).caps
    known = [cap for cap in (most, caps.get("", 0)) if cap]
    if not known:
        raise UsageError(
            "how many workers at once?",
            hints=("say --max <n>, or set it for all: [workers] cap = 4 in .gitcoord/config",),
        )
    return min(known)


def _collect(call: Call, actor: Actor) -> list[str]:
    """A sign of life, and the tasks of the lost back into the queue; gives the workers that lost theirs."""
    try:
        sessions.beat(call.ctx, actor)
        rows: list[dict[str, str]] = tasks.collect(call.ctx, actor)["lapsed"]  # type: ignore[assignment]
    except Refused:
        raise
    except (GitcoordError, OSError) as error:
        call.screen.note(f"gitcoord: {printable(str(error))}")
        return []
    for row in rows:
        call.screen.note(f"{row['id']} of {row['agent']} was left behind: it is {row['to']}")
    return [row["agent"] for row in rows]


def _work(call: Call) -> tuple[int, list[str]]:
    """How many tasks could be taken, and who is at work on one."""
    snapshot = read_snapshot(call.ctx, ahead=(("names", "work/ready"), ("below", "work/of")))
    view = call.ctx.view()
    open_tasks = settle(call.ctx, snapshot, view, lambda state, view: len(ready(state)))
    held = settle(call.ctx, snapshot, view, lambda state, view: all_held(state))
    return open_tasks, [row.agent for row in held if row.state in (ACTIVE, ASSIGNED)]


class Crew:
    """The workers that this dispatcher launched."""

    def __init__(self, call: Call, actor: Actor, command: list[str], name: str) -> None:
        self._call = call
        self._actor = actor
        self._command = command
        self._name = name
        self._count = 0
        self._wait_until = 0.0
        self._delay = 0.0
        self.workers: dict[int, tuple[str, float]] = {}  # pid -> name, when it began
        self._ending: dict[int, float] = {}

    def at_work(self, going: list[str]) -> int:
        """How many of ours have a task, so that those who wait for one are not counted as needed."""
        ours = {name for name, _ in self.workers.values()}
        return len(ours & set(going))

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
        name = f"{self._name}-{self._count}"
        pid = os.fork()
        if not pid:
            _become(self._command, name)
        self.workers[pid] = (name, time.monotonic())
        self._call.screen.note(f"started {name}")

    def reap(self) -> None:
        for pid in list(self.workers):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                if pid in self._ending and time.monotonic() - self._ending[pid] > GRACE:
                    os.kill(pid, signal.SIGKILL)
                continue
            name, began = self.workers.pop(pid)
            self._ending.pop(pid, None)
            code = exit_code(status)
            self._call.screen.note(f"{name} ended ({code})")
            lived = time.monotonic() - began
            self._delay = 0.0 if lived > _QUICK else min(_SLOWEST, max(0.25, self._delay * 2))
            self._wait_until = time.monotonic() + self._delay

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


def _become(command: list[str], name: str) -> None:
    """In the child: be `git coord run --as <name> -- <command>`, with nothing of the dispatcher's but its terminal."""
    code = 4
    try:
        from gitcoord.adapters.cli.coord import main

        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        code = main(["run", "--as", name, "--", *command])
    finally:
        os._exit(code)
