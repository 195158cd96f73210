"""An ssh connection that is opened ahead: its handshake takes longer than all the rest, so it runs while a request is decided.

`git push` then speaks through it. Only where it is plain which command git itself would run; elsewhere git dials when it pushes.
"""

import posix

from gitcoord.errors import StoreError
from gitcoord.store.files import exists
from gitcoord.store.lasting import end_all, watched
from gitcoord.store.process import OURS, Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.store.locks import Note
    from gitcoord.store.patience import Patience
    from gitcoord.store.process import Environ
    from gitcoord.store.settings import Settings

# What git runs instead of ssh. It takes the ends of the connection from this process rather than from git, which would keep its
# own copies open: one end would wait for the other for ever. Each end is closed as soon as it is done with, for the same reason.
_RELAY = (
    "exec 7</proc/{pid}/fd/{reads} 8>/proc/{pid}/fd/{writes}; echo >&{bell}; exec {bell}>&-; "
    "cat <&7 8>&- & exec 7<&- >&8 8>&-; cat; exec >&-; wait; :"
)
_BELL = 9  # shells redirect by numbers of one digit only
_SHELL = frozenset("|&;<>()$`*?[]#~!{}\n")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+,@/=")


class Line:
    """A connection to the other side's `git receive-pack`, for one push."""

    def __init__(self, argv: list[str], env: "dict[bytes, bytes]") -> None:
        self._child = Child(argv, env, shares_terminal=True)

    def push(
        self, argv: list[str], env: "dict[bytes, bytes]", patience: "Patience", note: "Callable[[int], Note | None]"
    ) -> "tuple[int, bytes, str] | None":
        """A `git push` that speaks through it, to its end: exit code, stdout, stderr. None where it could not take it up."""
        reads, writes = self._child.output, self._child.input
        relay = _RELAY.format(pid=posix.getpid(), reads=reads, writes=writes, bell=_BELL)
        spoken = {**env, b"GIT_SSH_COMMAND": relay.encode(), b"GIT_SSH_VARIANT": b"ssh"}
        taken = False

        def take() -> None:
            nonlocal taken
            taken = True
            self._child.let_go()

        bell, rings = posix.pipe()
        try:
            push = Child(argv, spoken, shares_terminal=True, lends=((rings, _BELL),))
            push.note = note(push.pid)
            posix.close(rings)
            rings = -1
            code, out, complaint = watched(push, patience, bell, take, sends=True)
        finally:
            for fd in (bell, rings):
                if fd >= 0:
                    posix.close(fd)
            if patience.is_over and self._child.code is None:
                end_all(self._child)
            words = self.hang_up()
        return (code, out, "\n".join(filter(None, (words, complaint)))) if taken else None

    def hang_up(self) -> str:
        """It has ended, or is ended now; what it complained about. Harmless to repeat."""
        return self._child.end()


def dial(settings: "Settings", environ: "Environ", env: "dict[bytes, bytes]") -> "Line | None":
    """Connect to the remote that decides, if that is reached by ssh. Never fails: the push does."""
    argv = command(settings, environ)
    if argv is None or not exists("/proc/self/fd"):
        return None
    try:
        return Line(argv, {name: value for name, value in env.items() if name not in OURS})
    except StoreError:
        return None


def command(settings: "Settings", environ: "Environ") -> "list[str] | None":
    """What git would run to push to the remote that decides; None where that is not plain."""
    name = settings.get("gitcoord.authority")
    addresses = settings.every(f"remote.{name}.url")
    unusual = (f"remote.{name}.pushurl", f"remote.{name}.receivepack", "url", "ssh", "protocol")
    ssh = environ.get(b"GIT_SSH_COMMAND", b"").decode("utf-8", "surrogateescape") or settings.get(
        "core.sshcommand", "ssh"
    )
    ruled = (
        b"GIT_SSH" in environ or b"GIT_ALLOW_PROTOCOL" in environ or environ.get(b"GIT_SSH_VARIANT", b"ssh") != b"ssh"
    )
    if len(addresses) != 1 or ruled or any(settings.every(key) for key in unusual) or not _is_openssh(ssh):
        return None
    found = _address(addresses[0])
    if found is None:
        return None
    host, port, path = found
    words = [*(["-p", port] if port else []), host, f"git-receive-pack '{path}'"]
    # The shell becomes ssh: whoever ends the one ends the other.
    return ["ssh", *words] if ssh == "ssh" else ["sh", "-c", f'exec {ssh} "$@"', ssh, *words]


def _is_openssh(ssh: str) -> bool:
    """By its name, as git tells; what a shell would make more of than words is left to git."""
    return ssh.split(" ")[0].rpartition("/")[2] == "ssh" and not _SHELL.intersection(ssh)


def _address(url: str) -> "tuple[str, str, str] | None":
    """Host, port ('' for the usual one) and path; None for what is no ssh address, or one that git reads in its own way."""
    rest = url.removeprefix("ssh://")
    if rest != url:
        host, slash, path = rest.partition("/")
        host, colon, port = host.partition(":")
        path = slash + path
    else:
        host, colon, path = url.partition(":")
        colon, port = "", ""
    plain = host and path and _PLAIN.issuperset(host) and _PLAIN.issuperset(path) and port.isascii()
    if not plain or "://" in rest or "/" in host or host.startswith("-") or bool(colon) != port.isdecimal():
        return None
    return host, port, path
