"""Completing the record of landings whose process has died after trunk had moved."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import printable
from gitcoord.landing.model import OpenLanding
from gitcoord.landing.service import finish_open
from gitcoord.landing.trunk import Trunk
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal.call import Call


def finish_interrupted(call: Call) -> bool:
    """Complete what trunk contains; gives whether there was any. The command goes on where that cannot be done: the next one tries."""
    try:
        finished = finish_open(call.ctx, call.actor(), Trunk(call.ctx, read_snapshot(call.ctx)))
    except (GitcoordError, OSError):
        return False
    note_finished(call, finished)
    return bool(finished)


def note_finished(call: Call, finished: list[OpenLanding]) -> None:
    for landing in finished:
        call.screen.note(f"note: the landing of {printable(landing.branch)} had been interrupted, and is on record now")
