"""Supervises a child process: sends heartbeats, forwards signals, ends the child on a kill or a timeout.

The child stays in the terminal's foreground group, so Ctrl-C reaches it directly. Its orphans become children of the supervisor
(a subreaper, on Linux), so that a kill finds them too.
"""

from __future__ import annotations

import gc
import os
import signal
import time

from gitcoord.base.errors import GitcoordError, Refused, UsageError
from gitcoord.base.names import SESSIONS, printable, session_ref
from gitcoord.claims.cli_sleep import Bell
from gitcoord.git.files import read_file
from gitcoord.git.host import process_state
from gitcoord.git.process import STARTED
from gitcoord.ledger.format import format_record
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import parse_heartbeat
from gitcoord.radar.around import around
from gitcoord.sessions import service as sessions
from gitcoord.terminal.call import Call

GRACE = 10.0
_LONGEST = 10.0
_STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, *_STOPPING)


def spawn(command: list[str], env: dict[str, str], *, to_stderr: bool = False) -> int:
    """Start the command with our terminal; `to_stderr` keeps its output out of our own."""
    actions = [(os.POSIX_SPAWN_DUP2, 2, 1)] if to_stderr else []
    try:
        return os.posix_spawnp(
            command[0], command, env, file_actions=actions, setsigmask=[], setsigdef=[signal.SIGPIPE, signal.SIGINT]
        )
    except OSError as error:
        raise UsageError(f"cannot run '{printable(command[0])}': {error.strerror}") from None


def exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def block_signals() -> None:
    """Block signals: `watch` reads them, so none interrupts a step that must be finished."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


_typed: dict[int, float] = {}  # when the terminal last sent a signal


def is_echo(came: int, sender: int) -> bool:
    """Return whether this is the second copy of a Ctrl-C: `git`, our parent, forwards signals that the whole group got.

    An agent would take two of them for a request to exit.
    """
    now = time.monotonic()
    if not sender:
        _typed[came] = now
        return False
    return sender == os.getppid() and now - _typed.get(came, -GRACE) < GRACE


class Supervisor:
    """Supervises one child after another, under one agent's name."""

    def __init__(self, call: Call, actor: Actor) -> None:
        self._call = call
        self._ctx = call.ctx
        self._actor = actor
        self._pid = 0
        self._killed_at = 0.0  # when the agent was killed: all descendants end
        self._late_at = 0.0  # when the child's time was up: it ends with its descendants
        self._deadline = 0.0
        self._warned = ""
        self._asked: set[int] = set()
        self.stopped_by = 0  # the last signal that told the child to stop

    @property
    def killed(self) -> bool:
        return bool(self._killed_at)

    @property
    def late(self) -> bool:
        return bool(self._late_at)

    def start(self, command: list[str], env: dict[str, str], *, to_stderr: bool = False) -> int:
        gc.enable()  # the installed commands run without it, since they are short-lived
        become_subreaper()
        block_signals()
        self._pid = spawn(command, env, to_stderr=to_stderr)
        return self._pid

    def watch(self, seconds: int = 0) -> int:
        """Wait until the child ends, or end it after `seconds` (0: never); gives its exit code."""
        self._late_at, self._deadline = 0.0, time.monotonic() + seconds if seconds else 0.0
        bell = Bell(f"{self._ctx.repo.common_dir}/{SESSIONS}")
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._end_descendants(bell)
                bell.close()
                # The signal that ended the child may still be pending.
                self.stopped_by = self.stopped_by or next(iter(signal.sigpending() & {*_STOPPING}), 0)
                return exit_code(status)
            self._reap()
            came, sender = bell.wait(self._pause(), *_SIGNALS)
            if came in _STOPPING:
                self.stopped_by = came
            if is_echo(came, sender):
                continue
            if came in (signal.SIGTERM, signal.SIGHUP) or (came in (signal.SIGINT, signal.SIGQUIT) and sender):
                os.kill(self._pid, came)  # the child gets signals from the terminal itself

    def _pause(self) -> float:
        """Send a heartbeat or end the child, if due; gives how long to sleep."""
        if self._killed_at:
            return self._terminate(self._killed_at, os.getpid())
        pause = self._beat()
        if self._killed_at or not self._deadline:
            return pause
        now = time.monotonic()
        if now < self._deadline:
            return min(pause, self._deadline - now)
        self._late_at = self._late_at or now
        return self._terminate(self._late_at, self._pid)

    def _end_descendants(self, bell: Bell) -> None:
        """After a kill, end the descendants that are left."""
        while self._killed_at and time.monotonic() - self._killed_at < GRACE + 2 and descendants(os.getpid()):
            self._reap()
            bell.wait(self._terminate(self._killed_at, os.getpid()), *_SIGNALS)

    def _reap(self) -> None:
        """Collect orphans that ended. gitcoord's own children are collected where they were started."""
        for pid in descendants(os.getpid()):
            if pid != self._pid and process_state(pid) == "Z":
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    continue  # not a child of this process

    def _beat(self) -> float:
        """Send a heartbeat if one is due; gives how long to sleep. Failures of the store are only warned of."""
        try:
            if not sessions.beat(self._ctx, self._actor, patient=True):
                self.warn("the session of this agent was ended by others")
            self._look_around()
            self._look_at_waits()
        except Refused:
            self.warn(f"'{self._actor.agent}' was killed: ending it")
            self._killed_at = time.monotonic()
            return self._terminate(self._killed_at, os.getpid())
        except (GitcoordError, OSError) as error:
            self.warn(f"no heartbeat: {error}")
        return min(_LONGEST, self._slot() / 3)

    def _look_around(self) -> None:
        """Look for work that will conflict, if that is due: agents are told of it at their next command."""
        snapshot = self._ctx.snapshot
        try:
            if snapshot is not None and around(self._ctx, str(format_record(snapshot.state).sync)):
                from gitcoord.radar.kept import standing_conflicts

                standing_conflicts(self._ctx, snapshot.state)
        except (GitcoordError, OSError):
            pass  # the child goes on without

    def _look_at_waits(self) -> None:
        """Tell the alert command, if one is set, where the agent waits for too long: its own commands may have ended."""
        if self._ctx.settings.get("gitcoord.alert"):
            from gitcoord.views.overdue import alert_of_late_waits

            alert_of_late_waits(self._ctx, self._actor.agent)

    def _slot(self) -> float:
        try:
            (found,) = self._ctx.store.read([session_ref(self._actor.agent)])
            return parse_heartbeat(found).slot / 1000 if found is not None else 3.0
        except GitcoordError:
            return 3.0

    def _terminate(self, since: float, root: int) -> float:
        """Send TERM to the child and all below `root`, KILL after the grace period."""
        late = time.monotonic() - since > GRACE
        for pid in [self._pid, *descendants(root)]:
            if not late and pid in self._asked:
                continue
            self._asked.add(pid)
            try:
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            except (ProcessLookupError, PermissionError):
                pass
        return 0.5

    def warn(self, words: str) -> None:
        if words != self._warned:
            self._call.screen.note(f"gitcoord: {printable(words)}")
            self._warned = words


def become_subreaper() -> None:
    """Make orphans of the child our children. Without that they escape a kill, but the gates still refuse them."""
    import ctypes

    try:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    except (OSError, AttributeError):
        pass


def descendants(root: int) -> list[int]:
    """All processes below this one, without gitcoord's own children."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdecimal():
            stat = read_file(f"/proc/{entry}/stat")
            if stat:
                children.setdefault(int(stat.rpartition(b") ")[2].split()[1]), []).append(int(entry))
    found: list[int] = []
    todo = [pid for pid in children.get(root, []) if pid not in STARTED]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found
