"""Helpers of many tests: a host whose clock is set by hand, and contexts on the memory store or on a repository."""

from __future__ import annotations

import atexit
import marshal
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from gitcoord.gates.hooks.managers import EVENTS
from gitcoord.git.config import Settings
from gitcoord.git.locks.owners import LockNotes
from gitcoord.git.loose_reader import LooseReader
from gitcoord.git.plumbing_store import PlumbingStore
from gitcoord.git.redo_log import DurableObjects
from gitcoord.git.repo import Repo
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.world.client import ClientWorld
from tests.git.memory_store import MemoryStore

# No hook runs: neither those of a directory nor ours of the settings, which core.hooksPath does not reach.
UNHOOKED = (
    "-c", "core.hooksPath=/dev/null",
    *(word for event in EVENTS for word in ("-c", f"hook.gitcoord-{event}.enabled=false")),
)  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent
# As the installed commands start and end: without `site`, without tidying up.
_PATH = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.path.append({sysconfig.get_path('purelib')!r}); "
_START = _PATH + "from gitcoord.cli.entry import %s as entry; entry()"
STARTS = {f"git-{name}": _START % name for name in ("claim", "coord", "handoff")}
PYTHON = [sys.executable, "-I", "-S"]
CLAIM, COORD, HANDOFF = ([*PYTHON, "-c", start] for start in STARTS.values())
_SERVE = "import socket; from tests.forkserver import serve; serve(socket.socket(fileno=int(sys.argv[1])))"

BOOT = "boot-of-this-machine"
START = 1_900_000_000


class GitRepo(Protocol):
    """The part of pytest-git's `git_repo` that is used here."""

    workspace: Path


class FakeHost:
    """A machine whose clock moves only when the test moves it."""

    def __init__(self, boot: str = BOOT, wall: int = START, mono: int = 1_000_000) -> None:
        self.boot = boot
        self.now = wall
        self.ticks = mono
        self.drawn = 0
        self.shields: list[bool] = []
        self.one_shot = False

    def wall(self) -> int:
        return self.now

    def mono(self) -> int:
        return self.ticks

    def random(self) -> str:
        self.drawn += 1
        return f"{self.drawn:032x}"

    def pause(self, seconds: float) -> None:
        self.ticks += round(seconds * 1000)

    def defer_interrupts(self, on: bool) -> None:
        self.shields.append(on)

    def advance(self, seconds: int) -> None:
        """Both clocks go on."""
        self.now += seconds
        self.ticks += seconds * 1000

    def sleep(self, seconds: int) -> None:
        """The lid is closed: only the wall clock goes on."""
        self.now += seconds


def bare_repo(directory: Path) -> Repo:
    """The least that git takes for a repository, so that no child of a memory context finds the one around it."""
    for name in ("objects", "refs"):
        (directory / name).mkdir(parents=True)
    (directory / "HEAD").write_text("ref: refs/heads/main\n")
    return repo_at(directory)


def repo_at(git_dir: Path, common: Path | None = None, worktree: Path | None = None) -> Repo:
    """A Repo whose children use this git directory, whatever the test's own directory is."""
    env = {os.fsencode(key): os.fsencode(value) for key, value in os.environ.items()}
    env[b"GIT_DIR"] = os.fsencode(git_dir)
    return Repo(str(git_dir), str(common or git_dir), str(worktree or ""), "", env)


def memory_context(directory: Path, host: FakeHost | None = None, *, store: MemoryStore | None = None) -> Context:
    """A context on a memory store; `directory` gets its scratch files. Give the same store to share a ledger."""
    git_dir = directory / "memory.git"
    repo = repo_at(git_dir) if git_dir.exists() else bare_repo(git_dir)
    settings = Settings([("gitcoord.gc", "false")])  # there is nothing on disk to collect
    return Context(repo, settings, store or MemoryStore(), host or FakeHost(), ClientWorld)


def memory_ledger(directory: Path, host: FakeHost | None = None, *, fold: bool = False) -> Context:
    """The same with a ledger in it."""
    ctx = memory_context(directory, host)
    init(ctx, Actor("setup"), sync="main", fold=fold)
    return ctx


def plumbing_store(repo: Repo, oid_length: int, *, asking: bool = False) -> PlumbingStore:
    """A store that may write, without the cost of fsync; `asking` git for all that it reads."""
    Path(repo.scratch).mkdir(exist_ok=True)

    def writing() -> tuple[DurableObjects, LockNotes]:
        objects = DurableObjects(repo.objects, oid_length, f"{repo.scratch}/redo", BOOT, shared=False, durable=False)
        return objects, LockNotes(repo.common_dir, repo.scratch, BOOT)

    store = PlumbingStore(repo)
    store.configure(oid_length, False, None if asking else LooseReader(repo, oid_length), writing)
    return store


def git(where: Path, *words: str | bytes, data: bytes = b"", ok: bool = True) -> bytes:
    """Real git, as a user would run it: its output, and an error where it fails unless that is expected."""
    done = subprocess.run(["git", "-C", str(where), *words], input=data, capture_output=True, check=False)
    assert done.returncode == 0 or not ok, done.stderr.decode(errors="replace")
    return done.stdout


_templates: dict[tuple[object, ...], Path] = {}


def copy_template(target: Path, make: Callable[..., None], *words: Any) -> None:
    """Put what `make(directory, *words)` makes into the target, a work tree or several: made once, copied each time."""
    key = (make, *words)
    if key not in _templates:
        directory = tempfile.TemporaryDirectory(prefix="gitcoord-template-")
        atexit.register(directory.cleanup)
        _templates[key] = Path(directory.name)
        make(_templates[key], *words)
    shutil.copytree(_templates[key], target, symlinks=True, dirs_exist_ok=True)
    for index in (target / ".git/index", *target.glob("*/.git/index")):
        if index.exists():
            git(index.parents[1], "update-index", "-q", "--refresh")  # the index knows files by their inodes
            config = index.with_name("config")
            config.write_text(config.read_text().replace(str(_templates[key]), str(target)))  # addresses of remotes


class _ForkServer:
    """A process that runs commands, one after the other."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair()
        argv = [*PYTHON, "-c", _PATH + _SERVE, str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )
        atexit.register(self._process.wait)
        atexit.register(self._requests.close)  # it ends with its requests

    def run(self, order: bytes, streams: list[int], timeout: float) -> int:
        request = _memory(order)
        try:
            socket.send_fds(self._requests, [b"x"], [*streams, request])
            self._requests.settimeout(timeout)
            return int(self._requests.recv(16))
        except BaseException:
            os.killpg(self._process.pid, signal.SIGKILL)
            del _of_thread.server  # the next command gets another one
            raise
        finally:
            os.close(request)


_of_thread = threading.local()


def _fork_server() -> _ForkServer:
    """The one of this thread, started when the first command is asked for."""
    found: _ForkServer | None = getattr(_of_thread, "server", None)
    if found is None:
        found = _of_thread.server = _ForkServer()
    return found


def _memory(data: bytes = b"") -> int:
    fd = os.memfd_create("tests")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def run_command(
    argv: Sequence[str | bytes], cwd: Path, env: Mapping[str, str], data: bytes = b"", timeout: float = 60
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as `subprocess.run` does; gitcoord's own programs, `[*CLAIM, "list"]`, run in forks of one process."""
    if list(argv[: len(PYTHON)]) != PYTHON:
        return subprocess.run(argv, cwd=cwd, env=env, input=data, capture_output=True, check=False, timeout=timeout)
    words = [os.fsencode(word) for word in argv[len(PYTHON) :]]
    environ = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    umask = os.umask(0)
    os.umask(umask)
    files = [_memory(data), _memory(), _memory()]
    try:
        code = _fork_server().run(marshal.dumps((words, os.fsencode(cwd), environ, umask)), files, timeout)
        out, err = (os.pread(file, os.fstat(file).st_size, 0) for file in files[1:])
    finally:
        for file in files:
            os.close(file)
    return subprocess.CompletedProcess(argv, code, out, err)
