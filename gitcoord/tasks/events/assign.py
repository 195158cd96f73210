"""assign: a task goes to one agent, with the claims that it needs; the next one in the queue, or one by name.

The claims come first in the chain, all or none; the assignment is its last event, and its Seq is the task's token.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Refusal, Refused, raise_if, refused
from gitcoord.base.names import RESOURCE, claim_dir, printable, shown
from gitcoord.claims.events.expire import add_expire, expired_keys
from gitcoord.claims.events.release import release_items
from gitcoord.claims.model import Claim, Item, all_claims, expiry_of_claim, overlapping, overlaps, own_claim, own_claims
from gitcoord.claims.requests import task_item, task_of
from gitcoord.claims.take import Take
from gitcoord.claims.take import decide as decide_take
from gitcoord.handoff.model import open_handoffs
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, subject
from gitcoord.ledger.nonces import remembered
from gitcoord.ledger.sessions import Actor, Admission, Expiry, Heartbeat, admit, next_heartbeat
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import as_started, halted, open_session, require_open
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks import workers
from gitcoord.tasks.events.lapse import collect, lapsed_ids, lost
from gitcoord.tasks.model import (
    ACTIVE,
    ASSIGNED,
    OPEN,
    Task,
    changed,
    held_by,
    number_of,
    ready,
    task_file,
    task_record,
    tasks_of,
    the_task,
    unmet,
    why_none,
)

FIELDS = {"id": str, "session": int, "ttl": int}


class Assign(NamedTuple):
    """The command. No id: the next task that can be done now."""

    actor: Actor
    id: str = ""
    ttl: int = 0
    base: str = ""
    nonce: str = ""
    only: tuple[tuple[str, str, str], ...] | None = None  # expired claims to end; None: all that conflict
    lapsed: tuple[str, ...] | None = None  # tasks whose owners may be found lost; None: all
    asked: str | None = None  # the id that was asked for, where another is looked back at


def decide(state: State, command: Assign, world: World) -> Decision:
    """One task for one asker, or a refusal; from `next`, none where nothing can be done now."""
    raise_if(halted(state))
    admitted = admit(state, command.actor, world)
    if command.id:
        number_of(command.id)
    early = _repeat(state, command) if command.nonce else None
    if early is not None:
        return early
    chain = Chain(state, command.actor.agent, world)
    missed = _missed(state, world, chain.agent)
    if missed:
        beats = add_expire(chain, world, missed, [])
        return Decision(chain.events, beats, {}, again=True)
    beats = _collect(chain, command, world)
    if command.id:
        task = the_task(chain.state, command.id)
        return _own(chain, world, task, command) or _give(chain, command, world, task, admitted, beats)
    return _next(chain, command, world, admitted, beats)


def reserved_tasks(state: State) -> list[Claim]:
    """The tasks that are reserved for agents that waited for any."""
    directory = claim_dir(RESOURCE, "task")
    found = state.below(directory) if state.names(directory) else {}
    return [Claim.from_record(record, file) for file, record in sorted(found.items())]


def _missed(state: State, world: World, agent: str) -> list[tuple[Claim, Expiry]]:
    """The reservations of others that have expired, with all that was granted with them."""
    others = [claim for claim in reserved_tasks(state) if claim.agent != agent]
    gone = {(claim.agent, claim.token) for claim in others if expiry_of_claim(state, world, claim).expired}
    claims = [claim for claim in all_claims(state) if (claim.agent, claim.token) in gone] if gone else []
    judged = [(claim, expiry_of_claim(state, world, claim)) for claim in claims]
    return [row for row in judged if row[1].expired]


def _collect(chain: Chain, command: Assign, world: World) -> list[Heartbeat]:
    """Open the tasks of lost owners again before giving one out."""
    if command.lapsed == ():
        return []
    # Look at all tasks, also where one is named: what it needs may be an expired claim of another task's owner, who loses that task with it.
    return collect(chain, world, lost(chain.state, world, command.actor.agent, command.lapsed or ()), command.only)


def _next(chain: Chain, command: Assign, world: World, admitted: Admission, beats: list[Heartbeat]) -> Decision:
    agent = command.actor.agent
    mine = [task_of([claim.item]) for claim in reserved_tasks(chain.state) if claim.agent == agent]
    mine += [held.id for held in held_by(chain.state, agent) if held.state == ASSIGNED]
    held_up: list[dict[str, object]] = []
    for index, id in enumerate(queue := list(dict.fromkeys([*mine, *ready(chain.state)]))):
        _read_on(chain, world, queue, index)
        task = task_record(chain.state, id)
        if task is None:
            continue
        try:
            return _give(chain, command, world, task, admitted, beats)
        except Refused as error:
            if error.code in ("cap", "capacity"):
                raise
            held_up.append({"id": id, "code": error.code, "message": error.message})
    return Decision(
        chain.events, beats, {"task": None, "why": why_none(chain.state, agent), "held_up": held_up[:_NAMED]}
    )


_NAMED = 200  # of those that nobody could do now so many are named
_FIRST = 8  # so many are tried one by one; then whole parts of the queue are read at a time, and all claims


def _read_on(chain: Chain, world: World, queue: list[str], index: int) -> None:
    """Usually one of the first tasks can be taken. If not, read the next tasks and all holders' heartbeats together."""
    if index >= _FIRST and not index & (index - 1):
        chain.state.prefetch(("file", task_file(id)) for id in queue[index : 2 * index])
        world.prefetch_heartbeats([claim.agent for claim in all_claims(chain.state)])


def _own(chain: Chain, world: World, task: Task, command: Assign) -> Decision | None:
    """Repeat the assignment of a task that the agent already has."""
    held = {held.id: held for held in held_by(chain.state, command.actor.agent)}.get(task.id)
    if held is None or held.state != ACTIVE:
        return None
    beat = next_heartbeat(world.heartbeat(held.agent), held.agent, held.session, world, held.ttl)
    return Decision([], [beat] if beat else [], assignment(chain.state, task))


def _give(
    chain: Chain, command: Assign, world: World, task: Task, admitted: Admission, beats: list[Heartbeat]
) -> Decision:
    raise_if(out_of_reach(chain.state, world, task, command.actor) or offered(chain.state, task, chain.agent))
    raise_if(_kept_for_another(chain.state, world, task, chain.agent))
    own = Chain(chain.state, chain.agent, chain.world)
    own.events = list(chain.events)
    caps = workers.caps_for(chain.state, world, command.actor)
    items = (*items_of(task), *caps)
    ttl = command.ttl or workers.task_ttl(world, command.actor)
    if items:
        try:
            taken = _claims(own, command, world, items, task, ttl)
        except Refused as error:
            raise Refused(_capped(error.refusal, caps)) from None
        if taken.again:  # it frees what others wait for: they go first
            return Decision(chain.events or taken.events, beats if chain.events else taken.beats, {}, again=True)
        # Task and claims of one owner may be lost together, but its heartbeat is judged once.
        judged = {beat.agent for beat in taken.beats}
        beats = [*(beat for beat in beats if beat.agent not in judged), *taken.beats]
    else:
        open_session(own, command.actor, world, admitted)
        beat = next_heartbeat(world.heartbeat(chain.agent), chain.agent, admitted.session, world, ttl)
        beats = [*beats, beat] if beat is not None else beats
    memo = _memo(command) if command.nonce else None
    if own_claim(own.state, task_item(task.id), own.agent) is not None:
        own.grants = False  # until it is assigned, others that wait must not get it
        release_items(own, world, [task_item(task.id)], dirty=True)
        own.grants = True
    own.add("assign", {"id": task.id, "session": admitted.session, "ttl": ttl}, memo)
    return Decision(own.events, beats, assignment(own.state, the_task(own.state, task.id)))


def _claims(chain: Chain, command: Assign, world: World, items: tuple[Item, ...], task: Task, ttl: int) -> Decision:
    """All that the task needs, in one request; its events become part of the chain."""
    take = Take(
        command.actor, items, ttl=ttl, expected=task.expected, reason=task.title, task=task.id,
        base=command.base, only=command.only or (),
    )  # fmt: skip
    granted = decide_take(chain.state, take, world)
    for event in () if granted.again else granted.events:
        chain.add(event.kind, event.body, past=event.past)
    return granted


def _capped(refusal: Refusal, caps: tuple[Item, ...]) -> Refusal:
    """Turn a refusal because of a full cap into one with its own code."""
    names = {f"@{item.name}" for item in caps}
    full = sorted({str(row["path"]) for row in refusal.blocking_claims if row["path"] in names})
    if not full:
        return refusal
    return Refusal(
        "cap",
        f"all places are taken ({', '.join(full)})",
        refusal.blocking_claims,
        ("wait: git coord task next --wait 10m",),
    )


def items_of(task: Task) -> tuple[Item, ...]:
    """The items that a task claims: its paths and its line of work."""
    line = [Item("resource", f"line/{task.line}")] if task.line else []
    return (*(Item(*pair) for pair in task.paths), *line)


def needed_beside(state: State, agent: str, id: str) -> dict[Item, str]:
    """The items that the agent's other tasks need, each with such a task."""
    others = [task for task in tasks_of(state, agent) if task.id != id and task.session]
    return {item: task.id for task in others for item in items_of(task)}


def out_of_reach(state: State, world: World, task: Task, actor: Actor) -> Refusal | None:
    id, hint = task.id, f"look at it: git coord task show {task.id}"
    if task.state not in (OPEN, ASSIGNED) or (task.state == ASSIGNED and task.owner != actor.agent):
        whose = f", {task.owner}'s" if task.owner else ""
        return Refusal("not-open", f"{id} is {task.state}{whose}", hints=(hint,))
    waits = unmet(state, task)
    if waits:
        return Refusal("not-ready", f"{id} waits for {', '.join(waits)}", hints=(hint,))
    if task.role and workers.role(state, world, actor) != task.role:
        return Refusal("role", f"{id} is for the role '{task.role}'", hints=(hint,))
    return None


def _kept_for_another(state: State, world: World, task: Task, agent: str) -> Refusal | None:
    """Refuse a task that is reserved for an agent that waited for one."""
    claims = [claim for claim in overlapping(state, task_item(task.id)) if claim.agent != agent]
    if not claims:
        return None
    rows = tuple(claim.to_json(expiry_of_claim(state, world, claim).expires_in) for claim in claims)
    return Refusal("held", f"{task.id} is reserved for {claims[0].agent}, who waited for a task", rows)


def offered(state: State, task: Task, agent: str) -> Refusal | None:
    """Refuse a task that needs a claim which the agent has offered in a handoff."""
    items = items_of(task)
    for row in open_handoffs(state) if items else ():
        for given in (Item(*pair) for pair in row.claims if row.giver == agent):
            if any(given.space == item.space and overlaps(state, given, item) for item in items):
                what = printable(shown(given.name, given.space))
                return Refusal(
                    "handed-over",
                    f"{task.id} needs {what}, which is part of {row.id} and waits to be accepted",
                    hints=(f"take that one back first: git handoff withdraw {row.id}",),
                )
    return None


def assignment(state: State, task: Task) -> dict[str, object]:
    """The result of an assignment, as `task take --json` prints it."""
    claims = own_claims(state, items_of(task), task.owner)
    return {
        "task": task.to_json(),
        "assignment": {
            "type": "assignment", "v": 1, "id": task.id, "agent": task.owner, "token": task.token,
            "attempt": task.attempts + 1, "silence_seconds": task.ttl,
            "claims": [claim.to_json(claim.ttl) for claim in claims],
        },
    }  # fmt: skip


def _memo(command: Assign) -> Record:
    return {"verb": "assign", "id": command.id if command.asked is None else command.asked}


def _repeat(state: State, command: Assign) -> Decision | None:
    first = remembered(state, command.actor.agent, command.nonce, _memo(command))
    if first is None:
        return None
    for held in held_by(state, command.actor.agent):
        task = task_record(state, held.id) if held.token == first.seq else None
        if task is not None:
            return Decision([], [], {**assignment(state, task), "repeated": True})
    raise refused("gone", f"given before under this nonce (event {first.seq}), and no longer yours", "use a new nonce")


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    first, last = events[0], events[-1]
    bases = [event.body["bases"][-1] for event in events if event.kind == "claim"]
    asked = str(last.keep.get("id", "")) if last.keep is not None else None
    command = Assign(
        as_started(events, actor), last.body["id"], last.body["ttl"], bases[-1] if bases else "",
        first.nonce if last.keep is not None else "", expired_keys(events), lapsed_ids(events), asked,
    )  # fmt: skip
    return [Recalled(decide, command)]


def apply(state: State, event: Event) -> Changes:
    body = event.body
    task = task_record(state, body["id"])
    require_open(state, event.agent, body["session"])
    fits = task is not None and (task.state == OPEN or (task.state, task.owner) == (ASSIGNED, event.agent))
    if task is None or not fits or unmet(state, task) or body["ttl"] < 1:
        raise Illegal(f"event {event.seq} gives away {body['id']}, which is not to be had")
    after = task._replace(
        state=ACTIVE, owner=event.agent, session=body["session"], token=event.seq, ttl=body["ttl"], reason="",
        changed=event.at,
    )  # fmt: skip
    return changed(state, task, after)


KIND = Kind(FIELDS, subject("assign {id} to {agent}"), apply, recall)
