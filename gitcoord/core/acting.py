"""What commands share that neither claim nor open a session: who is barred, and the sign of life that acting is."""

from __future__ import annotations

from gitcoord.core.rules import halted
from gitcoord.core.sessions import OPEN, Actor, admit_or_none, agent_record, next_beat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.sessions import Beat
    from gitcoord.core.state import State, View
    from gitcoord.errors import Refusal


def barred(state: State, actor: Actor, view: View) -> Refusal | None:
    """While everything is halted nobody acts; the killed never do, nor does a second process under one name."""
    return halted(state) or admit_or_none(state, actor, view)


def sign_of_life(state: State, actor: Actor, view: View) -> list[Beat]:
    """The heartbeat of whoever acts, where it has a session open and one is due."""
    record = agent_record(state, actor.agent)
    if record is None or record["state"] != OPEN:
        return []
    beat = next_beat(view.beat(actor.agent), actor.agent, record["session"], view)
    return [beat] if beat is not None else []
