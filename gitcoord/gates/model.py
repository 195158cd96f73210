"""The gates' records in the ledger: requests for approval, and the versions of the rules that agents have read."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape, record_of, values_of
from gitcoord.ledger.state import State
from gitcoord.startup.namedtuple import NamedTuple

OPEN, APPROVED, DENIED = "open", "approved", "denied"

_APPROVAL: dict[str, Shape] = {
    "id": str, "path": str, "mode": str, "blob": str, "rule": str, "commit": str, "bases": list,
    "agent": str, "at": int, "state": str, "by": str, "reason": str,
}  # fmt: skip
_READ: dict[str, Shape] = {"version": str, "seq": int, "at": int}
_READER: dict[str, Shape] = {"agent": str, "read": [_READ]}


class Approval(NamedTuple):
    """A request for a person's approval of one content of one path, and the answer."""

    id: str
    path: str
    mode: str
    blob: str  # '' for a deletion
    rule: str
    commit: str
    bases: list[str]
    agent: str  # the one that asked
    at: int
    state: str = OPEN
    by: str = ""
    reason: str = ""

    @classmethod
    def from_record(cls, record: Record, file: str) -> Approval:
        return cls._make(values_of(record, _APPROVAL, file))

    def to_record(self) -> Record:
        return record_of(_APPROVAL, self)

    @property
    def content(self) -> tuple[str, str, str]:
        return self.path, self.mode, self.blob


def approval_file(id: str) -> str:
    return f"approvals/{id}"


def approval(state: State, id: str) -> Approval | None:
    file = approval_file(id)
    record = state.get(file)
    return None if record is None else Approval.from_record(record, file)


def approvals(state: State) -> list[Approval]:
    """Every request, oldest first."""
    found = [Approval.from_record(record, file) for file, record in state.below("approvals").items()]
    return sorted(found, key=lambda one: (one.at, one.id))


class Reading(NamedTuple):
    """A version of the rules that an agent has read: the event and the time."""

    version: str
    seq: int
    at: int


class RulesReader(NamedTuple):
    """An agent and the last few versions of the rules that it has read, the newest last."""

    agent: str
    read: tuple[Reading, ...] = ()

    @classmethod
    def from_record(cls, record: Record, file: str) -> RulesReader:
        agent, rows = values_of(record, _READER, file)
        return cls(agent, tuple(Reading(*(row[key] for key in _READ)) for row in rows))

    def to_record(self) -> Record:
        return record_of(_READER, (self.agent, [row._asdict() for row in self.read]))


def ack_file(agent: str) -> str:
    return f"acks/{agent}"


def reader(state: State, agent: str) -> RulesReader:
    file = ack_file(agent)
    record = state.get(file)
    return RulesReader(agent) if record is None else RulesReader.from_record(record, file)


def readers(state: State) -> list[RulesReader]:
    return [RulesReader.from_record(record, file) for file, record in sorted(state.below("acks").items())]


def has_read(state: State, agent: str, version: str) -> bool:
    """Return whether the agent, or one of which it is a subagent, has read this version."""
    while agent:
        if any(row.version == version for row in reader(state, agent).read):
            return True
        agent = agent.rpartition(".")[0]
    return False
