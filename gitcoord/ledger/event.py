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
from gitcoord.ledger.kinds import agents_in, kind_of, queue_rules
from gitcoord.ledger.nonces import keep_nonce
from gitcoord.ledger.sessions import Agent, Heartbeat, agent_file
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Callable, TypeVar
from gitcoord.startup.namedtuple import NamedTuple

Value = TypeVar("Value")

_COMMON = {"kind": str, "seq": int, "agent": str, "at": int, "nonce": str, "part": int}
_COMMON_OPTIONAL: dict[str, Shape] = {
    "keep": dict, "refused": [{"path": str, "holder": str, "count": int}], "past": [int],
    "granted": [{"ticket": int, "agent": str, "items": [(str, str)], "past": [int], "capacity": dict}],
}  # fmt: skip
_SUBJECT = 100
READY = "work/ready/"  # the index of tasks that may be taken


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
    granted: tuple[Record, ...] = ()  # the requests that are granted by this event, in order
    past: tuple[int, ...] = ()  # tickets of the requests that its own claim overtakes


class Decision(NamedTuple):
    """A yes: the events to commit (none: nothing changes), the heartbeats that move with them, what to tell."""

    events: list[Event]
    beats: list[Heartbeat]
    result: Record
    again: bool = False  # not the command itself yet: commit this, then decide the command again


def encode_event(event: Event) -> bytes:
    """The commit message."""
    record = {**event.body, "v": VERSION}
    for key in _COMMON:
        record[key] = getattr(event, key)
    if event.keep is not None:
        record["keep"] = event.keep
    if event.refused:
        record["refused"] = list(event.refused)
    if event.granted:
        record["granted"] = list(event.granted)
    if event.past:
        record["past"] = list(event.past)
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
    check(record, {**_COMMON, **kind.fields}, record["kind"], {**_COMMON_OPTIONAL, **kind.optional})
    if parts[2] != f"Seq: {record['seq']}\nKind: {record['kind']}\n".encode():
        raise Malformed("the trailers do not match the event")
    try:
        for name in (record["agent"], *agents_in(kind, record), *(row["agent"] for row in record.get("granted", ()))):
            check_agent(name)
    except UsageError as error:
        raise Malformed(error.message) from None
    body = {key: value for key, value in record.items() if key in kind.fields or key in kind.optional}
    common = {key: record[key] for key in _COMMON}
    refused, granted, past = (tuple(record.get(key, ())) for key in ("refused", "granted", "past"))
    return Event(**common, body=body, keep=record.get("keep"), refused=refused, granted=granted, past=past)


def effects(state: State, event: Event) -> Changes:
    """The changes that the event makes to the tree, or `Illegal`."""
    if event.seq != state.seq + 1 and not (event.kind == "epoch" and event.seq > state.seq):
        raise Illegal(f"event {event.seq} cannot follow event {state.seq}")
    try:
        changes = kind_of(event.kind).apply(state, event)
        if event.granted or event.past:
            changes = queue_rules().apply_grants(state, event, changes)
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

    def __init__(self, state: State, agent: str, world: World) -> None:
        self.state = state
        self.agent = agent
        self.world = world
        self.grants = True  # False: the command itself goes on with what its next events free; grants are made when it is True again
        self._owed: list[str] = []  # files of claims that were freed without grants
        self.events: list[Event] = []

    def add(self, kind: str, body: Record, keep: Record | None = None, *, past: tuple[int, ...] = ()) -> Event:
        """Add an event. Where it frees something, it grants the requests that may go now."""
        part, state = len(self.events), self.state
        row = (kind, state.seq + 1, self.agent, self.world.wall, self.world.nonce, part)
        event = Event(*row, body, keep, past=past)
        changes = effects(state, event)
        after = state.patched(changes)
        if (self._owed or may_free(changes)) and after.names("waits"):
            freed = [*self._owed, *queue_rules().freed_by(state, changes)]
            rows = queue_rules().grants_after(after, freed, self.world) if self.grants else ()
            self._owed = [] if self.grants else freed
            if rows:
                event = event._replace(granted=rows)
                after = state.patched(effects(state, event))
        after.seq = event.seq
        self.state = after
        self.events.append(event)
        return event

    def follow(self, events: list[Event]) -> None:
        """Go on after these events, which another rule has made for the same command."""
        for event in events:
            self.state = apply(self.state, event)
            self.events.append(event)


def may_free(changes: Changes) -> bool:
    """May an event with these changes free something that somebody waits for?"""
    return any(key.startswith(("claims/", "waits/", READY)) or key == "halt" for key in changes)


def refs_of(state: State, event: Event) -> dict[str, bool]:
    """The claim refs that follow from an event: name -> True (points at its commit) or False (gone)."""
    found = kind_of(event.kind).refs(state, event)
    return {**found, **queue_rules().refs_of_grants(state, event)} if event.granted else found
