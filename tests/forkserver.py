"""Runs Python programs in forks of one process that has imported gitcoord: `run_command` in tests/support.py asks it to.

It starts as the installed commands do, without `site`, and nothing of the tests is in it. A request brings the standard streams
and a file with the words, directory, environment and umask of the program; the answer is how it ended.
"""

from __future__ import annotations

import gc
import marshal
import os
import pkgutil
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
