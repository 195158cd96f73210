"""Waits of more than twice the time that a holder expects, found by what looks at the ledger anyway: a sweep, the supervisor of a waiting
agent, the overview. A process that waits tells of its own wait at once, and a request without one is told of here.

A request is looked at in the clone in which it was made, so that other clones do not tell of it too.
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.claims.model import expiry_of_claim, is_turn
from gitcoord.claims.news import noted_agents
from gitcoord.claims.requests import Requests, own_requests
from gitcoord.ledger.alerts import SETTING, alert_of_wait
from gitcoord.ledger.context import Context
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.views.needs import Held, late_waiters


def alert_of_late_waits(ctx: Context, agent: str = "") -> None:
    """Alert of the late waits that began in this clone, or of this agent's: once for each claim and waiter. Nothing is raised: what looks
    at them goes on without."""
    if not ctx.settings.get(SETTING):
        return
    try:
        agents = [name for name in noted_agents(ctx) if agent in ("", name)]
        if agents:
            _alert(ctx, agents)
    except (GitcoordError, OSError):
        pass


def _alert(ctx: Context, agents: list[str]) -> None:
    snapshot = read_snapshot(ctx)
    state, world = snapshot.state, ctx.world(snapshot)
    requests = Requests(state, world)
    for request in (request for agent in agents for request in own_requests(state, agent)):
        for claim in requests.blocking_claims(request):
            verdict = expiry_of_claim(state, world, claim)
            if late_waiters(Held(claim, verdict.expired, (request,), is_turn(state, claim)), world.wall, times=2):
                alert_of_wait(ctx, request.agent, claim.to_json(verdict.expires_in), world.wall - request.at)
