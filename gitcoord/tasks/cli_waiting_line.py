"""A line of those who wait on this machine: whoever came first is the first to ask after every change of the ledger.

A ticket is a small file with the process that waits and the Seq at which it was last told "not now". Whoever is behind has
its turn once all ahead of it have been told so at the Seq at which it is decided: so nobody is overtaken, and nobody waits
for one who cannot be served. Only order is decided here, never who gets what.
"""

from __future__ import annotations

import time

from gitcoord.claims.cli_wait import Bell
from gitcoord.git.files import list_files, make_directory, read_file, remove_file, write_file
from gitcoord.git.host import getpid, process_state, runs_still, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.context import Context


class Line:
    def __init__(self, ctx: Context, name: str) -> None:
        self._ctx = ctx
        self._dir = ctx.scratch(f"line/{name}/x").rpartition("/")[0]
        make_directory(self._dir)
        pid = getpid()
        self._ticket = f"{time.time_ns():020d}-{pid}"
        self._who = f"{pid}\n{start_time(pid)}\n{ctx.host.boot}\n"
        self._asked_at = 0
        self._bell = Bell(self._dir)  # its signal wakes whoever waits for the ledger, too
        self._write()

    def ahead(self, seq: int) -> int:
        """How many have not had their turn at this Seq of the ledger; 0: it is ours."""
        self._asked_at = seq
        return sum(self._waits(ticket, seq) for ticket in self._tickets() if ticket < self._ticket)

    def told_not_now(self) -> None:
        self._write()

    def leave(self) -> None:
        remove_file(f"{self._dir}/{self._ticket}")
        self._bell.close()

    def _tickets(self) -> list[str]:
        return [name for name in list_files(self._dir) if not name.endswith(".tmp")]

    def _write(self) -> None:
        write_file(f"{self._dir}/{self._ticket}", f"{self._who}{self._asked_at}".encode())

    def _waits(self, ticket: str, seq: int) -> bool:
        path = f"{self._dir}/{ticket}"
        words = read_file(path).decode("ascii", "replace").split("\n")
        if len(words) != 4 or not words[3].isdecimal():
            return False  # it is being written, or has just gone
        if words[2] == self._ctx.host.boot and not runs_still(words[0], words[1]):
            remove_file(path)
            return False
        return int(words[3]) < seq and process_state(int(words[0])) != "T"  # one that was stopped holds up nobody
