"""number: the next numbers of a sequence are reserved, for migrations, records or ports. None is ever given twice."""

from __future__ import annotations

from gitcoord.base.codec import MAX_DIGITS, Record, record_of, values_of
from gitcoord.base.errors import Refusal, Refused, UsageError, raise_if
from gitcoord.base.names import check_path, check_word, encode
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, Recalled
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats, as_started, barred
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"sequence": str, "first": int, "count": int, "floor": int}
MOST = 1000  # numbers at a time
LAST = 10**MAX_DIGITS - 1

_RECORD = {"sequence": str, "last": int, "agent": str, "seq": int, "at": int}


class GivenNumbers(NamedTuple):
    """The last number of a sequence that was given, to whom and when."""

    sequence: str
    last: int
    agent: str
    seq: int
    at: int

    def to_record(self) -> Record:
        return record_of(_RECORD, self)


class Number(NamedTuple):
    """The command. `floor` is the highest number that is known to be in use outside the ledger, in files say."""

    actor: Actor
    sequence: str
    amount: int = 1
    floor: int = 0
    file: str = (
        ""  # a path to claim with the number; '{n}' in it stands for the number, written as wide as `width` says
    )
    width: int = 0
    base: str = ""  # of that claim


def check_sequence(name: str) -> str:
    return check_word(name, "sequence", 64)


def decide(state: State, command: Number, world: World) -> Decision:
    """Reserve the next numbers. No session is needed, since a number is never given back."""
    check_sequence(command.sequence)
    if not 1 <= command.amount <= MOST:
        raise UsageError(f"from 1 to {MOST} numbers at a time")
    raise_if(barred(state, command.actor, world))
    first = next_number(state, command.sequence, command.floor)
    if first + command.amount - 1 > LAST:
        raise Refused(exhausted(command.sequence, first - 1))
    chain = Chain(state, command.actor.agent, world)
    beats, claimed = actor_heartbeats(state, command.actor, world), ""
    if command.file:
        claimed = command.file.replace("{n}", str(first).rjust(command.width, "0"))
        claim = _claim(state, command, world, claimed)
        if claim.again:
            return claim
        chain.follow(claim.events)
        beats = claim.beats
    body = {"sequence": command.sequence, "first": first, "count": command.amount, "floor": command.floor}
    event = chain.add("number", body)
    result = {"sequence": command.sequence, "first": first, "count": command.amount, "seq": event.seq}
    return Decision(chain.events, beats, {**result, **({"claimed": claimed} if claimed else {})})


def _claim(state: State, command: Number, world: World, path: str) -> Decision:
    """The claim on the file that gets the number; Refused where somebody holds it."""
    from gitcoord.claims.model import Item  # only where a file is named
    from gitcoord.claims.take import Take
    from gitcoord.claims.take import decide as decide_take

    if command.amount != 1:
        raise UsageError("--file goes with one number")
    reason = f"number of {command.sequence}"
    said = Take(command.actor, (Item("path", check_path(path)),), reason=reason, base=command.base)
    return decide_take(state, said, world)


def exhausted(sequence: str, last: int) -> Refusal:
    return Refusal("exhausted", f"the sequence '{sequence}' has no numbers left above {last}")


def number_file(sequence: str) -> str:
    return f"numbers/{encode(sequence)}"


def next_number(state: State, sequence: str, floor: int) -> int:
    """Above all that were given and all that are in use."""
    file = number_file(sequence)
    record = state.get(file)
    last = 0 if record is None else GivenNumbers._make(values_of(record, _RECORD, file)).last
    return max(last, floor, 0) + 1


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    """The command with the client's floor, which depends on files of the client and can only raise numbers."""
    body = events[-1].body
    command = Number(actor, body["sequence"], body["count"], body["floor"])
    claims = [event.body for event in events if event.kind == "claim"]
    if claims:
        command = command._replace(
            actor=as_started(events, actor), file=claims[-1]["items"][0][1], base=claims[-1]["bases"][0]
        )
    return [Recalled(decide, command)]


def subject(event: Event) -> str:
    first, count = event.body["first"], event.body["count"]
    numbers = f"{first}" if count == 1 else f"{first} to {first + count - 1}"
    return f"number {numbers} of {event.body['sequence']} for {event.agent}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    sequence = check_legal(event, check_sequence, body["sequence"])
    last = body["first"] + body["count"] - 1
    if body["first"] != next_number(state, sequence, body["floor"]) or not 1 <= body["count"] <= MOST or last > LAST:
        raise Illegal(f"event {event.seq} gives numbers of '{sequence}' that are not the next ones")
    return {number_file(sequence): GivenNumbers(sequence, last, event.agent, event.seq, event.at).to_record()}


KIND = Kind(FIELDS, subject, apply, recall)
