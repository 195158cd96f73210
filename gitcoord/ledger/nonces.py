"""Nonces that a caller gave: remembered for a week, so that a repeat gives the first outcome and no second event."""

from __future__ import annotations

from time import gmtime

from gitcoord.base.codec import Record, record_of, values_of
from gitcoord.base.errors import refused
from gitcoord.base.names import encode
from gitcoord.ledger.state import Changes, State
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.event import Event

KEEP_DAYS = 7
_NONCE = {"seq": int, "agent": str, "kind": str, "command": dict}


class Remembered(NamedTuple):
    """The command that was done under a nonce."""

    seq: int
    agent: str
    kind: str
    command: Record


def day(at: int) -> str:
    """The UTC date of a time. Not by `strftime`, which writes years before 1000 differently on different systems."""
    date = gmtime(at)
    return f"{date.tm_year:04d}-{date.tm_mon:02d}-{date.tm_mday:02d}"


def _file(date: str, agent: str, nonce: str) -> str:
    return f"nonces/{date}/{agent}/{encode(nonce)}"


def keep_nonce(state: State, event: Event, changes: Changes) -> None:
    """Remember this event's nonce and forget those that are a week old."""
    oldest = day(event.at - KEEP_DAYS * 86400)
    for date in state.names("nonces"):
        if date < oldest:
            changes[f"nonces/{date}/"] = None
    done = (event.seq, event.agent, event.kind, event.keep)
    changes[_file(day(event.at), event.agent, event.nonce)] = record_of(_NONCE, done)


def remembered(state: State, agent: str, nonce: str, command: Record) -> Remembered | None:
    """The result of the command under this nonce: None if nothing, a refusal if it was another command."""
    for date in state.names("nonces"):
        record = state.get(_file(date, agent, nonce))
        if record is not None:
            done = Remembered._make(values_of(record, _NONCE, "nonce"))
            if done.command != command:
                raise refused(
                    "nonce",
                    f"the nonce '{nonce}' stands for another command (event {done.seq})",
                    "use a new nonce for a new command",
                )
            return done
    return None
