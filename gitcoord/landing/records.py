"""Landings that are over, read from the ledger's events: the state does not keep them."""

from __future__ import annotations

from gitcoord.base.names import LEDGER
from gitcoord.git.commands.refs import rev_parse
from gitcoord.landing.model import FACTS, OpenLanding
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event
from gitcoord.ledger.snapshot import Snapshot, history, read_snapshot
from gitcoord.tasks.model import DONE, REVIEW, task_record

_RECENT = 200  # events


def landed_with(ctx: Context, task: str, agent: str) -> OpenLanding | None:
    """The landing by which this agent has completed the task; None where it has not."""
    snapshot = read_snapshot(ctx)
    found = task_record(snapshot.state, task)
    result = found.result if found is not None and found.state in (DONE, REVIEW) else {}
    if result.get("agent") != agent:
        return None
    land = _event(ctx, snapshot, result["seq"])
    landing = _event(ctx, snapshot, land.body["landing"]) if land is not None and land.kind == "land" else None
    if landing is None or landing.kind != "landing":
        return None
    return OpenLanding(landing.agent, landing.seq, landing.at, **{key: landing.body[key] for key in FACTS})


def check_seconds(ctx: Context, snapshot: Snapshot) -> int:
    """How long the checks of the last landing took; 0 where none of the last events tells."""
    for commit in history(ctx, snapshot.head, limit=_RECENT):
        event = commit.event
        if event.kind == "landing" and event.body["checks"]:
            return sum(int(row["seconds"]) for row in event.body["checks"])
    return 0


def _event(ctx: Context, snapshot: Snapshot, seq: int) -> Event | None:
    """The event of this number; None where a repair has left a gap in the numbers since."""
    found = rev_parse(ctx.repo.env, f"{snapshot.head}~{snapshot.event.seq - seq}")
    event = None if found.code else Commit(ctx.store.read([found.text])[0], LEDGER).event
    return event if event is not None and event.seq == seq else None
