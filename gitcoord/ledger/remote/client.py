"""The remote for a process that lives long: it speaks git's protocol itself (dulwich), without a `git push` for each request.

What holds. A push asks for `atomic`: all refs or none, or an error before anything is sent where the server cannot do that. The refs
that the server shows are compared with what was expected. Each ref goes with the value that was shown, so whatever moves after that
is found by the server's own comparison. LANDED is said only where the server has reported every ref.

All is done in the calling thread, and ended by an alarm when the time of `deadline` is over. Where there is none to be had (another
thread, an alarm of somebody else's), and for whatever else this client cannot do, git pushes: over a path, with helpers for
credentials, with settings and variables about the transport, to hosts that take branches only or no atomic pushes, ids of SHA-256,
histories that are no chain. Push options that a server does not take are left out. Only git moves the refs of this clone.
"""

from __future__ import annotations

from _signal import ITIMER_REAL, SIGALRM, getitimer, setitimer, signal

from gitcoord.base.names import Oid
from gitcoord.git.commands.remotes import push_urls
from gitcoord.git.commands.settings import match_settings
from gitcoord.git.config import parse_settings
from gitcoord.git.long_process import end_process_tree
from gitcoord.git.process import OURS, Child, has_terminal
from gitcoord.git.store import Object, Reader, RefUpdate
from gitcoord.git.tree import parse_tree
from gitcoord.ledger.remote.git_remote import (
    FAILED,
    LANDED,
    RACED,
    UNKNOWN,
    UNREACHABLE,
    GitRemote,
    RemoteResult,
    classify,
)
from gitcoord.startup.annotations import Any, Callable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dulwich.client import GitClient
    from dulwich.pack import UnpackedObject


_SCHEMES = ("ssh", "git", "http", "https")
# Settings and variables about the way to a remote that only git heeds.
_SETTINGS = ("http.", "https.", "protocol.", "core.gitproxy")
_VARIABLES = (b"GIT_SSL_", b"GIT_HTTP_", b"GIT_PROXY_", b"GIT_ALLOW_PROTOCOL", b"GIT_PROTOCOL")
_TYPES = {"commit": 1, "tree": 2, "blob": 3}
_MANY = 1000  # objects: git packs them better
_AGAIN = 0.5  # seconds: an alarm that somebody swallowed rings again


class _Moved(Exception):
    """A ref is not where it was expected."""


class _TimeOver(BaseException):
    """The time is over. Nobody between here and the wait may take it for an error of the connection, and try again."""


class Client(GitRemote):
    """A remote whose refs this process moves by itself, where it can."""

    def __init__(self, local: Reader, env: dict[bytes, bytes], name: str, **settings: Any) -> None:
        """`local` has the objects to send."""
        super().__init__(env, name, **settings)
        self._local = local
        self._git_alone = self.branches or not self.atomic
        self._ssh: _Ssh | None = None
        self._client: GitClient | None = None
        self._path = ""

    def _push(self, moves: list[RefUpdate], options: tuple[str, ...]) -> RemoteResult:
        if self._git_alone or getitimer(ITIMER_REAL)[0] or any(len(m.new or m.old) != 40 for m in moves):
            return super()._push(moves, options)
        objects = objects_above(self._local, moves)
        report = self._sent(moves, objects, options) if objects is not None and self._has_client() else None
        if report is not None:
            return report
        report = super()._push(moves, options)
        if objects is not None and report.kind not in (UNREACHABLE, UNKNOWN):
            self._git_alone = True  # git knows a way there that we do not
        return report

    def _sent(self, moves: list[RefUpdate], objects: list[Object], options: tuple[str, ...]) -> RemoteResult | None:
        """The outcome of one push; None: nothing was sent, let git try."""
        push = _Push({self.there(m.ref).encode("utf-8", "surrogateescape"): m for m in moves}, objects)
        try:
            return self._in_time(lambda: push.send(self._client, self._path, options))
        except _Moved as moved:
            return RemoteResult(RACED, f"{moved} is not where it was")
        except _TimeOver:
            if self._ssh is not None:
                self._ssh.close()
            self._client = None
            return RemoteResult(UNKNOWN if push.sent else UNREACHABLE, self.deadline.message)
        except Exception as error:  # each transport has its own kinds, for passwords and broken connections too
            self._client = None
            if push.refused:
                return RemoteResult(FAILED, str(error))
            return RemoteResult(UNKNOWN, f"{type(error).__name__}: {error}") if push.sent else None

    def _has_client(self) -> bool:
        """Make the client, without connecting. False where only git can reach the remote."""
        if self._client is None:
            way = address_of(self.name, self._env)
            if way is None:
                self._git_alone = True
                return False
            from dulwich.client import SSHGitClient, get_transport_and_path

            self._client, self._path = get_transport_and_path(way[0])
            if isinstance(self._client, SSHGitClient):
                self._ssh = _Ssh(way[1], self._env)
                self._client.ssh_vendor = self._ssh  # type: ignore[assignment]
        return True

    def _in_time(self, act: Callable[[], RemoteResult]) -> RemoteResult | None:
        """Raises _Late when the time is over. None where there is no alarm to be had: not done."""
        waiting = True

        def ring(*_: object) -> None:
            if not waiting:
                return
            wait = self.deadline.next_wait(sends=True)
            if wait > 0:
                setitimer(ITIMER_REAL, wait)
                return
            self.deadline.expired()
            if self._ssh is not None:
                self._ssh.end()
            setitimer(ITIMER_REAL, _AGAIN)
            raise _TimeOver

        try:
            before = signal(SIGALRM, ring)
        except ValueError:  # not the main thread
            return None
        try:
            with self.deadline.waiting():
                setitimer(ITIMER_REAL, max(self.deadline.next_wait(sends=True), 0.001))
                try:
                    return act()
                finally:
                    waiting = False
        finally:
            waiting = False
            setitimer(ITIMER_REAL, 0)
            signal(SIGALRM, before)


class _Push:
    """One push: what is to move, whether anything of it was sent, whether the server said that it could not take it."""

    def __init__(self, wanted: dict[bytes, RefUpdate], objects: list[Object]) -> None:
        self._wanted = wanted
        self._objects = objects
        self.sent = self.refused = False

    def send(self, client: Any, path: str, options: tuple[str, ...]) -> RemoteResult:
        from dulwich.errors import SendPackError

        heard: list[bytes] = []
        given = [option.encode() for option in options] or None
        place = path.encode("utf-8", "surrogateescape")
        try:
            done = client.send_pack(place, self._update, self._pack, heard.append, push_options=given, atomic=True)
        except SendPackError:
            self.refused = True
            raise
        status: dict[bytes, str | None] = done.ref_status or {}
        reasons = [reason for reason in status.values() if reason is not None]
        if reasons:
            return classify(reasons, b"".join(heard).decode("utf-8", "replace").strip())
        reported = all(ref in status for ref, m in self._wanted.items() if m.new != m.old)
        return RemoteResult(LANDED) if reported else RemoteResult(UNKNOWN, "the server did not say what came of it")

    def _update(self, there: dict[Any, Any]) -> dict[Any, Any]:
        """The new values of the refs, after comparing the server's values with the expected ones."""
        from dulwich.objects import ZERO_SHA

        for ref, m in self._wanted.items():
            now = there.get(ref)
            if (now.decode() if now else "") != m.old:
                raise _Moved(ref.decode("utf-8", "replace"))
        self.sent = True
        changed = {ref: m.new for ref, m in self._wanted.items() if m.new != m.old}
        return {ref: new.encode() if new else ZERO_SHA for ref, new in changed.items()}

    def _pack(self, have: object, want: object, **_: object) -> tuple[int, Iterator[UnpackedObject]]:
        from dulwich.objects import ShaFile
        from dulwich.pack import pack_objects_to_data

        found = [ShaFile.from_raw_string(_TYPES[one.kind], one.data) for one in self._objects]
        count, data = pack_objects_to_data([(one, None) for one in found])
        return count, iter(data)


class _Ssh:
    """dulwich's way to start ssh: as git does it, and so that it can be ended."""

    def __init__(self, command: str, env: dict[bytes, bytes]) -> None:
        self._command = command
        self._env = {name: value for name, value in env.items() if name not in OURS}
        self._child: Child | None = None

    def run_command(
        self, host: str, command: bytes, username: str | None = None, port: int | None = None, **_: object
    ) -> _Ssh:
        words = [*(["-p", str(port)] if port else []), f"{username}@{host}" if username else host]
        argv = ["sh", "-c", f'exec {self._command} "$@"', "ssh", *words, command.decode("utf-8", "surrogateescape")]
        self._child = Child(argv, self._env, shares_terminal=has_terminal())
        self.write = self._child.send
        return self

    def read(self, size: int) -> bytes:
        return (self._child.exactly(size) if self._child is not None else None) or b""

    def can_read(self) -> bool:
        return True

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def end(self) -> None:
        if self._child is not None:
            end_process_tree(self._child)


def address_of(name: str, env: dict[bytes, bytes]) -> tuple[str, str] | None:
    """A remote's address, and the ssh that git would start; None where only git knows the way."""
    if b"GIT_SSH" in env or any(variable.startswith(_VARIABLES) for variable in env):
        return None
    urls = push_urls(env, name).text.splitlines()
    settings = dict(parse_settings(match_settings(env, r"^(https?|ssh|protocol|core|remote)\.").out))
    own = [f"remote.{name}.{key}" for key in ("receivepack", "proxy", "proxyauthmethod", "vcs")]
    ssh = _text(env, b"GIT_SSH_COMMAND") or settings.get("core.sshcommand", "ssh")
    variant = _text(env, b"GIT_SSH_VARIANT") or settings.get("ssh.variant") or ssh.split(" ")[0].rpartition("/")[2]
    odd = variant != "ssh" or any(key.startswith(_SETTINGS) or key in own for key in settings)
    return None if odd or len(urls) != 1 or not is_plain(urls[0]) else (urls[0], ssh)


def _text(env: dict[bytes, bytes], name: bytes) -> str:
    return env.get(name, b"").decode("utf-8", "surrogateescape")


def is_plain(url: str) -> bool:
    """Return whether all programs read this address alike, and it is no path."""
    if url.startswith("-") or "::" in url or any(char in "%\\[" or not " " < char < "\x7f" for char in url):
        return False
    scheme, sep, rest = url.partition("://")
    if not sep:
        host, colon, _ = url.partition(":")
        return bool(colon) and "/" not in host
    _, colon, port = rest.partition("/")[0].rpartition("@")[2].partition(":")
    return scheme in _SCHEMES and not rest.startswith("-") and (port.isdecimal() or not colon)


def objects_above(local: Reader, moves: list[RefUpdate]) -> list[Object] | None:
    """All that the new values lead to and the expected ones do not; None where that is much, or odd, or not here: git counts then."""
    known = {m.old for m in moves}
    found: dict[Oid, Object] = {}
    todo: list[tuple[Oid, Oid]] = [(m.new, "") for m in moves if m.new and m.new not in known]
    while todo:
        oid, before = todo.pop()  # a tree, and the one in its place before
        if oid in found:
            continue
        one, old = local.read([oid])[0], local.read([before])[0] if before else None
        if one is None or one.kind not in _TYPES or len(found) == _MANY:
            return None
        found[oid] = one
        if one.kind == "commit":
            tree, parents = _links(one.data)
            if len(parents) > 1:
                return None
            todo += [(parent, "") for parent in parents if parent not in known]
            below = local.read(parents[:1])
            todo.append((tree, _links(below[0].data)[0] if below and below[0] is not None else ""))
        elif one.kind == "tree":
            there = parse_tree(old.data, 40) if old is not None and old.kind == "tree" else {}
            for name, entry in parse_tree(one.data, 40).items():
                was = there.get(name)
                if was is None or was.oid != entry.oid:
                    todo.append((entry.oid, was.oid if was is not None and was.is_tree else ""))
    return list(found.values())


def _links(data: bytes) -> tuple[Oid, list[Oid]]:
    """A commit's tree, and its parents."""
    rows = [line.partition(" ") for line in data.partition(b"\n\n")[0].decode("ascii", "replace").split("\n")]
    return rows[0][2], [value for key, _, value in rows if key == "parent"]
