"""Helpers of many tests: a host whose clock is set by hand, and contexts on the memory store or on a repository."""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import marshal
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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

_SERVE_SCRIPTS = "from tests.forkserver import serve_scripts; serve_scripts(sys.argv[1], int(sys.argv[2]))"

BOOT = "boot-of-this-machine"
START = 1_900_000_000


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


def empty_repository(top: Path) -> None:
    git(top, "init", "-q")


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
            if (index.with_name("refs") / "heads/gitcoord").exists() and "authority" not in config.read_text():
                _own_ledger(index.parent)


def _own_ledger(git_dir: Path) -> None:
    """Make a copied ledger this repository's own: its first event names the git directory by its inode."""
    change_first_event(git_dir, rb'"local":\d+', b'"local":%d' % git_dir.stat().st_ino)


def change_first_event(git_dir: Path, old: bytes, new: bytes) -> None:
    """Write another first event of a ledger that has no second one: `new` in place of what matches `old`."""

    def place(oid: str) -> Path:
        return git_dir / "objects" / oid[:2] / oid[2:]

    def read(oid: str) -> bytes:
        return zlib.decompress(place(oid).read_bytes()).partition(b"\0")[2]

    def write(kind: bytes, data: bytes) -> str:
        data = b"%s %d\0%s" % (kind, len(data), data)
        oid = hashlib.sha1(data).hexdigest()
        place(oid).parent.mkdir(exist_ok=True)
        place(oid).write_bytes(zlib.compress(data, 1))
        return oid

    root = (git_dir / "refs/heads/gitcoord").read_text().strip()
    commit = read(root)
    tree = commit[5:45]
    listing = read(tree.decode())
    record = listing.partition(b" format\0")[2][:20]
    blob = write(b"blob", re.sub(old, new, read(record.hex())))
    new_tree = write(b"tree", listing.replace(record, bytes.fromhex(blob)))
    new_root = write(b"commit", re.sub(old, new, commit.replace(tree, new_tree.encode())))
    assert new_root != root
    for file in (git_dir / "config", *(git_dir / "refs").rglob("*"), *(git_dir / "logs").rglob("*")):
        if file.is_file():
            file.write_text(file.read_text().replace(root, new_root))


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
    fcntl.fcntl(
        fd, fcntl.F_SETFL, os.O_APPEND
    )  # whoever opens it again, through /proc, writes behind what others wrote
    return fd


_scripts: list[str] = []  # the directory of the server of scripts, once there is one


def _script_server() -> str:
    if not _scripts:
        directory = tempfile.TemporaryDirectory(prefix="gitcoord-scripts-")
        theirs, ours = os.pipe()
        os.mkfifo(f"{directory.name}/requests")
        argv = [*PYTHON, "-c", _PATH + _SERVE_SCRIPTS, directory.name, str(theirs)]
        process = subprocess.Popen(argv, pass_fds=[theirs], stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs)
        atexit.register(directory.cleanup)
        atexit.register(process.wait)
        atexit.register(os.close, ours)  # it ends with this pipe
        _scripts.append(directory.name)
    return _scripts[0]


def forked_script(program: list[str], *words: str) -> str:
    """The text of a shell script that is this program of gitcoord, `CLAIM` say, with these words before its own.

    It has a fork run the program, at a fraction of the cost of a process of its own. At a terminal, or once the tests have ended,
    it is that process itself. Not for tests of signals and of processes: the fork is no child of whoever runs the script.
    """
    place, start = _script_server(), program[-1].encode().hex()
    return f"""#!/bin/sh
if ! [ -t 0 ] && ! [ -t 1 ] && ! [ -t 2 ] && mkfifo {place}/$$ 2>/dev/null; then
    echo "$$ {" ".join([start, *words])}" >{place}/requests
    read -r code <{place}/$$
    exit "$code"
fi
exec {shlex.join([*program, *words])} "$@"
"""


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
