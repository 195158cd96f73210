"""journal: a person or an agent writes an entry. Nothing changes or removes one."""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Record, Shape
from gitcoord.base.errors import UsageError, raise_if
from gitcoord.base.names import check_path, check_word, printable
from gitcoord.base.texts import prose
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, recall_from_body, touches_nothing
from gitcoord.ledger.nonces import day
from gitcoord.ledger.sessions import KILLED, Actor, agent_record
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {"text": str, "paths": [str], "task": str}
_MOST_PATHS = 100


class Write(NamedTuple):
    """The command. It opens no session."""

    actor: Actor
    text: str
    paths: tuple[str, ...] = ()
    task: str = ""


def decide(state: State, command: Write, world: World) -> Decision:
    body = _body(command.text, command.paths, command.task)
    raise_if(barred(state, command.actor, world))
    agent = command.actor.agent
    chain = Chain(state, agent, world)
    event = chain.add("journal", body)
    beats = actor_heartbeats(state, command.actor, world)
    return Decision(chain.events, beats, {"seq": event.seq, "file": entry_file(event), **body})


def _body(text: str, paths: tuple[str, ...] | list[str], task: str) -> Record:
    """The checked body of the entry; UsageError if it is invalid."""
    if len(paths) > _MOST_PATHS:
        raise UsageError(f"an entry names at most {_MOST_PATHS} paths", hints=("name a directory above them",))
    if task:
        check_word(task, "task")
    return {"text": prose(text, "the entry"), "paths": [check_path(path) for path in paths], "task": task}


def entry_file(event: Event) -> str:
    """One file an entry, in a directory for each minute: so appending costs the same however long the journal is."""
    minute = event.at // 60
    return f"journal/{day(event.at)}/{minute // 60 % 24:02d}/{minute % 60:02d}/{event.seq}-{event.agent}.md"


def subject(event: Event) -> str:
    return f"journal by {event.agent}: {printable(event.body['text'].split(chr(10))[0])}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    valid = check_legal(event, _body, body["text"], body["paths"], body["task"]) == body
    record = agent_record(state, event.agent)
    if not valid or (record is not None and record.state == KILLED):
        raise Illegal(f"event {event.seq} is an entry that '{event.agent}' cannot make")
    file = entry_file(event)
    if state.get(file) is not None:
        raise Illegal(f"event {event.seq} would replace {file}")
    row = {"seq": event.seq, "agent": event.agent, "at": event.at, "paths": body["paths"], "task": body["task"]}
    return {file: {"v": VERSION, **row, "text": body["text"] + "\n"}}


KIND = Kind(FIELDS, subject, apply, recall_from_body(decide, Write), touches=touches_nothing)
