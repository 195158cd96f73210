"""Nonces that a caller gave: remembered for a week, so that a repeat gives the first outcome and no second event."""

from gitcoord.core.codec import VERSION, check
from gitcoord.errors import Refusal
from gitcoord.names import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.events import Event
    from gitcoord.core.state import Changes, State

KEEP_DAYS = 7
_NONCE = {"seq": int, "agent": str, "kind": str, "command": dict}


def day(at: int) -> str:
    """The UTC date of a time, without a calendar module: the days of a 400-year era, counted from March."""
    z = at // 86400 + 719468
    era, doe = divmod(z, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    return f"{yoe + era * 400 + (month <= 2):04d}-{month:02d}-{doy - (153 * mp + 2) // 5 + 1:02d}"


def _file(date: str, agent: str, nonce: str) -> str:
    return f"nonces/{date}/{agent}/{encode(nonce)}"


def keep_nonce(state: "State", event: "Event", changes: "Changes") -> None:
    """Remember this event's nonce and forget those that are a week old."""
    oldest = day(event.at - KEEP_DAYS * 86400)
    for date in state.names("nonces"):
        if date < oldest:
            changes[f"nonces/{date}/"] = None
    record = {"v": VERSION, "seq": event.seq, "agent": event.agent, "kind": event.kind, "command": event.keep}
    changes[_file(day(event.at), event.agent, event.nonce)] = record


def remembered(state: "State", agent: str, nonce: str, command: "Record") -> "Record | Refusal | None":
    """What was done under this nonce: None if nothing, a refusal if it was another command."""
    for date in state.names("nonces"):
        record = state.get(_file(date, agent, nonce))
        if record is not None:
            check(record, _NONCE, "nonce")
            if record["command"] != command:
                return Refusal(
                    "nonce",
                    f"the nonce '{nonce}' stands for another command (event {record['seq']})",
                    hints=("use a new nonce for a new command",),
                )
            return record
    return None
