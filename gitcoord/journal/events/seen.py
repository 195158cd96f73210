"""seen: an agent was shown notes; or, with `end`, a note is taken away for everybody."""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.names import printable
from gitcoord.journal.model import MOST_SEEN, all_notes, file_of, note_at
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, touches_nothing
from gitcoord.ledger.sessions import KILLED, Actor, agent_record
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {"notes": [(str, int)], "end": bool}


class Seen(NamedTuple):
    """The command: these notes (path, number) were shown to the agent."""

    actor: Actor
    notes: tuple[tuple[str, int], ...]


class End(NamedTuple):
    """The command: take the note with this number away. Its author may, and a person."""

    actor: Actor
    note: int


def decide(state: State, command: Seen, world: World) -> Decision:
    """Harmless to repeat: notes that are gone, or that the agent has seen, are left out."""
    raise_if(barred(state, command.actor, world))
    agent = command.actor.agent
    chain = Chain(state, agent, world)
    found = [(note_at(state, path, seq), path) for path, seq in command.notes]
    rows = [[path, note.seq] for note, path in found if note is not None and note.is_for(agent)]
    if rows:
        chain.add("seen", {"notes": rows, "end": False})
    return Decision(chain.events, actor_heartbeats(state, command.actor, world), {"seen": [seq for _, seq in rows]})


def decide_end(state: State, command: End, world: World) -> Decision:
    raise_if(barred(state, command.actor, world))
    note = next((note for note in all_notes(state) if note.seq == command.note), None)
    if note is None:
        raise UsageError(f"there is no note {command.note}", hints=("git coord note --list",))
    if note.agent != command.actor.agent and not command.actor.person:
        raise refused("person", f"note {note.seq} is taken away by {note.agent} or by a person", f"ask {note.agent}")
    chain = Chain(state, command.actor.agent, world)
    chain.add("seen", {"notes": [[note.path, note.seq]], "end": True})
    return Decision(chain.events, actor_heartbeats(state, command.actor, world), {"ended": note.to_json()})


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    first = events[0]
    rows = first.body["notes"]
    if first.body["end"]:
        return [Recalled(decide_end, End(actor, rows[0][1] if rows else 0))]
    notes = tuple((path, seq) for path, seq in rows)
    return [Recalled(decide, Seen(actor, notes))]


def subject(event: Event) -> str:
    path, seq = event.body["notes"][0]
    verb = "takes away" if event.body["end"] else "has seen"
    more = f" and {len(event.body['notes']) - 1} more" if len(event.body["notes"]) > 1 else ""
    return f"{event.agent} {verb} note {seq} on {printable(path)}{more}"


def apply(state: State, event: Event) -> Changes:
    """Whether the one who takes a note away is a person is the server's to judge, as with every event that only a person makes."""
    record = agent_record(state, event.agent)
    end = event.body["end"]
    changes: Changes = {}
    for path, seq in event.body["notes"]:
        note = note_at(state, path, seq)
        if note is None or file_of(state, path, seq) in changes or not (end or note.is_for(event.agent)):
            raise Illegal(f"event {event.seq} is about note {seq}, which is not there for '{event.agent}'")
        seen = (*note.seen, (event.agent, event.at))
        gone = end or len(seen) >= MOST_SEEN
        changes[file_of(state, path, seq)] = None if gone else note._replace(seen=seen).to_record()
    if not changes or (end and len(changes) > 1) or (record is not None and record.state == KILLED):
        raise Illegal(f"event {event.seq} is nothing that '{event.agent}' can say of notes")
    return changes


KIND = Kind(FIELDS, subject, apply, recall, touches=touches_nothing)
