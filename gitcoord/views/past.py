"""The ledger after an earlier event: its snapshot, and the world beside it as far as the ledger remembers it."""

from __future__ import annotations

from gitcoord.base.names import LEDGER, Oid
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Heartbeat, Seen
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.startup.annotations import Iterable
from gitcoord.world.client import ClientWorld


def snapshot_at(ctx: Context, oid: Oid) -> Snapshot:
    """The ledger as this commit of it has it."""
    return Snapshot(ctx.store, None, Commit(ctx.store.read([oid])[0], LEDGER))


class PastWorld(ClientWorld):
    """Its clock shows the time of the event. Heartbeats are not kept, so nothing counts as expired."""

    def __init__(self, ctx: Context, snapshot: Snapshot) -> None:
        super().__init__(ctx, snapshot)
        self.wall = snapshot.event.at

    def heartbeat(self, agent: str) -> Heartbeat | None:
        return None

    def prefetch_heartbeats(self, agents: Iterable[str]) -> None:
        return None

    def first_seen(self, agent: str) -> Seen | None:
        return None

    def granted_seen(self, token: int) -> int:
        return self.mono
