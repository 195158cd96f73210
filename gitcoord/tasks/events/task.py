"""task: work is put into the shared queue."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.durations import LONGEST
from gitcoord.base.errors import UsageError, raise_if
from gitcoord.base.names import check_agent, check_path, check_resource, check_word, quote
from gitcoord.base.texts import one_line, prose
from gitcoord.claims.model import Item
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, Recalled, subject
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import (
    ASSIGNED,
    MAX_NEEDS,
    MAX_PATHS,
    OPEN,
    PRIORITIES,
    Task,
    by_key,
    changed,
    number_of,
    task_record,
)

CONTENT: dict[str, Shape] = {
    "title": str, "text": str, "priority": str, "needs": [str], "paths": [(str, str)], "line": str, "role": str,
    "next": str, "expected": int, "safe": bool, "review": bool, "limit": int, "branch": str,
}  # fmt: skip
FIELDS: dict[str, Shape] = {**CONTENT, "key": str, "owner": str}
ATTEMPTS = 3
MAX_TASKS, MAX_LIMIT = 1000, 1000


class New(NamedTuple):
    """A task to be. `needs` are ids or keys; with `owner` it is kept for that agent."""

    title: str
    text: str = ""
    priority: str = "normal"
    needs: tuple[str, ...] = ()
    paths: tuple[Item, ...] = ()
    line: str = ""
    role: str = ""
    next: str = ""
    expected: int = 0
    safe: bool = True
    review: bool = False
    limit: int = 0  # 0: as the settings say
    branch: str = ""
    key: str = ""
    owner: str = ""


class Add(NamedTuple):
    actor: Actor
    tasks: tuple[New, ...]


def decide(state: State, command: Add, world: World) -> Decision:
    """Add all tasks or none. A key that is known already names the task that was added under it."""
    raise_if(barred(state, command.actor, world))
    if not 1 <= len(command.tasks) <= MAX_TASKS:
        raise UsageError(f"from 1 to {MAX_TASKS} tasks at a time")
    chain = Chain(state, command.actor.agent, world)
    ids, known = [], []
    for new in command.tasks:
        id = by_key(chain.state, new.key) if new.key else ""
        if id:
            known.append(id)
        else:
            id = f"t{chain.add('task', _body(chain.state, new, world)).seq}"
        ids.append(id)
    found = [task for id in ids if (task := task_record(chain.state, id)) is not None]
    result: dict[str, object] = {"tasks": [task.to_json() for task in found], "known": known}
    return Decision(chain.events, actor_heartbeats(state, command.actor, world), result)


def _body(state: State, new: New, world: World) -> Record:
    needs = known(state, new.needs)
    limit = new.limit or world.workers().attempts or ATTEMPTS
    content = checked({**{key: getattr(new, key) for key in CONTENT}, "needs": needs, "limit": limit})
    return {
        **content,
        "key": check_word(new.key, "key") if new.key else "",
        "owner": check_agent(new.owner) if new.owner else "",
    }


def known(state: State, needs: Iterable[str]) -> list[str]:
    """The ids of tasks that are named by their ids or their keys, each once."""
    return list(dict.fromkeys(_known(state, need) for need in dict.fromkeys(needs)))


def _known(state: State, need: str) -> str:
    """The id of a task that is named by its id or its key."""
    if need[:1] == "t" and need[1:].isdecimal():
        number_of(need)
        id = need if task_record(state, need) is not None else ""
    else:
        id = by_key(state, need)
    if not id:
        raise UsageError(f"no task {quote(need[:40])} to wait for", hints=("which there are: git coord task list",))
    return id


def checked(content: Record) -> Record:
    """The normalised content of a task; UsageError if it is invalid."""
    found = dict(content)
    for key, value in content.items():
        if key == "title":
            found[key] = one_line(value, "the title")
        elif key == "text":
            text = prose(value, "the body", empty=True)
            found[key] = text + "\n" if text else ""
        elif key in ("next", "branch"):
            found[key] = one_line(value, f"'{key}'", 1000, empty=True)
        elif key == "priority" and value not in PRIORITIES:
            raise UsageError(f"{quote(value[:40])} is not a priority", hints=(", ".join(PRIORITIES),))
        elif key == "line":
            found[key] = check_resource(f"line/{value}").removeprefix("line/") if value else ""
        elif key == "role":
            found[key] = check_word(value, "role") if value else ""
        elif key == "expected" and not 0 <= value <= LONGEST:
            raise UsageError("the expected duration is out of range")
        elif key == "limit" and not 1 <= value <= MAX_LIMIT:
            raise UsageError(f"from 1 to {MAX_LIMIT} attempts")
        elif key == "needs" and len(value) > MAX_NEEDS:
            raise UsageError(f"more than {MAX_NEEDS} tasks to wait for")
        elif key == "paths":
            found[key] = [list(_named(Item(*pair))) for pair in dict.fromkeys(map(tuple, value))]
            if len(value) > MAX_PATHS:
                raise UsageError(f"more than {MAX_PATHS} paths", hints=("name a directory above them",))
    return found


def _named(item: Item) -> Item:
    if item.space not in ("path", "resource"):
        raise UsageError(f"{quote(item.space[:20])} is neither path nor resource")
    return Item(item.space, check_path(item.name) if item.space == "path" else check_resource(item.name))


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    rows = []
    for event in events:
        body = {key: event.body[key] for key in FIELDS}
        items = tuple(Item(*pair) for pair in body["paths"])
        rows.append(New(**{**body, "needs": tuple(body["needs"]), "paths": items}))
    return [Recalled(decide, Add(actor, tuple(rows)))]


def apply(state: State, event: Event) -> Changes:
    body = event.body
    content = {key: body[key] for key in CONTENT}
    if check_legal(event, checked, content) != content:
        raise Illegal(f"event {event.seq} is a task that is not normalised")
    if body["owner"]:
        check_legal(event, check_agent, body["owner"])
    if any(task_record(state, need) is None for need in body["needs"]):
        raise Illegal(f"event {event.seq} waits for a task that is not there")
    if body["key"] and by_key(state, body["key"]):
        raise Illegal(f"event {event.seq} adds a task twice")
    task = Task(
        **body, id=f"t{event.seq}", state=ASSIGNED if body["owner"] else OPEN, session=0, token=0, ttl=0, attempts=0,
        handoff="", reason="", by=event.agent, at=event.at, changed=event.at, result={},
    )  # fmt: skip
    return changed(state, None, task)


KIND = Kind(FIELDS, subject("task t{seq} by {agent}: {title}"), apply, recall)
