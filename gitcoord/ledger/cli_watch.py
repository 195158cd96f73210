"""`git coord watch`: the ledger as a stream of events, each once and in order."""

from __future__ import annotations

import os
import signal
import tempfile
from time import localtime, strftime
from typing import Any, NamedTuple

from gitcoord.base.codec import dumps
from gitcoord.base.errors import refused
from gitcoord.base.names import check_word, covers, fold, printable, shown
from gitcoord.claims import pathspec as spelling
from gitcoord.claims.cli_sleep import Bell
from gitcoord.git.locks import flock
from gitcoord.ledger.cli import check_kind
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.event import Event
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.log import event_row, event_words, paths_of
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.watch import Follower, Place, load_cursor, place_before, place_now, save_cursor
from gitcoord.sessions.cli_supervisor import exit_code, is_echo
from gitcoord.terminal.call import Call, duration, number, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import put

_LONGEST = 15.0  # seconds between looks where no notification comes, for example over a network file system
_INTERVAL = 10  # seconds between two fetches from a remote authority
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(Exception):
    """The end of the stream: a signal, the last event that was asked for, or a command that failed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def watch(call: Call, values: Values, words: list[str]) -> int:
    name = str(values.get("name", ""))
    held = _lock_name(call, name) if name else -1
    try:
        wanted = Wanted.of(call, words_of(values, "kind"), words_of(values, "path"))
        aims = Aims(
            number(values, "since") if "since" in values else None,
            str(values.get("exec", "")),
            name,
            duration(values, "interval") or _INTERVAL,
            number(values, "until"),
            number(values, "count"),
        )
        return Watch(call, wanted, aims).run()
    finally:
        if held >= 0:
            flock.release(held)


def _lock_name(call: Call, name: str) -> int:
    """Lock this name: of two watchers with one name each would miss the events that the other delivered."""
    check_word(name, "name", 64)
    held = flock.acquire(call.ctx.scratch(f"watch/{name}.lock"))
    if held < 0:
        raise refused("watched", f"another process watches as '{name}'", "take a name of your own")
    return held


class Aims(NamedTuple):
    since: int | None
    execute: str
    name: str
    interval: int
    until: int
    most: int


class Wanted(NamedTuple):
    """A filter of events by kind and path."""

    kinds: frozenset[str]
    keys: tuple[str, ...]
    case: bool

    @staticmethod
    def of(call: Call, kinds: list[str], words: list[str]) -> Wanted:
        case = folds_case(read_snapshot(call.ctx).state)
        items = [spelling.one(call.ctx.repo, word) for word in words]
        return Wanted(
            frozenset(map(check_kind, kinds)), tuple(fold(shown(i.name, i.space), case=case) for i in items), case
        )

    def has(self, event: Event) -> bool:
        if self.kinds and event.kind not in self.kinds:
            return False
        if not self.keys:
            return True
        there = [fold(path, case=self.case) for path in paths_of(event)]
        return any(covers(key, path) or covers(path, key) for key in self.keys for path in there)


class Watch:
    """One watcher. It saves its place after each delivery, so a stop between two deliveries repeats no event and skips none."""

    def __init__(self, call: Call, wanted: Wanted, aims: Aims) -> None:
        self._call = call
        self._ctx = call.ctx
        self._wanted = wanted
        self._aims = aims
        self._given = 0
        self._saved: Place | None = None
        self._offline = ""
        self._stopped = 0  # the signal that told us to stop

    def run(self) -> int:
        """Signals are blocked while an event is delivered, and end the stream between two events."""
        directory = "reftable" if self._ctx.settings.get("extensions.refstorage") == "reftable" else "refs/heads"
        bell = Bell(f"{self._ctx.repo.common_dir}/{directory}")
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, *_STOPPING))
        try:
            self._look()
            follower = Follower(self._ctx, self._begin())
            while True:
                self._all(follower)
                self._pause(bell)
        except Ended as end:
            return end.code
        finally:
            bell.close()

    def _begin(self) -> Place:
        """The place to begin at: the last one of a named watcher, else --since."""
        place = load_cursor(self._ctx, self._aims.name) if self._aims.name else None
        if place is not None:
            read_snapshot(self._ctx)  # may this ledger be trusted?
            self._saved = place
            return place
        place = place_now(self._ctx) if self._aims.since is None else place_before(self._ctx, self._aims.since)
        self._save(place)
        return place

    def _all(self, follower: Follower) -> None:
        for commit, event in follower.new():
            if self._wanted.has(event):
                self._deliver(commit, event)
                self._given += 1
                self._save(follower.place)
            if self._is_enough(event.seq):
                self._save(follower.place)
                raise Ended(0)
            if self._stopped or signal.sigpending() & {*_STOPPING}:
                break
        self._save(follower.place)

    def _is_enough(self, seq: int) -> bool:
        aims = self._aims
        return bool((aims.until and seq >= aims.until) or (aims.most and self._given >= aims.most))

    def _save(self, place: Place) -> None:
        if self._aims.name and place != self._saved:
            save_cursor(self._ctx, self._aims.name, place)
            self._saved = place

    def _pause(self, bell: Bell) -> None:
        came = self._stopped or bell.wait(self._aims.interval if self._ctx.remote else _LONGEST, *_STOPPING)[0]
        if came in _STOPPING:
            raise Ended(130 if came == signal.SIGINT else 0)
        self._look()

    def _look(self) -> None:
        """Fetch from a remote authority, unless this clone has done so within the interval. If that fails, the events come later."""
        if not self._ctx.remote:
            return
        from gitcoord.ledger.remote.fetch import refresh_if_older

        offline = str(refresh_if_older(self._ctx, self._aims.interval).get("offline", ""))
        if offline and offline != self._offline:
            self._call.screen.note(f"note: {printable(offline)}; trying again")
        self._offline = offline

    # --- delivery

    def _deliver(self, commit: Commit, event: Event) -> None:
        row = event_row(commit, event)
        if self._aims.execute:
            self._execute(row)
        elif self._call.screen.json:
            put(1, dumps(row) + "\n")
        else:
            put(1, f"{event.seq}  {strftime('%Y-%m-%d %H:%M:%S', localtime(event.at))}  {event_words(row)}\n")

    def _execute(self, row: dict[str, Any]) -> None:
        """Run the command for one event and wait for it. If it fails, the event counts as not delivered and the stream ends."""
        env = {**os.environ, "GITCOORD_SEQ": str(row["seq"]), "GITCOORD_KIND": str(row["kind"])}
        with tempfile.TemporaryFile() as data:  # not a pipe: nobody has to read it
            data.write(dumps(row).encode() + b"\n")
            data.seek(0)
            actions = [(os.POSIX_SPAWN_DUP2, data.fileno(), 0)]
            words = ["sh", "-c", self._aims.execute]
            pid = os.posix_spawnp("sh", words, env, file_actions=actions, setsigmask=[], setsigdef=[signal.SIGPIPE])
        code = self._wait(pid)
        if code:
            self._call.screen.note(
                f"error: the command ended with {code} at event {row['seq']}, which stays undelivered"
            )
            raise Ended(code)

    def _wait(self, pid: int) -> int:
        """Wait until the command ends. A signal is passed on to it and ends the stream afterwards."""
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return exit_code(status)
            came = signal.sigtimedwait({signal.SIGCHLD, *_STOPPING}, 1.0)
            if came is not None and came.si_signo in _STOPPING:
                self._stopped = came.si_signo
                if not is_echo(came.si_signo, came.si_pid) and (came.si_pid or came.si_signo != signal.SIGINT):
                    os.kill(pid, came.si_signo)  # from the terminal the command got it itself
