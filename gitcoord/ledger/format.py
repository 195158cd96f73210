"""The ledger's format: its version, and the settings that were fixed when it was set up."""

from __future__ import annotations

from gitcoord.base.codec import UPGRADE, Malformed, Record, record_of, values_of
from gitcoord.ledger.state import State
from gitcoord.startup.namedtuple import NamedTuple

FORMAT_MAJOR, FORMAT_MINOR = 1, 2
# The minor versions from which on requests wait in the ledger, and landings are on record. Earlier versions may not write there.
QUEUE, LANDINGS = 1, 2

_FORMAT = {"major": int, "minor": int, "case": str, "sync": str, "authority": dict, "ledger": str}


class Format(NamedTuple):
    """The ledger's format, and the settings that were fixed when it was set up."""

    major: int
    minor: int
    case: str
    sync: str  # the trunk
    authority: Record  # {"remote": url}, or the identity of the repository that decides
    ledger: str  # the id of this ledger

    def to_record(self) -> Record:
        return record_of(_FORMAT, self)


_checked: tuple[Record | None, Format | None] = (None, None)


def format_record(state: State) -> Format:
    """The format of this ledger. Rules ask for it with each path, so the last record is checked once."""
    global _checked
    record = state.get("format")
    known, found = _checked
    if found is not None and record is known:
        return found
    if isinstance(record, dict) and record.get("major") != FORMAT_MAJOR:
        raise Malformed(f"the ledger has format {record.get('major')!r}", hints=(UPGRADE,))
    found = Format._make(values_of(record, _FORMAT, "format"))
    _checked = record, found
    return found


def with_minor(state: State, minor: int) -> dict[str, Record | None]:
    """The change that makes a ledger one of this minor version; none where it is one, or a later one."""
    found = format_record(state)
    return {} if found.minor >= minor else {"format": found._replace(minor=minor).to_record()}


def folds_case(state: State) -> bool:
    return format_record(state).case == "fold"
