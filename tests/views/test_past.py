"""The world beside an earlier state: its clock stands, and heartbeats are unknown."""

from __future__ import annotations

from pathlib import Path

from gitcoord.claims.model import Item
from gitcoord.claims.service import take
from gitcoord.claims.take import Take
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.views.past import PastWorld, snapshot_at
from tests.support import FakeHost, memory_ledger


def test_an_earlier_world(tmp_path: Path) -> None:
    host = FakeHost()
    ctx = memory_ledger(tmp_path, host)
    take(ctx, Take(Actor("alice"), (Item("path", "a"),)))
    then = read_snapshot(ctx)
    host.advance(100_000)
    take(ctx, Take(Actor("bob"), (Item("path", "b"),)))
    past = snapshot_at(ctx, then.head)
    world = PastWorld(ctx, past)
    assert past.state.seq == then.state.seq and world.wall == then.event.at < host.now
    assert world.heartbeat("alice") is None and ctx.world(read_snapshot(ctx)).heartbeat("alice") is not None
