"""Whose subagent acts, where a tool lets each act in a conversation of its own that names no parent.

The tool tells that a conversation begins, but only of those that a person began; and that one of them hands a task on, before the
subagent can do anything. So a conversation that appears from nowhere while a task waits for somebody to take it is that subagent.
Only where nothing else is possible: everybody else is an agent of its own, and stays so. Taken for another's subagent it could
write what that one holds; taken for an agent of its own it is only refused.
"""

from gitcoord.core.codec import VERSION, Malformed, check
from gitcoord.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record

AGE = 3600  # seconds for which a task waits: its end may never be told
CONVERSATIONS, CHILDREN, OPEN = 256, 128, 32  # how many are remembered; the oldest go
LONGEST = 200  # characters of an id
NOBODY = ""  # the parent of a task of which it is no longer known whose it is

_SHAPE = {
    "top": [str],
    "alone": [str],
    "open": [{"id": str, "parent": str, "process": str, "at": int}],
    "children": [{"conversation": str, "parent": str, "id": str, "now": str}],
}


class Delegation(NamedTuple):
    """A task that a conversation handed on, and that no subagent has begun yet."""

    id: str  # the tool's own: by it, it tells of the subagent's end
    parent: str  # the conversation that handed it on
    process: str = ""  # that of the tool; '' where it cannot be told
    at: int = 0  # seconds since 1970


class Child(NamedTuple):
    conversation: str
    parent: str  # the conversation that handed the task on
    id: str  # the task with which it began: what it is called by
    now: str  # the task at which it is, where it was sent on


class Known(NamedTuple):
    """Each conversation is in one place at most. The newest come last; a child comes after its parent."""

    top: tuple[str, ...] = ()  # a person began them
    alone: tuple[str, ...] = ()  # they acted, and nobody could tell whose they are
    open: tuple[Delegation, ...] = ()
    children: tuple[Child, ...] = ()


EMPTY = Known()


def began(known: Known, conversation: str) -> Known:
    """A person speaks in it: it is nobody's subagent, whatever it was taken for. What it handed on before is over."""
    if not _is_id(conversation):
        return known
    return known._replace(
        top=_added(known.top, conversation),
        alone=tuple(other for other in known.alone if other != conversation),
        open=tuple(task for task in known.open if task.parent != conversation),
        children=tuple(child for child in known.children if child.conversation != conversation),
    )


def delegated(known: Known, task: Delegation, resume: str = "") -> Known:
    """A task is handed on: to a new subagent, or with `resume` to one that acted before. Harmless to repeat.

    Also where the parent's own beginning was not seen: such a task gets nobody, but it may be the one that somebody took.
    """
    used = {other.id for other in known.open} | {id for child in known.children for id in (child.id, child.now)}
    if not _is_id(task.id) or not _is_id(task.parent) or task.id in used:
        return known
    child = _child(known, resume)
    if child is not None and child.parent == task.parent:
        rows = [row._replace(now=task.id) if row is child else row for row in known.children]
        return known._replace(children=tuple(rows))
    if child is not None or resume in known.top or resume in known.alone:
        return known
    waiting = tuple(other for other in known.open if _waits(other, task.at))
    if len(waiting) >= OPEN:  # to forget one would make another look like the only one
        waiting, task = waiting[: OPEN - 1], task._replace(parent=NOBODY)
    return known._replace(open=(*waiting, task))


def ended(known: Known, id: str) -> Known:
    """The task is over, or never began."""
    return known._replace(open=tuple(task for task in known.open if task.id != id))


def acted(known: Known, conversation: str, process: str, now: int) -> Known:
    """The conversation is about to act. If it is new, this decides for ever whose it is."""
    waiting = [
        task
        for task in known.open
        if _waits(task, now) and (not process or not task.process or task.process == process)
    ]
    parents = {task.parent for task in waiting}
    if is_known(known, conversation) or not _is_id(conversation) or len(parents) != 1:
        return alone(known, conversation)
    parent = parents.pop()
    # Where the parent's beginning was told, so would have been that of any other conversation of a person.
    if parent not in known.top and _child(known, parent) is None:
        return alone(known, conversation)
    # Of several of one parent the oldest: most likely they begin in the order in which they were handed on.
    task = waiting[0]
    child = Child(conversation, parent, task.id, task.id)
    return ended(known, task.id)._replace(children=(*known.children, child)[-CHILDREN:])


def alone(known: Known, conversation: str) -> Known:
    """It acted before anybody could tell whose it is: from now on nobody's."""
    if is_known(known, conversation) or not _is_id(conversation):
        return known
    return known._replace(alone=_added(known.alone, conversation))


def is_known(known: Known, conversation: str) -> bool:
    return conversation in known.top or conversation in known.alone or _child(known, conversation) is not None


def line(known: Known, conversation: str) -> "tuple[str, tuple[str, ...]]":
    """(the conversation at the top, the tasks that lead from there to this one)."""
    ids: tuple[str, ...] = ()
    child = _child(known, conversation)
    while child is not None:
        conversation, ids = child.parent, (child.id, *ids)
        child = _child(known, conversation)
    return conversation, ids


def called(known: Known, parent: str, id: str) -> str:
    """What the subagent at this task is called by: one that was sent on keeps its name, and what it holds."""
    return next((child.id for child in known.children if child.parent == parent and child.now == id), id)


def _child(known: Known, conversation: str) -> "Child | None":
    return next((child for child in known.children if child.conversation == conversation), None)


def _waits(task: Delegation, now: int) -> bool:
    return now - task.at <= AGE


def _added(known: "tuple[str, ...]", conversation: str) -> "tuple[str, ...]":
    return (*(other for other in known if other != conversation), conversation)[-CONVERSATIONS:]


def _is_id(word: str) -> bool:
    return 0 < len(word) <= LONGEST


# --- as a record --------------------------------------------------------------------------------------------------------


def record_of(known: Known) -> "Record":
    return {
        "v": VERSION,
        "top": list(known.top),
        "alone": list(known.alone),
        "open": [task._asdict() for task in known.open],
        "children": [child._asdict() for child in known.children],
    }


def parse(record: object) -> Known:
    """What is remembered; nothing at all where anything of it could not have been written here."""
    try:
        found = check(record, _SHAPE, "delegations")  # type: ignore[arg-type]
    except Malformed:
        return EMPTY
    known = Known(
        tuple(found["top"]),
        tuple(found["alone"]),
        tuple(Delegation(**task) for task in found["open"]),
        tuple(Child(**child) for child in found["children"]),
    )
    return known if _is_sound(known) else EMPTY


def _is_sound(known: Known) -> bool:
    below = [child.conversation for child in known.children]
    conversations = [*known.top, *known.alone, *below]
    tasks = [*(task.id for task in known.open), *(child.id for child in known.children)]
    parents = [
        *(task.parent for task in known.open if task.parent != NOBODY),
        *(child.parent for child in known.children),
    ]
    words = [*conversations, *tasks, *parents, *(child.now for child in known.children)]
    once = all(len(set(names)) == len(names) for names in (conversations, tasks))
    upwards = all(child.parent not in below[at:] for at, child in enumerate(known.children))
    return once and upwards and all(map(_is_id, words))
