"""The world as the server sees it when it retraces pushed events: its own git, clock, heartbeats and settings, and the client's word
about the client's own work tree."""

from __future__ import annotations

from gitcoord.base.names import Oid
from gitcoord.gates.history import file_at
from gitcoord.ledger.format import format_record
from gitcoord.ledger.world import Files
from gitcoord.server.retrace import Retraced
from gitcoord.world.client import ClientWorld


class ServerWorld(Retraced, ClientWorld):
    """The world of one push; `moving` is trunk, where the push moves it."""

    def _trunk_afterwards(self) -> Oid | None:
        if self.moving is not None:
            return self.moving.new or None
        return self.ctx.store.target(self._shared_trunk())

    def _shared_trunk(self) -> str:
        """The trunk of this repository: work lands here, also where it has a remote of its own."""
        return f"refs/heads/{format_record(self.snapshot.state).sync}"

    def changed(self, base: Oid, commit: Oid, paths: list[str]) -> dict[str, Files]:
        if not base or self.ctx.store.resolve([base])[0] is not None:
            return super().changed(base, commit, paths)
        # The base was never pushed (it was rebased, say): the event's files are checked against the commit alone.
        return {
            path: [row for row in self.facts.files(path) if file_at(self.ctx, commit, row[0]) == row[1:]]
            for path in paths
        }
