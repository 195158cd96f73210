"""The remote for a process that lives long: it speaks git's protocol itself, without a `git push` for each swap.

One connection reads the remote's refs, compares them with what was expected, and swaps. The swap itself is the server's
git: a repository on this machine is reached through `git receive-pack` too, never by moving its refs from here.
"""

from collections.abc import Callable, Iterator
from shlex import quote
from threading import Lock, Thread
from typing import Any

from dulwich.client import GitClient, SubprocessGitClient, get_transport_and_path
from dulwich.errors import SendPackError
from dulwich.objects import ZERO_SHA, ShaFile
from dulwich.pack import UnpackedObject, pack_objects_to_data

from gitcoord.names import Oid
from gitcoord.store.far import FAILED, LANDED, LOST, UNKNOWN, UNREACHABLE, Far, Move, Report, sort_out
from gitcoord.store.process import run

SILENT = "silent"
_TYPES = {"commit": 1, "tree": 2, "blob": 3}

Pack = Callable[..., "tuple[int, Iterator[UnpackedObject]]"]


class _Moved(Exception):
    """A ref is not where it was expected."""


class Wire(Far):
    """Sends what was written here since the last push; everything else is left to `git push`."""

    def __init__(self, env: "dict[bytes, bytes]", name: str, **settings: Any) -> None:
        super().__init__(env, name, **settings)
        self._written: dict[Oid, tuple[str, bytes]] = {}
        self._client: tuple[GitClient, str] | None = None

    def wrote(self, oid: Oid, kind: str, data: bytes) -> None:
        self._written[oid] = (kind, data)

    def _push(self, moves: "list[Move]", options: "tuple[str, ...]") -> Report:
        known = all(m.new is None or m.new == m.expected or m.new in self._written for m in moves)
        if not (self.atomic and known and all(len(m.new or m.expected or "") == 40 for m in moves)):
            return super()._push(moves, options)
        try:
            client, path = self._connect()
        except (ValueError, OSError):  # an address that only git understands
            return super()._push(moves, options)
        report = self._send(client, path, moves, options)
        if report.kind == UNKNOWN:
            self._client = None  # the thread that was left may still use it
        if report.kind == SILENT:
            self._client = None
            return Report(UNREACHABLE, report.words)
        if report.kind == UNREACHABLE:  # git may know a way: helpers for credentials, proxies
            self._client = None
            return super()._push(moves, options)
        self._written.clear()
        return report

    def _connect(self) -> "tuple[GitClient, str]":
        if self._client is None:
            code, out, _ = run(["git", "remote", "get-url", "--push", "--", self.name], self._env)
            url = out.decode("utf-8", "surrogateescape").strip()
            if code or not url:
                raise ValueError(self.name)
            local = url.startswith(("/", ".", "file://"))
            self._client = (
                (SubprocessGitClient(), url.removeprefix("file://"))
                if local
                else get_transport_and_path(url, ssh_command=self._ssh())
            )
        return self._client

    def _ssh(self) -> "str | None":
        """The ssh that git would start."""
        wish = self._env.get(b"GIT_SSH_COMMAND", b"")
        wish = wish or run(["git", "config", "--get", "core.sshCommand"], self._env)[1].strip()
        if not wish and b"GIT_SSH" in self._env:
            return quote(self._env[b"GIT_SSH"].decode("utf-8", "surrogateescape"))  # a program, not a command line
        return wish.decode("utf-8", "surrogateescape") or None

    def _send(self, client: GitClient, path: str, moves: "list[Move]", options: "tuple[str, ...]") -> Report:
        """In a thread of its own, because not every transport can be told how long to wait: who says nothing is left."""
        wanted = {self.there(m.ref).encode("utf-8", "surrogateescape"): m for m in moves}
        exchange = _Exchange(wanted)
        thread = Thread(target=exchange.run, args=(client, path, self._pack(), options), daemon=True)
        thread.start()
        thread.join(self._seconds)
        return exchange.leave(self._seconds)

    def _pack(self) -> "Pack":
        objects = [ShaFile.from_raw_string(_TYPES[kind], data) for kind, data in self._written.values()]

        def pack(have: object, want: object, **_: object) -> "tuple[int, Iterator[UnpackedObject]]":
            count, data = pack_objects_to_data([(found, None) for found in objects])
            return count, iter(data)

        return pack


class _Exchange:
    """One push: what is to move, how far it has come, what came of it."""

    def __init__(self, wanted: "dict[bytes, Move]") -> None:
        self._wanted = wanted
        self._lock = Lock()
        self._sent = self._left = False
        self._report: Report | None = None

    def leave(self, seconds: float) -> Report:
        """What came of it. If that is not known yet, it sends nothing from now on that it has not begun to send."""
        with self._lock:
            self._left = True
            words = f"no answer within {seconds:.0f} seconds"
            return self._report or Report(UNKNOWN if self._sent else SILENT, words)

    def run(self, client: GitClient, path: str, pack: "Pack", options: "tuple[str, ...]") -> None:
        report = self._run(client, path, pack, options)
        with self._lock:
            self._report = report

    def _run(self, client: GitClient, path: str, pack: "Pack", options: "tuple[str, ...]") -> Report:
        heard: list[bytes] = []
        try:
            result = client.send_pack(
                path.encode("utf-8", "surrogateescape"),
                self._update,
                pack,
                progress=heard.append,
                push_options=[option.encode() for option in options] or None,
                atomic=True,
            )
        except _Moved as moved:
            return Report(LOST, f"{moved} is not where it was")
        except SendPackError as error:
            return Report(FAILED, str(error))
        except (
            Exception
        ) as error:  # each transport has errors of its own kinds, for passwords and broken connections too
            return Report(UNKNOWN if self._sent else UNREACHABLE, f"{type(error).__name__}: {error}")
        status = result.ref_status or {}
        reasons = [str(reason) for ref, reason in status.items() if reason is not None]
        return sort_out(reasons, b"".join(heard).decode("utf-8", "replace").strip()) if reasons else Report(LANDED)

    def _update(self, there: "dict[Any, Any]") -> "dict[Any, Any]":
        """What to move, now that it is known where everything is."""
        for ref, m in self._wanted.items():
            now = there.get(ref)
            if (now.decode() if now else None) != m.expected:
                raise _Moved(ref.decode("utf-8", "replace"))
        with self._lock:
            if self._left:
                raise TimeoutError
            self._sent = True
        changed = {ref: m for ref, m in self._wanted.items() if m.new != m.expected}
        return {ref: m.new.encode() if m.new else ZERO_SHA for ref, m in changed.items()}
