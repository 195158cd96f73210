"""The remote for a process that lives long: it speaks git's protocol itself, without a `git push` for each swap.

One connection reads the remote's refs, compares them with what was expected, and swaps. It is opened ahead, while the
request is decided; where nobody else moves those refs, as soon as the request before has landed. The swap itself is the
server's git: a repository on this machine is reached through `git receive-pack` too, never by moving its refs from here.
"""

from collections.abc import Callable, Iterator
from copy import copy
from shlex import quote
from threading import Condition, Event, Thread
from threading import enumerate as enumerate_threads
from typing import Any

from dulwich.client import GitClient, SSHGitClient, TraditionalGitClient, get_transport_and_path
from dulwich.errors import SendPackError
from dulwich.objects import ZERO_SHA, ShaFile
from dulwich.pack import UnpackedObject, pack_objects_to_data
from dulwich.protocol import DEFAULT_GIT_PROTOCOL_VERSION_SEND, Protocol

from gitcoord.names import Oid
from gitcoord.store.far import FAILED, LANDED, LOST, UNKNOWN, UNREACHABLE, Far, Move, Report, sort_out
from gitcoord.store.process import OURS, Child, clean_environ, run

SILENT = "silent"
_AFTER = 0.01  # seconds after an answer: whoever waits for it has it by then
_CALM = 2  # so many pushes in a row met nobody: the next one will not, either
_NAME = "gitcoord-push"
_TYPES = {"commit": 1, "tree": 2, "blob": 3}


class _Moved(Exception):
    """A ref is not where it was expected."""


class _HungUp(Exception):
    """Nothing is to be sent on this connection any more."""


class Wire(Far):
    """Sends what was written here since the last push; everything else is left to `git push`."""

    def __init__(self, env: "dict[bytes, bytes]", name: str, **settings: Any) -> None:
        super().__init__(env, name, **settings)
        self._written: dict[Oid, tuple[str, bytes]] = {}
        self._client: tuple[GitClient | None, str] | None = None  # None: on this machine
        self._open: _Connection | None = None
        self._calm = 0  # pushes in a row that met nobody
        self._options: tuple[str, ...] = ()  # of the last one
        self._resting: Thread | None = None  # connects for the next one
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
            self._open = _Connection(own, path, options)

    def hang_up(self) -> None:
        self._rested()
        if self._open is not None:
            self._open.hang_up()
            self._open = None

    def rest(self) -> None:
        self.hang_up()
        if self._calm < _CALM or not self._stays:
            return

        def ahead() -> None:
            self._soon.wait(_AFTER)
            self._dial(self._options)
            if self._open is not None:
                self._open.sleep(self._stays)

        self._soon.clear()
        self._resting = Thread(target=ahead, daemon=True)
        self._resting.start()

    def _rested(self) -> None:
        """What was begun when the last request was done with is finished, before anybody goes on."""
        if self._resting is not None:
            self._soon.set()
            self._resting.join()
            self._resting = None

    def settle(self) -> None:
        """Wait until nothing of the last request is under way, and what stays connected is."""
        self._rested()
        waiting = self._open.thread if self._open is not None else None
        for thread in enumerate_threads():
            if thread.name == _NAME and thread is not waiting:
                thread.join()
        if self._open is not None:
            self._open.told.wait()

    def _push(self, moves: "list[Move]", options: "tuple[str, ...]") -> Report:
        known = all(m.new is None or m.new == m.expected or m.new in self._written for m in moves)
        if not (self.atomic and known and all(len(m.new or m.expected or "") == 40 for m in moves)):
            return super()._push(moves, options)
        self._rested()
        ahead = self._open is not None and self._open.options == options
        connection = self._connection(options)
        if connection is None:
            return super()._push(moves, options)
        wanted = {self.there(m.ref).encode("utf-8", "surrogateescape"): m for m in moves}
        objects = [ShaFile.from_raw_string(_TYPES[kind], data) for kind, data in self._written.values()]
        report = connection.push(wanted, objects, self._seconds)
        self._calm = self._calm if report.kind == LANDED else 0
        self._options = options
        if report.kind == LOST and ahead and not connection.sent:
            # What it was told when it connected is old: others of this machine, on whose work this stands, have landed since.
            connection = self._connection(options)
            report = connection.push(wanted, objects, self._seconds) if connection is not None else report
        self._calm += report.kind == LANDED
        if report.kind in (UNKNOWN, SILENT, UNREACHABLE):
            self._client = None
        if report.kind == SILENT:
            return Report(UNREACHABLE, report.words)
        if report.kind == UNREACHABLE:  # git may know a way: helpers for credentials, proxies
            return super()._push(moves, options)
        if report.kind != UNKNOWN:
            self._written.clear()
        return report

    def _connection(self, options: "tuple[str, ...]") -> "_Connection | None":
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
            self._client = (
                (None, url.removeprefix("file://")) if local else get_transport_and_path(url, ssh_command=self._ssh())
            )
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
        theirs = {name: value for name, value in clean_environ(env).items() if name not in OURS}
        self._child = Child(["git", "receive-pack", path], theirs)

    def _connect(self, *_: object) -> "tuple[Protocol, Callable[[], bool], None]":
        child = self._child
        return Protocol(lambda size: child.exactly(size) or b"", child.send, child.close), lambda: True, None


def _log_in(client: SSHGitClient, path: str) -> None:
    """Logging in takes longer than all the rest, so ssh starts at once, too. Why it cannot, the thread will say."""
    client.protocol_version = DEFAULT_GIT_PROTOCOL_VERSION_SEND
    try:
        begun = client._connect(b"receive-pack", path.encode("utf-8", "surrogateescape"))
    except Exception:
        return
    client._connect = lambda *_, **__: begun  # type: ignore[method-assign]


class _Connection:
    """One push: connected ahead, then told what is to move; how far it has come, what came of it.

    In a thread of its own, because not every transport can be told how long to wait: one that says nothing is left.
    """

    def __init__(self, client: GitClient, path: str, options: "tuple[str, ...]") -> None:
        self.options = options
        self._client = client
        self._wanted: dict[bytes, Move] = {}
        self._objects: list[ShaFile] = []
        self._heard: list[bytes] = []
        self._lock = Condition()
        self._over = Event()
        self.told = Event()  # where the refs are there, or that it cannot be told
        self._asleep: float | None = None  # so many seconds it waits for a request
        self._ready = self.sent = self._left = False
        self._report: Report | None = None
        # A dulwich that has no such part is as good: the answer comes with the end of the push.
        self._tail = getattr(client, "_handle_receive_pack_tail", None)
        if self._tail is not None:
            client._handle_receive_pack_tail = self._finish  # type: ignore[method-assign]
        self.thread = Thread(target=self._run, args=(path.encode("utf-8", "surrogateescape"),), daemon=True, name=_NAME)
        self.thread.start()

    def push(self, wanted: "dict[bytes, Move]", objects: "list[ShaFile]", seconds: float) -> Report:
        """What came of it. If that is not known in time, it sends nothing from then on that it has not begun to send."""
        with self._lock:
            self._wanted, self._objects, self._ready = wanted, objects, True
            self._lock.notify()
        self._over.wait(seconds)
        with self._lock:
            self._left = True
            words = f"no answer within {seconds:.0f} seconds"
            return self._report or Report(UNKNOWN if self.sent else SILENT, words)

    def hang_up(self) -> None:
        with self._lock:
            self._left = True
            self._lock.notify()

    def sleep(self, seconds: float) -> None:
        """Nobody needs it now; after so many seconds it ends."""
        with self._lock:
            self._asleep = seconds
            self._lock.notify()

    def wake(self) -> bool:
        """It is needed; False: it has ended."""
        with self._lock:
            self._asleep = None
            self._lock.notify()
            return not self._left and self._report is None

    def _run(self, path: bytes) -> None:
        options = [option.encode() for option in self.options] or None
        try:
            result = self._client.send_pack(
                path, self._update, self._pack, progress=self._heard.append, push_options=options, atomic=True
            )
            self._tell(self._read(result.ref_status))
        except _Moved as moved:
            self._tell(Report(LOST, f"{moved} is not where it was"))
        except SendPackError as error:
            self._tell(Report(FAILED, str(error)))
        except (
            Exception
        ) as error:  # each transport has errors of its own kinds, for passwords and broken connections too
            self._tell(Report(UNKNOWN if self.sent else UNREACHABLE, f"{type(error).__name__}: {error}"))

    def _finish(self, *words: Any, **named: Any) -> Any:
        """Once the server has reported, its refs are where they are: nobody waits for its last hooks and housekeeping."""
        parser = getattr(self._client, "_report_status_parser", None)
        if parser is not None:
            handle = parser.handle_packet

            def heed(packet: "bytes | None") -> None:
                handle(packet)
                if packet is None:
                    self._tell(self._read(dict(parser.check())))

            parser.handle_packet = heed
        assert self._tail is not None
        return self._tail(*words, **named)

    def _tell(self, report: Report) -> None:
        with self._lock:
            self._report = self._report or report
        self._over.set()
        self.told.set()

    def _read(self, status: "dict[bytes, str | None] | None") -> Report:
        reasons = [str(reason) for reason in (status or {}).values() if reason is not None]
        words = b"".join(self._heard).decode("utf-8", "replace").strip()
        return sort_out(reasons, words) if reasons else Report(LANDED)

    def _update(self, there: "dict[Any, Any]") -> "dict[Any, Any]":
        """What to move, now that it is known where everything is."""
        self.told.set()
        with self._lock:
            while not self._ready and not self._left:
                if not self._lock.wait(self._asleep) and self._asleep is not None:
                    self._left = True  # nobody came
            if self._left:
                raise _HungUp
        for ref, m in self._wanted.items():
            now = there.get(ref)
            if (now.decode() if now else None) != m.expected:
                raise _Moved(ref.decode("utf-8", "replace"))
        with self._lock:
            if self._left:
                raise _HungUp
            self.sent = True
        changed = {ref: m for ref, m in self._wanted.items() if m.new != m.expected}
        return {ref: m.new.encode() if m.new else ZERO_SHA for ref, m in changed.items()}

    def _pack(self, have: object, want: object, **_: object) -> "tuple[int, Iterator[UnpackedObject]]":
        count, data = pack_objects_to_data([(found, None) for found in self._objects])
        return count, iter(data)
