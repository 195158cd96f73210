"""Claims that are part of an open handoff stay when their holder's session ends."""

from __future__ import annotations

from gitcoord.handoff.model import handed_over
from gitcoord.ledger.kinds import SessionHooks

HOOKS = SessionHooks(outlives=handed_over)
