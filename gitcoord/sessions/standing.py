"""What commands share that neither claim nor open a session: who is barred, and the sign of life that acting is."""

from __future__ import annotations

from gitcoord.ledger.sessions import OPEN, Actor, admit_or_none, agent_record, next_heartbeat
from gitcoord.sessions.admission import halted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.errors import Refusal
    from gitcoord.ledger.sessions import Heartbeat
    from gitcoord.ledger.state import State
    from gitcoord.ledger.world import World


def barred(state: State, actor: Actor, world: World) -> Refusal | None:
    """While everything is halted nobody acts; the killed never do, nor does a second process under one name."""
    return halted(state) or admit_or_none(state, actor, world)


def sign_of_life(state: State, actor: Actor, world: World) -> list[Heartbeat]:
    """The heartbeat of whoever acts, where it has a session open and one is due."""
    record = agent_record(state, actor.agent)
    if record is None or record.state != OPEN:
        return []
    beat = next_heartbeat(world.heartbeat(actor.agent), actor.agent, record.session, world)
    return [beat] if beat is not None else []
