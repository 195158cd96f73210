"""Deploys in the ledger: for each target the last one, and the last that succeeded."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape, record_of, values_of
from gitcoord.base.names import encode
from gitcoord.ledger.state import State
from gitcoord.startup.namedtuple import NamedTuple

OK, FAILED, UNVERIFIED, INTERRUPTED = "ok", "failed", "unverified", "interrupted"
OUTCOMES = (OK, FAILED, UNVERIFIED, INTERRUPTED)
NOT_RUN = -1  # in place of the exit code of a verification that did not run

_DEPLOY: dict[str, Shape] = {
    "seq": int, "at": int, "agent": str, "commit": str, "outcome": str, "code": int, "verify_code": int, "token": int,
}  # fmt: skip
_TARGET: dict[str, Shape] = {"target": str, "last": _DEPLOY, "good": [_DEPLOY]}


class Deployed(NamedTuple):
    """One deploy: commit, agent and outcome."""

    seq: int
    at: int
    agent: str
    commit: str
    outcome: str
    code: int
    verify_code: int
    token: int

    @property
    def succeeded(self) -> bool:
        """Return whether the command succeeded and no verification failed."""
        return self.outcome in (OK, UNVERIFIED) and self.code == 0 and self.verify_code in (0, NOT_RUN)


class Deploys(NamedTuple):
    """The last deploy of a target, and the last that succeeded, if any did."""

    target: str
    last: Deployed
    good: Deployed | None

    @classmethod
    def from_record(cls, record: Record, file: str) -> Deploys:
        target, last, good = values_of(record, _TARGET, file)
        return cls(target, _deployed(last), _deployed(good[0]) if good else None)

    def to_record(self) -> Record:
        good = [self.good._asdict()] if self.good is not None else []
        return record_of(_TARGET, (self.target, self.last._asdict(), good))


def _deployed(row: Record) -> Deployed:
    return Deployed(*(row[key] for key in _DEPLOY))


def deploy_file(target: str) -> str:
    return f"deploys/{encode(target)}"


def deploys_of(state: State, target: str) -> Deploys | None:
    file = deploy_file(target)
    record = state.get(file)
    return None if record is None else Deploys.from_record(record, file)


def all_deploys(state: State) -> list[Deploys]:
    return [Deploys.from_record(record, file) for file, record in sorted(state.below("deploys").items())]
