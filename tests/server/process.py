"""Processes that the suite starts and ends itself: found, started, awaited, and ended with all that they started."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

DEADLINE = 30.0
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SBIN])


def program(name: str) -> str:
    """The path of a program, looked for in the sbin directories too; empty where it is not installed."""
    return shutil.which(name, path=PATH) or ""


def wait_for(what: str, met: Callable[[], object], alive: Callable[[], bool] = lambda: True) -> None:
    """Until the condition is met. An error at the deadline, or as soon as it cannot be met any more."""
    end = time.monotonic() + DEADLINE
    while not met():
        living = alive()
        if met():
            return
        assert living, f"{what}: the process has ended"
        assert time.monotonic() < end, f"{what}: not within {DEADLINE:.0f} seconds"
        time.sleep(0.01)


class Port:
    """A free port that stays ours: bound, not listening, so a server that sets SO_REUSEADDR may listen there and nobody
    who asks the kernel for a free port gets it, also while the server is down."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self._socket = socket.socket()
        self._socket.bind((host, 0))  # before the option: a port that nobody else has at all
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.number: int = self._socket.getsockname()[1]

    def answers(self) -> bool:
        try:
            socket.create_connection((self.host, self.number), timeout=5).close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()


class Daemon:
    """A server's process in the foreground, in a session of its own, with its words in a log."""

    def __init__(self, words: list[str], log: Path, env: dict[str, str]) -> None:
        self.name = Path(words[0]).name
        self.log = log
        # If the suite itself is killed, its servers go too.
        watch = program("setpriv")
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [watch, "--pdeathsig", "KILL", *words] if watch else words,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd=log.parent, start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self, met: Callable[[], object]) -> None:
        try:
            wait_for(f"start of {self.name}", met, self.alive)
        except AssertionError as error:
            self.stop()
            raise AssertionError(f"{error}\n{self.log.read_text(errors='replace')}") from None

    def stop(self) -> None:
        """End it and everything below it without cleaning up, as a power cut would. Harmless to repeat."""
        if self.alive():
            end_family(self.pid)
        self._process.wait()


def end_family(pid: int) -> None:
    """Freeze a process and its descendants, parents first so that none escapes, then kill them all."""
    frozen: set[int] = set()
    while new := ({pid} | _descendants(pid)) - frozen:
        for one in new:
            _signal(one, signal.SIGSTOP)
        frozen |= new
    for one in frozen:
        _signal(one, signal.SIGKILL)


def _descendants(pid: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in brackets may hold anything; the parent is the second word after it.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        new = children.get(todo.pop(), [])
        found.update(new)
        todo += new
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
