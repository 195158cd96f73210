"""The command Renew and its rule."""

from __future__ import annotations

from gitcoord.base.errors import raise_if, refused
from gitcoord.base.names import printable, shown
from gitcoord.claims.model import Item, all_claims, capacity_of, grant_body, own_claim
from gitcoord.claims.take import check_ttl, confirms_of, granted
from gitcoord.ledger.event import Chain, Decision
from gitcoord.ledger.sessions import Actor, admit, next_heartbeat
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import halted
from gitcoord.startup.namedtuple import NamedTuple


class Renew(NamedTuple):
    """The command: a heartbeat, and a new ttl for the items (none: for all claims)."""

    actor: Actor
    items: tuple[Item, ...] = ()
    ttl: int = 0


def decide(state: State, command: Renew, world: World) -> Decision:
    """While halted a heartbeat is allowed, a new ttl is not."""
    check_ttl(command.ttl)
    agent = command.actor.agent
    admitted = admit(state, command.actor, world)
    claims = all_claims(state, agent)
    if command.items:
        owns = [(item, own_claim(state, item, agent)) for item in command.items]
        claims = [own for _, own in owns if own is not None]
        missing = [shown(item.name, item.space) for item, own in owns if own is None]
    else:
        missing = [] if claims else ["anything"]
    if missing or admitted.opens:
        what = printable(", ".join(missing)) or "anything"
        raise refused("not-held", f"'{agent}' does not hold {what}", "git claim list --mine")
    ttl = command.ttl or min(claim.ttl for claim in claims)
    beat = next_heartbeat(world.heartbeat(agent), agent, admitted.session, world, ttl, confirms_of(claims))
    changing = [claim for claim in claims if command.ttl not in (0, claim.ttl)]
    raise_if(halted(state) if changing else None)
    chain = Chain(state, agent, world)
    for claim in changing:
        chain.add("claim", grant_body(claim, claim.session, command.ttl, capacity_of([claim.item], world)))
    now = [own_claim(chain.state, claim.item, agent) or claim for claim in claims]
    return Decision(chain.events, [beat] if beat else [], granted(now, renewed=not chain.events))
