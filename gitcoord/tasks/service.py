"""The use cases of the shared work queue: add, take, move, hand in, look."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.state import Part, State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World
from gitcoord.sessions.worktree_notes import note_claims, note_tree
from gitcoord.startup.annotations import Any
from gitcoord.tasks.events.assign import Assign
from gitcoord.tasks.events.finish import Finish
from gitcoord.tasks.events.revise import Revise
from gitcoord.tasks.events.task import New
from gitcoord.tasks.model import OVER, all_tasks, ready, the_task, unmet


def add(ctx: Context, actor: Actor, tasks: tuple[New, ...]) -> dict[str, object]:
    """Put tasks into the queue, all or none; one whose key is known is not added again.

    Refused, as by all that writes down text here, where a validator says no to it.
    """
    from gitcoord.tasks.events.task import Add, decide

    texts_by_label = {
        f"task {number}" if len(tasks) > 1 else "": [new.title, new.text] for number, new in enumerate(tasks, 1)
    }
    return _publish(ctx, actor, texts_by_label, decide, Add(actor, tasks))


def _publish(ctx: Context, actor: Actor, texts_by_label: Record, rule: Any, command: Any) -> Record:
    """Make the command happen, unless a validator refuses one of its texts."""
    from gitcoord.gates.validation import publish

    texts = {label: text for label, value in texts_by_label.items() if (text := "\n".join(_texts(value)))}
    return publish(ctx, actor, "task", texts, lambda: transact(ctx, rule, command))


def _texts(value: object) -> list[str]:
    """All texts in a record, at any depth."""
    if isinstance(value, str):
        return [value] if value else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [text for one in inner for text in _texts(one)]


def assign(ctx: Context, command: Assign, *, waits: bool = False) -> dict[str, object]:
    """Take one task by its id, or the next one that can be done now, with the claims that it needs.

    `waits`: where that cannot be, a place in the queue (`take_or_wait`). Harmless to repeat: the place stays the same.
    """
    if waits:
        from gitcoord.tasks.waiters import take_or_wait as rule
    else:
        from gitcoord.tasks.events.assign import decide as rule

    agent = command.actor.agent

    def decide(state: State, command: Assign, world: World) -> Decision:
        return rule(state, command._replace(base=world.head()), world)

    result = transact(ctx, decide, command, prefetch=_parts(agent, command.id))
    given = result.get("assignment")
    if isinstance(given, dict) and given["claims"]:
        note_tree(ctx, agent)
        note_claims(ctx, given["claims"])
    if waits and result["task"] is None:
        ctx.host.defer_interrupts(False)  # it goes on after its first event
    return result


def leave(ctx: Context, command: Assign, *, gives_back: bool) -> bool:
    """Leave that queue; False where the agent was not in it any more. `gives_back`: release also what was granted meanwhile and
    not taken. Harmless to repeat."""
    from gitcoord.claims.events.leave import decide as decide_leave
    from gitcoord.claims.service import give_back
    from gitcoord.tasks.waiters import leave_for

    def decide(state: State, command: Assign, world: World) -> Decision:
        return decide_leave(state, leave_for(state, world, command), world)

    result = transact(ctx, decide, command._replace(nonce=""))
    if result["unconfirmed"] and gives_back:
        give_back(ctx, command.actor, result["unconfirmed"])
    return bool(result["left"])


def _parts(agent: str, id: str) -> tuple[Part, ...]:
    parts: list[Part] = [("file", "halt"), ("file", f"agents/{agent}"), ("below", "work/of"), ("leaves", "waiting")]
    parts.append(("file", f"tasks/{id}.md") if id else ("names", "work/ready"))
    return tuple(parts)


def revise(ctx: Context, command: Revise) -> dict[str, object]:
    """Change the content of a task, or move it to another state."""
    from gitcoord.tasks.events.revise import decide

    texts_by_label = {key: command.set[key] for key in ("title", "text") if key in command.set} | {
        "reason": command.reason
    }
    return _publish(ctx, command.actor, texts_by_label, decide, command)


def finish(ctx: Context, command: Finish) -> dict[str, object]:
    """Hand in a task's result, or its failure; the claims for it are released."""
    from gitcoord.tasks.events.finish import decide

    return _publish(ctx, command.actor, {"": command.record}, decide, command)


# --- looking ----------------------------------------------------------------------------------------------------------


def listing(ctx: Context, *, states: tuple[str, ...] = (), owner: str = "") -> dict[str, object]:
    """The tasks in these states (none named: all that are not over), oldest first."""
    state = read_snapshot(ctx, prefetch=(("below", "tasks"),), trusting=True).state
    able = set(ready(state))
    rows = [{**task.to_json(), "ready": task.id in able, "waits": unmet(state, task)} for task in all_tasks(state)]
    shown = [
        row
        for row in rows
        if (row["state"] in states if states else row["state"] not in OVER) and owner in ("", row["owner"])
    ]
    return {"tasks": shown, "hidden": len(rows) - len(shown)}


def several(ctx: Context, ids: list[str]) -> list[Record]:
    """These tasks as they are now; Refused if one does not exist."""
    snapshot = read_snapshot(ctx, prefetch=tuple(("file", f"tasks/{id}.md") for id in ids), trusting=True)
    found = []
    for id in ids:
        task = the_task(snapshot.state, id)
        found.append({**task.to_json(), "waits": unmet(snapshot.state, task)})
    return found
