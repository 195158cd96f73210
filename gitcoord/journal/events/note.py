"""note: a note is left on a path, for the agents that work there."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.names import check_path, printable
from gitcoord.base.texts import prose
from gitcoord.journal.model import LONGEST, MOST_NOTES, MOST_TEXT, Note, file_of, notes_of
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.format import QUEUE, with_minor
from gitcoord.ledger.kinds import Kind, recall_from_body, touches_nothing
from gitcoord.ledger.sessions import KILLED, Actor, agent_record
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {"path": str, "text": str, "lasts": int}
DEFAULT_LASTS = 14 * 86_400


class LeaveNote(NamedTuple):
    """The command: leave a note, shown for `lasts` seconds. It opens no session."""

    actor: Actor
    path: str
    text: str
    lasts: int = DEFAULT_LASTS


def decide(state: State, command: LeaveNote, world: World) -> Decision:
    body = _body(command.path, command.text, command.lasts)
    raise_if(barred(state, command.actor, world))
    chain = Chain(state, command.actor.agent, world)
    if len(_shown(state, command.path, world.wall)) >= MOST_NOTES:
        raise refused(
            "notes", f"'{command.path}' has {MOST_NOTES} notes already", "see which can go: git coord note --list"
        )
    event = chain.add("note", body)
    beats = actor_heartbeats(state, command.actor, world)
    return Decision(chain.events, beats, {"seq": event.seq, "path": body["path"], "text": body["text"]})


def _body(path: str, text: str, lasts: int) -> Record:
    """The checked body; UsageError if it is invalid."""
    if not 1 <= lasts <= LONGEST:
        raise UsageError(f"a note is shown for 1s to {LONGEST // 86_400}d")
    return {"path": check_path(path), "text": prose(text, "the note", MOST_TEXT), "lasts": lasts}


def _shown(state: State, path: str, now: int) -> list[Note]:
    return [note for note in notes_of(state, path) if note.until > now]


def subject(event: Event) -> str:
    body = event.body
    return f"note by {event.agent} on {printable(body['path'])}: {printable(body['text'].split(chr(10))[0])}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    valid = check_legal(event, _body, body["path"], body["text"], body["lasts"]) == body
    record = agent_record(state, event.agent)
    if not valid or (record is not None and record.state == KILLED):
        raise Illegal(f"event {event.seq} is a note that '{event.agent}' cannot leave")
    old = notes_of(state, body["path"])
    changes: Changes = with_minor(state, QUEUE)
    changes.update({file_of(state, note.path, note.seq): None for note in old if note.until <= event.at})
    if len(old) - (len(changes) - ("format" in changes)) >= MOST_NOTES:
        raise Illegal(f"event {event.seq} is one note too many on {body['path']}")
    note = Note(event.seq, event.agent, event.at, event.at + body["lasts"], body["path"], body["text"], ())
    changes[file_of(state, note.path, note.seq)] = note.to_record()
    return changes


KIND = Kind(FIELDS, subject, apply, recall_from_body(decide, LeaveNote), touches=touches_nothing)
