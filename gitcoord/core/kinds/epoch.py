"""epoch: Seq leaps forward, after events may have been lost, so that no token is ever given twice."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.events import Event
    from gitcoord.core.state import Changes, State

FIELDS = {"reason": str}
LEAP = 1_000_000


def subject(event: "Event") -> str:
    return f"epoch at {event.seq} by {event.agent}"


def apply(state: "State", event: "Event") -> "Changes":
    return {}


def refs(state: "State", event: "Event") -> "dict[str, bool]":
    return {}
