"""The waiting line of one machine: after each change of the ledger, waiters ask in the order in which they came.

A ticket is a small file with the waiting process and the Seq at which it last asked in vain. A waiter may ask once everybody
before it has asked in vain at the current Seq, so nobody is overtaken, and nobody waits for a waiter that cannot be served.
The line decides only the order, never who gets what.
"""

from __future__ import annotations

import time

from gitcoord.claims.cli_wait import Bell
from gitcoord.git.files import list_files, make_directory, read_file, remove_file, write_file
from gitcoord.git.host import getpid, process_state, runs_still, start_time
from gitcoord.ledger.context import Context


class WaitingLine:
    """One waiter's place in the line."""

    def __init__(self, ctx: Context, name: str) -> None:
        self._ctx = ctx
        self._dir = ctx.scratch(f"line/{name}/x").rpartition("/")[0]
        make_directory(self._dir)
        pid = getpid()
        self._ticket = f"{time.time_ns():020d}-{pid}"
        self._process = f"{pid}\n{start_time(pid)}\n{ctx.host.boot}\n"
        self._asked_at = 0
        self._bell = Bell(self._dir)  # its signal also wakes waiters for the ledger
        self.write_ticket()

    def waiters_before(self, seq: int) -> int:
        """The number of earlier waiters that have not asked at this Seq of the ledger yet; 0: this one may ask."""
        self._asked_at = seq
        return sum(self._must_ask(ticket, seq) for ticket in self._tickets() if ticket < self._ticket)

    def write_ticket(self) -> None:
        """Record that this waiter asked in vain at the Seq of its last `waiters_before`."""
        write_file(f"{self._dir}/{self._ticket}", f"{self._process}{self._asked_at}".encode())

    def leave(self) -> None:
        remove_file(f"{self._dir}/{self._ticket}")
        self._bell.close()

    def _tickets(self) -> list[str]:
        return [name for name in list_files(self._dir) if not name.endswith(".tmp")]

    def _must_ask(self, ticket: str, seq: int) -> bool:
        path = f"{self._dir}/{ticket}"
        words = read_file(path).decode("ascii", "replace").split("\n")
        if len(words) != 4 or not words[3].isdecimal():
            return False  # it is being written, or has just gone
        if words[2] == self._ctx.host.boot and not runs_still(words[0], words[1]):
            remove_file(path)
            return False
        return int(words[3]) < seq and process_state(int(words[0])) != "T"  # a stopped process delays nobody
