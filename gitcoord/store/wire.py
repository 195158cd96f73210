"""The remote for a process that lives long: it speaks git's protocol itself, without a `git push` for each swap.

One connection reads the remote's refs, compares them with what was expected, and swaps. It is opened ahead, while the
request is decided; where nobody else moves those refs, as soon as the request before has landed. The swap itself is the
server's git: a repository on this machine is reached through `git receive-pack` too, never by moving its refs from here.
"""

from _thread import start_new_thread
from collections.abc import Callable
from copy import copy
from shlex import quote
from threading import Event
from threading import enumerate as enumerate_threads
from typing import Any

from dulwich.client import GitClient, SSHGitClient, TraditionalGitClient, get_transport_and_path
from dulwich.objects import ShaFile
from dulwich.protocol import DEFAULT_GIT_PROTOCOL_VERSION_SEND, Protocol

from gitcoord.names import Oid
from gitcoord.store.connection import NAME, SILENT, Connection
from gitcoord.store.far import LANDED, LOST, UNKNOWN, UNREACHABLE, Far, Move, Report, nothing
from gitcoord.store.process import OURS, Child, clean_environ, run

_AFTER = 0.01  # seconds after an answer: whoever waits for it has it by then
_CALM = 2  # so many pushes in a row met nobody: the next one will not, either
_TYPES = {"commit": 1, "tree": 2, "blob": 3}


class Wire(Far):
    """Sends what was written here since the last push; everything else is left to `git push`."""

    sends = True

    def __init__(self, env: "dict[bytes, bytes]", name: str, **settings: Any) -> None:
        super().__init__(env, name, **settings)
        self._written: dict[Oid, tuple[str, bytes]] = {}
        self._client: tuple[GitClient | None, str] | None = None  # None: on this machine
        self._open: Connection | None = None
        self._calm = 0  # pushes in a row that met nobody
        self._options: tuple[str, ...] = ()  # of the last one
        self._resting: Event | None = None  # until it has connected for the next one
        self._soon = Event()

    def wrote(self, oid: Oid, kind: str, data: bytes) -> None:
        self._written[oid] = (kind, data)

    def connect(self, options: "tuple[str, ...]" = ()) -> None:
        self._rested()
        if self._open is not None and self._open.options == options and self._open.wake():
            return
        self.hang_up()
        self._dial(options)

    def _dial(self, options: "tuple[str, ...]") -> None:
        if self.atomic:
            try:
                client, path = self._address()
            except (ValueError, OSError):  # an address that only git understands
                return
            # What a client notes about one push is not the next one's.
            own = copy(client) if client is not None else _Here(self._env, path)
            if isinstance(own, SSHGitClient):
                _log_in(own, path)
            self._open = Connection(own, path, options)

    def hang_up(self) -> None:
        self._rested()
        if self._open is not None:
            self._open.hang_up()
            self._open = None

    def rest(self) -> None:
        self.hang_up()
        if self._calm < _CALM or not self._stays:
            return

        self._soon.clear()
        self._resting = done = Event()

        def ahead() -> None:
            try:
                self._soon.wait(_AFTER)
                self._dial(self._options)
                if self._open is not None:
                    self._open.sleep(self._stays)
            finally:
                done.set()

        start_new_thread(ahead, ())  # not a Thread: the answer would wait until that runs

    def _rested(self) -> None:
        """What was begun when the last request was done with is finished, before anybody goes on."""
        if self._resting is not None:
            self._soon.set()
            self._resting.wait()
            self._resting = None

    def settle(self) -> None:
        """Wait until nothing of the last request is under way, and what stays connected is."""
        self._rested()
        waiting = self._open.thread if self._open is not None else None
        for thread in enumerate_threads():
            if thread.name == NAME and thread is not waiting:
                thread.join()
        if self._open is not None:
            self._open.told.wait()

    def _push(self, moves: "list[Move]", options: "tuple[str, ...]", meanwhile: "Callable[[], None]") -> Report:
        known = all(m.new is None or m.new == m.expected or m.new in self._written for m in moves)
        if not (self.atomic and known and all(len(m.new or m.expected or "") == 40 for m in moves)):
            return self._left_to_git(moves, options, meanwhile)
        self._rested()
        ahead = self._open is not None and self._open.options == options
        connection = self._connection(options)
        if connection is None:
            return self._left_to_git(moves, options, meanwhile)
        wanted = {self.there(m.ref).encode("utf-8", "surrogateescape"): m for m in moves}
        objects = [ShaFile.from_raw_string(_TYPES[kind], data) for kind, data in self._written.values()]
        report = connection.push(wanted, objects, self.patience.left(sends=True), meanwhile)
        self._calm = self._calm if report.kind == LANDED else 0
        self._options = options
        # What it was told when it connected is old: others of this machine, on whose work this stands, have landed since.
        old = report.kind == LOST and ahead and not connection.sent
        if old:
            connection = self._connection(options)
            report = (
                connection.push(wanted, objects, self.patience.left(sends=True), meanwhile)
                if connection is not None
                else report
            )
        self._calm += report.kind == LANDED
        if report.kind in (UNKNOWN, SILENT, UNREACHABLE):
            self._client = None
        if report.kind == SILENT:
            return Report(UNREACHABLE, report.words)
        if report.kind == UNREACHABLE:  # git may know a way: helpers for credentials, proxies
            return self._left_to_git(moves, options, meanwhile)
        if report.kind != UNKNOWN:
            self._written.clear()
        return report

    def _left_to_git(self, moves: "list[Move]", options: "tuple[str, ...]", meanwhile: "Callable[[], None]") -> Report:
        meanwhile()  # git sends only what lies here
        return super()._push(moves, options, nothing)

    def _connection(self, options: "tuple[str, ...]") -> "Connection | None":
        """The one that was opened ahead, or a new one."""
        if self._open is None or self._open.options != options:
            self.connect(options)
        connection, self._open = self._open, None
        return connection

    def _address(self) -> "tuple[GitClient | None, str]":
        if self._client is None:
            code, out, _ = run(["git", "remote", "get-url", "--push", "--", self.name], self._env)
            url = out.decode("utf-8", "surrogateescape").strip()
            if code or not url:
                raise ValueError(self.name)
            local = url.startswith(("/", ".", "file://"))
            path = url.removeprefix("file://")
            self._client = (None, path) if local else get_transport_and_path(url, ssh_command=self._ssh())
        return self._client

    def _ssh(self) -> "str | None":
        """The ssh that git would start."""
        wish = self._env.get(b"GIT_SSH_COMMAND", b"")
        wish = wish or run(["git", "config", "--get", "core.sshCommand"], self._env)[1].strip()
        if not wish and b"GIT_SSH" in self._env:
            return quote(self._env[b"GIT_SSH"].decode("utf-8", "surrogateescape"))  # a program, not a command line
        return wish.decode("utf-8", "surrogateescape") or None


class _Here(TraditionalGitClient):
    """A repository on this machine. Its git starts at once, not when the thread that talks to it has its turn."""

    def __init__(self, env: "dict[bytes, bytes]", path: str) -> None:
        super().__init__()
        self._child = Child(["git", "receive-pack", path], _theirs(env))
        self._unsent: list[bytes] = []

    def _connect(self, *_: object) -> "tuple[Protocol, Callable[[], bool], None]":
        return Protocol(self._read, self._unsent.append, self._close), lambda: True, None

    def _read(self, size: int) -> bytes:
        self._send()
        return self._child.exactly(size) or b""

    def _send(self) -> None:
        """All at once: a reader that is woken for each small part of it only takes time from the writer."""
        data = b"".join(self._unsent)
        self._unsent.clear()
        if data:
            self._child.send(data)

    def _close(self) -> None:
        self._send()
        self._child.close()


def _theirs(env: "dict[bytes, bytes]") -> "dict[bytes, bytes]":
    """The environment for git in another repository than ours."""
    return {name: value for name, value in clean_environ(env).items() if name not in OURS}


def _log_in(client: SSHGitClient, path: str) -> None:
    """Logging in takes longer than all the rest, so ssh starts at once, too. Why it cannot, the thread will say."""
    client.protocol_version = DEFAULT_GIT_PROTOCOL_VERSION_SEND
    try:
        begun = client._connect(b"receive-pack", path.encode("utf-8", "surrogateescape"))
    except Exception:
        return
    client._connect = lambda *_, **__: begun  # type: ignore[method-assign]
