"""Events: what one ledger commit says, how it is written and read, and what it does to the state.

    claim src/app.py by alice          <- the subject, for people
                                       <- an empty line
    {"agent":"alice","at":...}         <- the event: one canonical line of JSON, the only part that counts
                                       <- an empty line
    Seq: 12                            <- trailers, an index for `git log`
    Kind: claim

A command may need several events (expire, start, claim): they are one chain of commits, swapped in as one. `part` is an
event's place in its chain, `nonce` is common to the chain.
"""

from __future__ import annotations

from gitcoord.base.codec import MAX_EVENT, VERSION, Malformed, Record, Shape, check, dumps, loads
from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import Oid, check_agent, printable
from gitcoord.ledger.kinds import agents_in, kind_of
from gitcoord.ledger.nonces import keep_nonce
from gitcoord.ledger.sessions import Agent, Heartbeat, agent_file
from gitcoord.ledger.state import Changes, State
from gitcoord.startup.annotations import Callable, TypeVar
from gitcoord.startup.namedtuple import NamedTuple

Value = TypeVar("Value")

_COMMON = {"kind": str, "seq": int, "agent": str, "at": int, "nonce": str, "part": int}
_COMMON_OPTIONAL: dict[str, Shape] = {"keep": dict, "refused": [{"path": str, "holder": str, "count": int}]}
_SUBJECT = 100


class Illegal(CouldNotJudge):
    """An event that may not follow the state it stands on."""

    code = "illegal-event"


class Event(NamedTuple):
    kind: str
    seq: int
    agent: str
    at: int
    nonce: str
    part: int
    body: Record
    keep: Record | None = None  # the command, where a given nonce is to be remembered
    refused: tuple[Record, ...] = ()  # what this agent was refused since its last event


class Decision(NamedTuple):
    """A yes: the events to commit (none: nothing changes), the heartbeats that move with them, what to tell."""

    events: list[Event]
    beats: list[Heartbeat]
    result: Record


def encode_event(event: Event) -> bytes:
    """The commit message."""
    record = {**event.body, "v": VERSION}
    for key in _COMMON:
        record[key] = getattr(event, key)
    if event.keep is not None:
        record["keep"] = event.keep
    if event.refused:
        record["refused"] = list(event.refused)
    line = dumps(record)
    if len(line) > MAX_EVENT:
        raise Malformed("the request is too large for one event", hints=("ask for fewer paths, or a directory",))
    subject = printable(kind_of(event.kind).subject(event))
    if len(subject) > _SUBJECT:
        subject = subject[: _SUBJECT - 3] + "..."
    return f"{subject}\n\n{line}\n\nSeq: {event.seq}\nKind: {event.kind}\n".encode("utf-8", "backslashreplace")


def commit_bytes(event: Event, tree: Oid, parent: Oid | None) -> bytes:
    """The commit of an event, without a signature: one event on one tree and parent has one commit."""
    who = f"{event.agent} <{event.agent}@gitcoord.invalid> {event.at} +0000"
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else []), f"author {who}", f"committer {who}"]
    return "\n".join(lines).encode() + b"\n\n" + encode_event(event)


def decode_event(message: bytes) -> Event:
    """The event in a commit message, or `Malformed`: a commit made by hand is no event."""
    parts = message.split(b"\n\n")
    if len(parts) != 3:
        raise Malformed("the commit is not an event of the ledger")
    record = loads(parts[1], MAX_EVENT)
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise Malformed("the event has no kind")
    kind = kind_of(record["kind"])
    check(record, {**_COMMON, **kind.fields}, record["kind"], _COMMON_OPTIONAL)
    if parts[2] != f"Seq: {record['seq']}\nKind: {record['kind']}\n".encode():
        raise Malformed("the trailers do not match the event")
    try:
        for name in (record["agent"], *agents_in(kind, record)):
            check_agent(name)
    except UsageError as error:
        raise Malformed(error.message) from None
    body = {key: value for key, value in record.items() if key in kind.fields}
    common = {key: record[key] for key in _COMMON}
    return Event(**common, body=body, keep=record.get("keep"), refused=tuple(record.get("refused", ())))


def effects(state: State, event: Event) -> Changes:
    """The changes that the event makes to the tree, or `Illegal`."""
    if event.seq != state.seq + 1 and not (event.kind == "epoch" and event.seq > state.seq):
        raise Illegal(f"event {event.seq} cannot follow event {state.seq}")
    try:
        changes = kind_of(event.kind).apply(state, event)
    except (ValueError, IndexError):
        raise Illegal(f"event {event.seq} names what no file or ref can be called") from None
    own = agent_file(event.agent)
    record = changes[own] if own in changes else state.get(own)
    if record is not None and record["lost"]:
        # The result of this command reports what the agent lost.
        changes[own] = Agent.from_record(record, own)._replace(lost=()).to_record()
    if event.keep is not None:
        keep_nonce(state, event, changes)
    return changes


def apply(state: State, event: Event) -> State:
    """The state after the event."""
    new = state.patched(effects(state, event))
    new.seq = event.seq
    return new


def check_legal(event: Event, check: Callable[..., Value], *given: object, **how: object) -> Value:
    """The result of a check that commands make too; Illegal where a command would be a UsageError."""
    try:
        return check(*given, **how)
    except UsageError as error:
        raise Illegal(f"event {event.seq}: {error.message}") from None


class Chain:
    """Builds the events of one command, each on the state that the one before it leaves."""

    def __init__(self, state: State, agent: str, at: int, nonce: str, refused: tuple[Record, ...] = ()) -> None:
        self.state = state
        self.agent = agent
        self.at = at
        self.nonce = nonce
        self.refused = refused
        self.events: list[Event] = []

    def add(self, kind: str, body: Record, keep: Record | None = None) -> Event:
        part = len(self.events)
        refused = self.refused if not part else ()
        event = Event(kind, self.state.seq + 1, self.agent, self.at, self.nonce, part, body, keep, refused)
        self.state = apply(self.state, event)
        self.events.append(event)
        return event
