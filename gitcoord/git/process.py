"""Child processes, git's above all, without `subprocess`, whose import costs more than a whole claim may.

The policy for every git that is started is here: its environment and the beginning of its command line. Children get a clean
environment (no `GIT_*` that points elsewhere, messages in English), their own process group (Ctrl-C in the terminal must not tear
a transaction) and a stderr that can never block them.
"""

from __future__ import annotations

import posix
from _signal import SIG_DFL, SIG_IGN, SIGCHLD, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, getsignal, signal
from posix import environ as environ

from gitcoord.base.errors import CouldNotJudge, GitcoordError, StoreError
from gitcoord.git.files import write_all
from gitcoord.startup.annotations import Iterator
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locks.owners import LockNote

Environ = dict[bytes, bytes]
Env = dict[bytes, bytes]

# The beginnings of git's command lines. There are no others.
GIT = ("git",)  # as the user's own git: what acts on work trees, the index, refs and settings
# History and objects as they were written, without refs/replace; no advice about a file of grafts.
ORIGINAL = ("git", "--no-replace-objects", "-c", "advice.graftFileDeprecated=false")
LITERAL = (*ORIGINAL, "--literal-pathspecs")
# gitcoord's own moves of refs run no hooks: they are judged before, and a hook of ours that starts would only slow them. From
# git 2.54 on a hook may be named in the settings, where core.hooksPath does not reach. The last setting marks these processes as
# ours: see `git/locks/running.py`.
UNHOOKED = (
    "git", "-c", "core.hooksPath=/dev/null", "-c", "hook.gitcoord-reference-transaction.enabled=false", "-c", "gitcoord.noted=true",
)  # fmt: skip

# Variables that lead git to another repository, index, namespace or object.
_STRIPPED = (
    b"GIT_INDEX_FILE", b"GIT_OBJECT_DIRECTORY", b"GIT_ALTERNATE_OBJECT_DIRECTORIES", b"GIT_NAMESPACE",
    b"GIT_REPLACE_REF_BASE", b"GIT_GRAFT_FILE", b"GIT_SHALLOW_FILE", b"GIT_QUARANTINE_PATH", b"GIT_PREFIX",
    b"GIT_ATTR_SOURCE", b"GIT_TRACE", b"GIT_LITERAL_PATHSPECS", b"GIT_GLOB_PATHSPECS", b"GIT_NOGLOB_PATHSPECS", b"GIT_ICASE_PATHSPECS",
)  # fmt: skip

# Variables about this clone, which do not concern the repository at the remote.
OURS = (b"GIT_DIR", b"GIT_WORK_TREE", b"GIT_COMMON_DIR", b"GIT_CONFIG_PARAMETERS", b"GIT_CONFIG_COUNT")

_PIPE = 32768
STARTED: set[int] = set()  # gitcoord's own children that are not collected yet


def clean_environ(environ: Environ) -> dict[bytes, bytes]:
    env = dict(environ)
    for name in _STRIPPED:
        env.pop(name, None)
    env[b"LC_ALL"] = b"C"
    env[b"GIT_OPTIONAL_LOCKS"] = b"0"
    env[b"GIT_TERMINAL_PROMPT"] = b"0"
    return env


def without_grafts(env: Env) -> Env:
    """The environment for the recorded history: commits have the parents that they name."""
    return {**env, b"GIT_GRAFT_FILE": b"/dev/null"}


def reset_sigchld() -> None:
    """A command's first act: a SIGCHLD that is inherited as ignored would hide the exit codes of children."""
    if getsignal(SIGCHLD) == SIG_IGN:
        signal(SIGCHLD, SIG_DFL)


def _sink() -> int:
    """A place for a child's stderr: memory, so that it never fills up; a file descriptor to read back from."""
    if hasattr(posix, "memfd_create"):
        return posix.memfd_create("stderr", getattr(posix, "MFD_CLOEXEC", 1))
    return posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)


WHOLE = {b"GIT_FLUSH": b"0"}  # for what is read to its end: git need not hand over each record by itself


class Child:
    """A running child with pipes. Not for sharing between threads."""

    def __init__(
        self,
        argv: list[str],
        env: dict[bytes, bytes],
        *,
        shares_terminal: bool = False,
    ) -> None:
        """`shares_terminal`: the child may ask the person at the terminal, and Ctrl-C reaches it too."""
        fds: list[int] = []
        try:
            fds += posix.pipe()
            fds += posix.pipe()
            fds.append(_sink())
            child_in, self._in, self._out, child_out, self._err = fds
            actions = [
                (posix.POSIX_SPAWN_DUP2, child_in, 0),
                (posix.POSIX_SPAWN_DUP2, child_out, 1),
                (posix.POSIX_SPAWN_DUP2, self._err, 2),
            ]
            self.pid = posix.posix_spawnp(
                argv[0],
                argv,
                env,
                file_actions=actions,
                setpgroup=posix.getpgrp() if shares_terminal else 0,
                setsigdef=[SIGCHLD, SIGINT, SIGPIPE, SIGTERM],
                setsigmask=[],
            )
        except OSError as error:
            for fd in fds:
                posix.close(fd)
            raise StoreError(f"cannot start {argv[0]}: {error.strerror}") from None
        STARTED.add(self.pid)
        posix.close(child_in)
        posix.close(child_out)
        self._buffer = b""
        self.code: int | None = None
        self.note: LockNote | None = None  # about the locks that it may take

    @property
    def output(self) -> int:
        """The descriptor of its output, to wait on."""
        return self._out

    @property
    def input(self) -> int:
        """The descriptor of its input, to wait on."""
        return self._in

    def send(self, data: bytes) -> None:
        _write(self._in, data)

    def feed(self, data: bytes) -> None:
        """Send this and close the input, on the side: the child may never read it.

        The descriptor is the thread's from now on: closed here meanwhile, its number might be another file's by then.
        """
        from _thread import start_new_thread

        own, self._in = self._in, -1

        def write() -> None:
            _write(own, data)
            posix.close(own)

        start_new_thread(write, ())

    def _fill(self) -> bool:
        chunk = posix.read(self._out, 65536)
        self._buffer += chunk
        return bool(chunk)

    def line(self) -> bytes | None:
        """The next line without its end; None where the child closed its output."""
        while (end := self._buffer.find(b"\n")) < 0:
            if not self._fill():
                return None
        line, self._buffer = self._buffer[:end], self._buffer[end + 1 :]
        return line

    def exactly(self, size: int) -> bytes | None:
        if len(self._buffer) < size:
            parts, have = [self._buffer], len(self._buffer)
            while have < size:
                chunk = posix.read(self._out, max(65536, size - have))
                if not chunk:
                    return None
                parts.append(chunk)
                have += len(chunk)
            self._buffer = b"".join(parts)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def chunks(self) -> Iterator[bytes]:
        """All that is still to come, as it comes."""
        chunk, self._buffer = self._buffer, b""
        while chunk or (chunk := posix.read(self._out, 65536)):
            yield chunk
            chunk = b""

    def rest(self) -> bytes:
        return b"".join(self.chunks())

    def close_input(self) -> None:
        if self._in >= 0:
            posix.close(self._in)
            self._in = -1

    def wait(self) -> int:
        """Close the input, wait for the end, give the exit code (negative: the signal)."""
        self.close_input()
        if self.code is None:
            try:
                _, status = posix.waitpid(self.pid, 0)
                self.code = posix.waitstatus_to_exitcode(status)
                STARTED.discard(self.pid)
                if self.note is not None:
                    self.note.end(self.code)
            except ChildProcessError:
                raise StoreError(
                    "how git ended cannot be told: somebody else collects this process's children"
                ) from None
        return self.code

    def ended(self) -> int | None:
        """The exit code, if it has ended (negative: the signal); does not wait."""
        if self.code is None:
            pid, status = posix.waitpid(self.pid, posix.WNOHANG)
            if pid:
                self.code = posix.waitstatus_to_exitcode(status)
                STARTED.discard(self.pid)
        return self.code

    def complaint(self) -> str:
        """The child's stderr, after its end.

        Descendants of the child may still write there, at the shared offset: so it is not moved.
        """
        self.wait()
        text = posix.pread(self._err, 65536, 0).decode("utf-8", "replace").strip()
        for prefix in ("fatal: ", "error: "):
            text = text.removeprefix(prefix)
        return text

    def close(self) -> None:
        self.wait()
        for fd in (self._out, self._err):
            if fd >= 0:
                posix.close(fd)
        self._out = self._err = -1


def _write(fd: int, data: bytes) -> None:
    try:
        write_all(fd, data)
    except BrokenPipeError:
        pass  # the child is gone; reading its answer tells why


class Answer(NamedTuple):
    """The end of a child: its exit code, its output, and what it wrote to stderr."""

    code: int
    out: bytes
    complaint: str

    @property
    def text(self) -> str:
        """The output without the last line's end; '' where it failed."""
        return self.out.decode("utf-8", "surrogateescape").removesuffix("\n") if not self.code else ""

    @property
    def lines(self) -> list[str]:
        """The lines that are not empty; none if git failed."""
        return [line for line in self.text.split("\n") if line]

    @property
    def entries(self) -> list[str]:
        """The parts of the output that NUL separates, without empty ones; none if git failed."""
        return [entry for entry in self.text.split("\0") if entry]

    def require(self, failure: str, error: type[GitcoordError] = CouldNotJudge, hints: tuple[str, ...] = ()) -> Answer:
        """This answer. If git failed, raise the error with these words and git's own."""
        if self.code:
            raise error(f"{failure}: {self.complaint}", hints=hints)
        return self


def run(argv: list[str], env: Env, data: bytes = b"", *, shares_terminal: bool = False) -> Answer:
    """Run to the end."""
    return finish(Child(argv, env, shares_terminal=shares_terminal), data)


def run_at_terminal(argv: list[str], environ: Environ) -> int:
    """Let it have the terminal, with Ctrl-C and Ctrl-\\: its exit code."""
    old = {number: signal(number, SIG_IGN) for number in (SIGINT, SIGQUIT)}
    try:
        pid = posix.posix_spawnp(argv[0], argv, dict(environ), setsigdef=list(old))
        return posix.waitstatus_to_exitcode(posix.waitpid(pid, 0)[1])
    finally:
        for number, handler in old.items():
            signal(number, handler)


def finish(child: Child, data: bytes = b"") -> Answer:
    """Give a child all its input, and wait for its end."""
    if len(data) > _PIPE:
        child.feed(data)  # more than a pipe holds: the child may wait for us to read before it takes the rest
    else:
        child.send(data)
        child.close_input()
    out = child.rest()
    code, complaint = child.wait(), child.complaint()
    child.close()
    return Answer(code, out, complaint)


def has_terminal() -> bool:
    """Return whether there is a terminal at which git or ssh could ask somebody."""
    try:
        posix.close(posix.open("/dev/tty", posix.O_RDWR | posix.O_CLOEXEC))
    except OSError:
        return False
    return True
