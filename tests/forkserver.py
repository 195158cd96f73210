"""Runs Python programs in forks of one process that has imported gitcoord, for `run_command` and `forked_script` of tests/support.py.

It starts as the installed commands do, without `site`, and nothing of the tests is in it. A request of `run_command` brings the
standard streams and a file with the words, directory, environment and umask of the program; the answer is how it ended. A script
of `forked_script` gives its process id, and the rest is taken from /proc: the fork stands in for that process.
"""

from __future__ import annotations

import gc
import marshal
import os
import pkgutil
import posix
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from socket import recv_fds, socket
from typing import NoReturn

import gitcoord

# Libraries that a command loads by itself: libgit2 reads HOME when it is loaded, the other one is large.
_LATER = ("mcp", "pygit2")


def import_all() -> None:
    """Import every module of gitcoord that does without those libraries."""
    sys.modules |= dict.fromkeys(_LATER)  # type: ignore[arg-type]  # None: the import fails
    for module in pkgutil.walk_packages(gitcoord.__path__, "gitcoord."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                import_module(module.name)
    for name in _LATER:
        del sys.modules[name]
    gc.freeze()


_parent = 0  # of the script that the fork stands in for


def _import_for_scripts() -> None:
    own = posix.getppid
    posix.getppid = lambda: _parent or own()
    import_all()


def serve_scripts(directory: str, tests: int) -> None:
    """Answer scripts through pipes in the directory until the tests, which hold the other end of this pipe, have ended."""
    _import_for_scripts()
    requests = os.open(f"{directory}/requests", os.O_RDWR)
    ended, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    Path(directory, "ready").touch()
    running: dict[int, bytes] = {}
    answers: dict[bytes, int] = {}
    while True:
        ready = select.select([requests, ended, tests], [], [], 0.002 if answers else None)[0]
        if tests in ready:
            return
        if requests in ready:
            for line in os.read(requests, 65536).splitlines():  # a line is written at once
                child = os.fork()
                if child == 0:
                    _become_script(*line.split(b" "))
                running[child] = line.split(b" ")[0]
        if ended in ready:
            os.read(ended, 4096)
        while running:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            answers[running.pop(child)] = os.waitstatus_to_exitcode(status)
        answers = {pid: code for pid, code in answers.items() if not _answer(directory, pid.decode(), code)}


def _answer(directory: str, pid: str, code: int) -> bool:
    """Return whether the script has its answer, or is gone; if not, it does not read yet."""
    pipe = f"{directory}/{pid}"
    try:
        with open(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0) as answer:
            answer.write(b"%d\n" % (code if code >= 0 else 128 - code))
    except OSError:  # nobody reads; or nobody any more, when a script was killed in between
        if os.path.exists(f"/proc/{pid}"):
            return False
    os.unlink(pipe)
    return True


def _become_script(pid: bytes, start: bytes, *words: bytes) -> NoReturn:
    global _parent
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    place = f"/proc/{int(pid)}"
    for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_APPEND)):
        os.dup2(os.open(f"{place}/fd/{number}", flags), number)
    os.closerange(3, 64)
    argv = Path(place, "cmdline").read_bytes().split(b"\0")[2:-1]
    env = dict(row.split(b"=", 1) for row in Path(place, "environ").read_bytes().split(b"\0") if row)
    status = dict(row.split(":\t", 1) for row in Path(place, "status").read_text().splitlines())
    _parent = int(status["PPid"])
    _run(
        [b"-c", bytes.fromhex(start.decode()), *words, *argv], os.readlink(f"{place}/cwd"), env, int(status["Umask"], 8)
    )


def serve(requests: socket) -> None:
    import_all()
    while True:
        _, fds, _, _ = recv_fds(requests, 1, 4)
        if not fds:
            return
        child = os.fork()
        if child == 0:
            requests.close()
            _become_command(fds)
        for fd in fds:
            os.close(fd)
        requests.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _become_command(fds: list[int]) -> NoReturn:
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    size = os.fstat(fds[3]).st_size
    words, cwd, env, umask = marshal.loads(os.pread(fds[3], size, 0))
    for fd in fds:
        os.close(fd)
    _run(words, cwd, env, umask)


def _run(words: list[bytes], cwd: bytes | str, env: dict[bytes, bytes], umask: int) -> NoReturn:
    os.environ.clear()
    os.environb.update(env)
    time.tzset()
    os.umask(umask)
    sys.path[:] = sys.path[1:-1]  # without what this process added: a program names its own places
    sys.argv = [os.fsdecode(word) for word in words]
    try:
        os.chdir(cwd)
        source = sys.argv.pop(1) if sys.argv[0] == "-c" else Path(sys.argv[0]).read_text()
        exec(compile(source, sys.argv[0], "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = int(end.code) if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
