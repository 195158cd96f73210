"""Runs gitcoord's commands in forks of one process that has imported them: `run_command` in tests/support.py asks it to.

It starts as the installed commands do, without `site`, and nothing of the tests is in it. A request brings the standard streams
and a file with the words, directory and environment of the command; the answer is how the command ended.
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
from socket import recv_fds, socket

import gitcoord
from gitcoord.hot import coord, handoff, main

ENTRIES = {"git-claim": main.entry, "git-coord": coord.entry, "git-handoff": handoff.entry}


def import_all() -> None:
    """Import every module of gitcoord but those for MCP, whose library is large."""
    sys.modules["mcp"] = None  # type: ignore[assignment]  # its import fails
    for module in pkgutil.walk_packages(gitcoord.__path__, "gitcoord."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                import_module(module.name)
    del sys.modules["mcp"]
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


def _become_command(fds: list[int]) -> None:
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    size = os.fstat(fds[3]).st_size
    (program, *words), cwd, env = marshal.loads(os.pread(fds[3], size, 0))
    for fd in fds:
        os.close(fd)
    os.environ.clear()
    os.environb.update(env)
    time.tzset()
    sys.argv = [program, *(os.fsdecode(word) for word in words)]
    try:
        os.chdir(cwd)
        ENTRIES[program]()  # ends the process
    except BaseException:
        traceback.print_exc()
    os._exit(1)
