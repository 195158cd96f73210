"""Records of outside effects that happen at most once over all agents.

A record begins before the effect and ends after it. In between nobody else runs it. If the runner is gone without an end, it is
unknown whether the effect happened, and only a person may allow another try.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, record_of, values_of
from gitcoord.base.durations import format_duration
from gitcoord.base.errors import Refusal, UsageError
from gitcoord.base.names import encode, quote, shell_word
from gitcoord.ledger.event import Event
from gitcoord.ledger.sessions import OPEN, SESSION_TTL, agent_record, expiry_of
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

RUNNING, DONE = "running", "done"
UNDER_WAY, UNKNOWN = "under-way", "unknown-outcome"  # codes of the refusals
MOST_CODE = 255
_LONGEST = 80  # three bytes each when encoded: no component is ever split
_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@+=,#")

_RECORD = {
    "key": str, "state": str, "agent": str, "session": int, "token": int, "nonce": str, "at": int, "code": int, "ended": int,
}  # fmt: skip


def check_key(key: str) -> str:
    if not 1 <= len(key) <= _LONGEST or not _CHARS.issuperset(key):
        hint = f"use 1 to {_LONGEST} of A-Z a-z 0-9 . _ - / : @ + = , #"
        raise UsageError(f"{quote(key[:100])} is no key of an effect", hints=(hint,))
    return key


def once_file(key: str) -> str:
    """One file in one directory for each key: 'a' and 'a/b' do not conflict."""
    return "once/" + encode(key).replace("/", "%2F")


class Effect(NamedTuple):
    """A recorded effect: its runner, when it began, and how it ended."""

    key: str
    state: str
    agent: str
    session: int
    token: int  # the Seq of its beginning
    nonce: str
    at: int
    code: int
    ended: int

    @classmethod
    def from_record(cls, record: Record, file: str) -> Effect:
        effect = cls._make(values_of(record, _RECORD, file))
        if effect.state not in (RUNNING, DONE) or once_file(effect.key) != file:
            raise Malformed(f"{file} holds an effect that does not belong there")
        return effect

    def to_record(self) -> Record:
        return record_of(_RECORD, self)

    def to_json(self) -> dict[str, object]:
        """The effect in the form of `--json`."""
        return {key: value for key, value in self._asdict().items() if key != "nonce"}


def once_record(state: State, key: str) -> Effect | None:
    file = once_file(key)
    record = state.get(file)
    return None if record is None else Effect.from_record(record, file)


def all_effects(state: State) -> list[Effect]:
    return [Effect.from_record(record, file) for file, record in sorted(state.below("once").items())]


def begun(event: Event) -> Effect:
    body = event.body
    return Effect(body["key"], RUNNING, event.agent, body["session"], event.seq, event.nonce, event.at, 0, 0)


def runs(state: State, world: World, record: Effect) -> bool:
    """Return whether its runner is alive: known for processes of this machine, elsewhere judged by heartbeats."""
    known = world.runner(record.nonce)
    if known:
        return known == "alive"
    runner = agent_record(state, record.agent)
    if runner is None or runner.state != OPEN or runner.session != record.session:
        return False
    return not expiry_of(state, world, record.agent, record.session, SESSION_TTL).expired


def refuse_unfinished(state: State, world: World, record: Effect) -> Refusal | None:
    """The refusal if the effect has begun and has no recorded end."""
    if record.state == DONE:
        return None
    since = format_duration(max(0, world.wall - record.at))
    if runs(state, world, record):
        return Refusal(
            UNDER_WAY,
            f"{record.agent} is running '{record.key}' (event {record.token}, for {since})",
            hints=(f"wait for the outcome: git coord once --wait 10m {shell_word(record.key)} -- ...",),
        )
    return Refusal(
        UNKNOWN,
        f"{record.agent} began '{record.key}' {since} ago (event {record.token}) and left no outcome: whether it"
        " happened is not known",
        hints=(
            "find out whether it happened",
            f"then a person may allow it again: git coord once --forget {shell_word(record.key)} --reason '...'",
        ),
    )
