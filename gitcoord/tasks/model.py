"""Tasks: the shared work queue. Records of tasks, their index files, and the order of the queue.

A task is one file, `tasks/<id>.md`, so it cannot have two owners. Beside it are small files that say the same in another
order, so that nobody has to read all tasks: `work/ready/` (open, nothing left to wait for; the names sort by priority and
age), `work/waits/<id>/` (who waits for that task), `work/of/<agent>/` (who has what) and `work/keys/`.
"""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Malformed, Record, Shape, check, record_of, values_of
from gitcoord.base.errors import Refusal, UsageError, refused
from gitcoord.base.names import check_word, encode, quote, shown
from gitcoord.ledger.event import Event
from gitcoord.ledger.sessions import OPEN as SESSION_OPEN
from gitcoord.ledger.sessions import Expiry, agent_record, expiry_of
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

OPEN, ASSIGNED, ACTIVE, BLOCKED, NEEDS_HUMAN, REVIEW, DONE, FAILED, ABANDONED = STATES = (
    "open", "assigned", "active", "blocked", "needs-human", "review", "done", "failed", "abandoned",
)  # fmt: skip
OVER = (DONE, FAILED, ABANDONED)
PRIORITIES = ("critical", "high", "normal", "low")
MAX_NEEDS, MAX_PATHS = 200, 1000
NONE_LEFT = "no task is left to take"

_TASK: dict[str, Shape] = {
    "id": str, "title": str, "text": str, "state": str, "owner": str, "session": int, "token": int, "ttl": int,
    "attempts": int, "limit": int, "priority": str, "needs": [str], "paths": [(str, str)], "line": str, "role": str,
    "next": str, "expected": int, "safe": bool, "review": bool, "handoff": str, "branch": str, "reason": str,
    "key": str, "by": str, "at": int, "changed": int, "result": dict,
}  # fmt: skip
_HELD: dict[str, Shape] = {
    "id": str, "state": str, "session": int, "ttl": int, "priority": str, "token": int, "handoff": str,
}  # fmt: skip


class Task(NamedTuple):
    """A task. `owner` has it in `session`, or it is kept for the owner (session 0)."""

    id: str
    title: str
    text: str
    state: str
    owner: str
    session: int
    token: int  # the Seq of the event that gave it to its owner
    ttl: int  # seconds without a heartbeat after which the owner is lost
    attempts: int
    limit: int
    priority: str
    needs: list[str]
    paths: list[list[str]]  # [space, name] of each
    line: str
    role: str
    next: str
    expected: int
    safe: bool
    review: bool
    handoff: str
    branch: str
    reason: str
    key: str
    by: str
    at: int
    changed: int
    result: Record  # as `contracts.py` made it

    @classmethod
    def from_record(cls, record: Record, file: str) -> Task:
        task = cls._make(values_of(record, _TASK, file))
        if task_file(task.id) != file or task.state not in STATES or task.priority not in PRIORITIES:
            raise Malformed(f"{file} holds a task that does not belong there")
        return task

    def to_record(self) -> Record:
        return record_of(_TASK, self)

    def to_json(self) -> dict[str, object]:
        """The task in the form of `--json`."""
        row: dict[str, object] = self._asdict()
        row["body"] = str(row.pop("text")).rstrip("\n")
        row["since"] = row.pop("changed")
        row["paths"] = [shown(name, space) for space, name in self.paths]
        return row


class Held(NamedTuple):
    """A task that somebody has, as the index knows it."""

    agent: str
    id: str
    state: str
    session: int
    ttl: int
    priority: str
    token: int
    handoff: str


def task_file(id: str) -> str:
    return f"tasks/{id}.md"


def number_of(id: str) -> int:
    """The Seq in a task's id; UsageError for what is none."""
    if not (id[:1] == "t" and id[1:].isascii() and id[1:].isdecimal() and len(id) < 16 and id[1] != "0"):
        raise UsageError(f"{quote(id[:40])} is not the id of a task", hints=("ids look like t12: git coord task list",))
    return int(id[1:])


def task_record(state: State, id: str) -> Task | None:
    file = task_file(id)
    record = state.get(file)
    return None if record is None else Task.from_record(record, file)


def the_task(state: State, id: str) -> Task:
    """The task of this id; Refused where there is none."""
    number_of(id)
    task = task_record(state, id)
    if task is None:
        raise refused("no-task", f"there is no task '{id}'", "which there are: git coord task list")
    return task


def all_tasks(state: State) -> list[Task]:
    """Every task, oldest first."""
    ids = [key[len("tasks/") : -len(".md")] for key in state.below("tasks")]
    found = [record for id in ids if (record := task_record(state, id)) is not None]
    return sorted(found, key=lambda record: number_of(record.id))


def held_by(state: State, agent: str) -> list[Held]:
    """The tasks that one agent has, oldest first."""
    return _held(state.leaves(f"work/of/{agent}"))


def all_held(state: State) -> list[Held]:
    """The tasks that somebody has, by agent, oldest first."""
    return _held(state.below("work/of"))


def _held(records: dict[str, Record]) -> list[Held]:
    found = [Held(file.split("/")[2], *values_of(record, _HELD, file)) for file, record in records.items()]
    return sorted(found, key=lambda held: (held.agent, number_of(held.id)))


def tasks_of(state: State, agent: str) -> list[Task]:
    """The tasks that an agent has, whole."""
    return [record for held in held_by(state, agent) if (record := task_record(state, held.id)) is not None]


# --- changes of the tree ----------------------------------------------------------------------------------------------


def changed(state: State, before: Task | None, after: Task) -> Changes:
    """The files that follow when a task becomes another, its index with it."""
    id = after.id
    old = _index(state, before) if before is not None else {}
    new = _index(state, after)
    changes: Changes = {task_file(id): after.to_record()}
    changes.update((key, None) for key in old if key not in new)
    changes.update((key, record) for key, record in new.items() if old.get(key) != record)
    if after.state == DONE and (before is None or before.state != DONE):
        changes.update(_waiters(state, id))
    return changes


def _index(state: State, task: Task) -> dict[str, Record]:
    id = task.id
    found: dict[str, Record] = {}
    if task.owner:
        found[f"work/of/{task.owner}/@{id}"] = record_of(_HELD, (getattr(task, key) for key in _HELD))
    if task.state == OPEN:
        waits = unmet(state, task)
        if waits:
            found.update((f"work/waits/{need}/@{id}", {"v": VERSION}) for need in waits)
        else:
            found[_ready_file(task)] = {"v": VERSION}
    if task.key:
        found[key_file(task.key)] = {"v": VERSION, "id": id}
    return found


def _waiters(state: State, id: str) -> Changes:
    """The tasks that waited for this one alone: they are ready now."""
    changes: Changes = {}
    for key in state.leaves(f"work/waits/{id}"):
        changes[key] = None
        waiter = task_record(state, key.rpartition("@")[2])
        if waiter is not None and unmet(state, waiter) == [id]:
            changes[_ready_file(waiter)] = {"v": VERSION}
    return changes


def unmet(state: State, task: Task) -> list[str]:
    """The needs of a task that are not done yet."""
    found = [(need, task_record(state, need)) for need in task.needs]
    return [need for need, record in found if record is None or record.state != DONE]


def _ready_file(task: Task) -> str:
    return f"work/ready/{PRIORITIES.index(task.priority)}-{number_of(task.id):015d}"


def ready(state: State) -> list[str]:
    """The ids of the tasks that may be taken, most urgent and oldest first."""
    return ["t" + name.partition("-")[2].lstrip("0") for name in sorted(state.names("work/ready"))]


def why_none(state: State, agent: str) -> str:
    """Why there is no task for this agent to take, in words, as the index knows it. Those that it has itself do not count."""
    held = [each for each in all_held(state) if each.agent != agent]
    if not (held or state.names("work/ready") or state.names("work/waits")):
        return NONE_LEFT
    names = [f"{each.id} ({each.agent})" for each in sorted(held, key=lambda each: number_of(each.id))]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return "nothing can be done now" + (f"; others have {', '.join(names[:5])}{more}" if names else "")


def key_file(key: str) -> str:
    return f"work/keys/{encode(check_word(key, 'key'))}"


def by_key(state: State, key: str) -> str:
    """The id of the task that was added under this key; '' where none was."""
    record = state.get(key_file(key))
    return "" if record is None else str(check(record, {"id": str}, key_file(key))["id"])


def closes_a_circle(state: State, id: str, needs: Iterable[str]) -> str:
    """The need through which a task would wait for itself; '' where none."""
    for first in needs:
        seen, todo = {id}, [first]
        while todo:
            here = todo.pop()
            if here == id:
                return first
            if here not in seen:
                seen.add(here)
                record = task_record(state, here)
                todo += record.needs if record is not None else []
    return ""


# --- owners -----------------------------------------------------------------------------------------------------------


def pass_on(state: State, task: Task, event: Event, session: int, ttl: int) -> Changes:
    """The task goes to the one whose event this is; the old owner's token is void from then on."""
    after = task._replace(
        owner=event.agent,
        session=session,
        token=event.seq,
        ttl=ttl,
        state=ACTIVE,
        handoff="",
        reason="",
        changed=event.at,
    )
    return changed(state, task, after)


def set_handoff(state: State, task: Task, handoff: str) -> Changes:
    """A handoff is open for the task ('': none). While one is open, the task does not lapse."""
    return changed(state, task, task._replace(handoff=handoff))


def given_back(task: Task, at: int, *, reason: str = "") -> Task:
    """The task without its owner, open for others."""
    return task._replace(state=OPEN, owner="", session=0, token=0, handoff="", reason=reason, changed=at)


def owner_is_lost(state: State, world: World, held: Held) -> Expiry | None:
    """The verdict on an owner that is lost; None while its heartbeats come, or while it hands the task over."""
    if held.state != ACTIVE or held.handoff:
        return None
    record = agent_record(state, held.agent)
    if record is None or record.state != SESSION_OPEN or record.session != held.session:
        return Expiry(True, "session over", 0)
    verdict = expiry_of(state, world, held.agent, held.session, held.ttl)
    return verdict if verdict.expired else None


def not_the_owner(state: State, task: Task, agent: str) -> Refusal | None:
    """The refusal unless the agent owns the task, in the session in which it took it."""
    record = agent_record(state, agent) if agent else None
    if agent and task.owner == agent and task.state not in (*OVER, ASSIGNED):
        if record is not None and record.state == SESSION_OPEN and record.session == task.session:
            return None
        return Refusal(
            "session-over",
            f"the session in which '{agent}' had {task.id} is over",
            hints=(f"take it again: git coord task take {task.id}",),
        )
    whose = f"{task.state}, {task.owner}'s" if task.owner else task.state
    return Refusal(
        "not-yours",
        f"'{agent}' does not have {task.id}: it is {whose}",
        hints=(f"look at it: git coord task show {task.id}",),
    )
