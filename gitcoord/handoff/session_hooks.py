"""What becomes of offered work when the session of the one who offers it ends: it waits on."""

from __future__ import annotations

from gitcoord.handoff.model import handed_over
from gitcoord.ledger.kinds import SessionHooks

HOOKS = SessionHooks(outlives=handed_over)
