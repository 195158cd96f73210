"""handoff: an agent offers its work, with its claims and its task, to another. Nothing changes hands until it is accepted."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.names import check_agent, check_word, covers, is_oid, printable, shown
from gitcoord.base.texts import one_line
from gitcoord.claims.model import Claim, Item, all_claims, overlapping, own_claim, prefetch_around
from gitcoord.handoff.model import FACTS, MOST, SECTIONS, check_sections, may_pass, new_record, open_handoffs
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.kinds import Kind, Recalled, touches_nothing
from gitcoord.ledger.sessions import KILLED, Actor, agent_record
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats, barred
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import held_by, set_handoff, task_record, the_task
from gitcoord.tasks.workers import is_cap

_CLAIM: dict[str, Shape] = {
    "space": str, "path": str, "agent": str, "token": int, "mode": str, "ttl": int, "expected": int, "reason": str,
    "task": str, "base": str, "units": int,
}  # fmt: skip
FIELDS: dict[str, Shape] = {
    "to": str, "role": str, "task": str, "session": int, "claims": [_CLAIM],
    "sections": {section.key: str for section in SECTIONS}, **FACTS,
}  # fmt: skip


class New(NamedTuple):
    """The command. No items: all that this agent holds. `facts` are the client's facts of the work."""

    actor: Actor
    sections: dict[str, str]
    to: str = ""
    role: str = ""
    task: str = ""
    items: tuple[Item, ...] = ()
    facts: Record | None = None


def decide(state: State, command: New, world: World) -> Decision:
    sections, facts = check_sections(command.sections), check_facts(command.facts)
    agent = command.actor.agent
    if command.to:
        check_agent(command.to)
    if command.role:
        check_word(command.role, "role")
    if command.to == agent:
        raise UsageError("a handoff is for another than yourself", hints=("leave --to out: then it is for anyone",))
    raise_if(barred(state, command.actor, world))
    claims = _claims(state, command)
    _require_not_offered(state, command, claims)
    if command.task:
        _require_own_task(state, command)
    record = agent_record(state, agent)
    session = record.session if record is not None else 0
    body = {
        "to": command.to, "role": command.role, "task": command.task, "session": session, "sections": sections, **facts,
        "claims": [_row(claim) for claim in claims],
    }  # fmt: skip
    chain = Chain(state, agent, world)
    event = chain.add("handoff", body)
    beats = actor_heartbeats(state, command.actor, world)
    return Decision(chain.events, beats, {"id": f"h{event.seq}", **_result(body)})


def _row(claim: Claim) -> Record:
    return {key: getattr(claim, key) for key in _CLAIM}


def _result(body: Record) -> dict[str, object]:
    row = {key: body[key] for key in ("to", "role", "task", "branch", "head", "dirty", "unpushed")}
    return {**row, "claims": [shown(claim["path"], claim["space"]) for claim in body["claims"]]}


def check_facts(facts: Record | None) -> Record:
    """The client's facts of its work, checked for size. They are for people to read; no rule uses them."""
    found: Record = {
        "branch": "",
        "head": "",
        "commits": [],
        "diffstat": [],
        "dirty": [],
        "unpushed": 0,
        **(facts or {}),
    }
    for key in ("commits", "diffstat", "dirty"):
        if len(found[key]) > MOST:
            raise UsageError(f"a handoff lists at most {MOST} of its {key}")
    one_line(found["branch"], "the branch", 1000, empty=True)
    oids = [*([found["head"]] if found["head"] else []), *(row[0] for row in found["commits"])]
    if not all(map(is_oid, oids)):
        raise UsageError("a handoff names commits by their ids")
    for _, subject in found["commits"]:
        one_line(subject, "a commit's subject", empty=True)
    if sum(map(len, [*found["dirty"], *(row[0] for row in found["diffstat"])])) > 200_000:
        raise UsageError("the paths of this handoff are too long")
    return found


def _claims(state: State, command: New) -> list[Claim]:
    """The claims to pass on: all, or for each item the claim on it or those below it; always those that the task needs.

    Places under a cap stay with the worker, and claims that other tasks of the worker need stay with it.
    """
    from gitcoord.tasks.events.assign import needed_beside

    agent = command.actor.agent
    found: dict[tuple[str, str], Claim] = {}
    missing = []
    if not command.items:
        found = {(claim.space, claim.path): claim for claim in all_claims(state, agent)}
    prefetch_around(state, command.items)
    for item in command.items:
        own = own_claim(state, item, agent)
        mine = [own] if own is not None else [c for c in overlapping(state, item) if _is_below(c, item, agent)]
        found.update({(claim.space, claim.path): claim for claim in mine})
        missing += [] if mine else [shown(item.name, item.space)]
    if missing:
        what = printable(", ".join(missing))
        raise refused("not-held", f"'{agent}' does not hold {what}", "git claim list --mine")
    for item in _needed(state, command.task):
        own = own_claim(state, item, agent)
        if own is not None:
            found[own.space, own.path] = own
    if not command.items:
        staying = {held.id for held in held_by(state, agent)} - {command.task}
        beside = needed_beside(state, agent, command.task)
        found = {key: c for key, c in found.items() if c.task not in staying and c.item not in beside}
    return [claim for key, claim in found.items() if not is_cap(key)]


def _needed(state: State, id: str) -> tuple[Item, ...]:
    """The items of the task that is handed over."""
    from gitcoord.tasks.events.assign import items_of

    task = task_record(state, id) if id else None
    return items_of(task) if task is not None else ()


def _is_below(claim: Claim, item: Item, agent: str) -> bool:
    return claim.agent == agent and covers(item.name, claim.path)


def _require_not_offered(state: State, command: New, claims: list[Claim]) -> None:
    """One piece of work is offered once."""
    offered = {(claim.space, claim.path) for claim in claims}
    for row in open_handoffs(state):
        both = [shown(pair[1], pair[0]) for pair in row.claims if tuple(pair) in offered]
        if row.giver == command.actor.agent and (both or (command.task and row.task == command.task)):
            what = printable(both[0]) if both else command.task
            raise refused(
                "handed-over",
                f"{what} is part of {row.id}, which waits to be accepted",
                f"take that one back first: git handoff withdraw {row.id}",
            )


def _require_own_task(state: State, command: New) -> None:
    """A task goes with all that it needs: not without a claim that was lost, nor with one that another task needs too."""
    from gitcoord.tasks.events.assign import items_of, needed_beside

    agent, task = command.actor.agent, the_task(state, command.task)
    if not may_pass(task, agent):
        who = f"it is {task.owner}'s" if task.owner else f"it is {task.state}"
        raise refused("not-yours", f"{task.id} is not yours to hand over: {who}", f"git coord task show {task.id}")
    needed = items_of(task)
    missing = [shown(item.name, item.space) for item in needed if own_claim(state, item, agent) is None]
    if missing:
        raise refused(
            "not-held",
            f"{task.id} needs {printable(', '.join(missing))}, which you do not hold",
            f"claim it again, or give the task back: git coord task release {task.id}",
        )
    beside = needed_beside(state, agent, task.id)
    for item in needed:
        if item in beside:
            raise refused(
                "needed",
                f"{printable(shown(item.name, item.space))} is needed for {beside[item]} too, which you have",
                f"finish {beside[item]} first, or give it back: git coord task release {beside[item]}",
            )


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    body = events[-1].body
    items = tuple(Item(claim["space"], claim["path"]) for claim in body["claims"])
    facts = {key: body[key] for key in FACTS}
    said = (body["sections"], body["to"], body["role"], body["task"], items, facts)
    return [Recalled(decide, New(actor, *said))]


def subject(event: Event) -> str:
    body = event.body
    whom = f" to {body['to']}" if body["to"] else f" to the role {body['role']}" if body["role"] else ""
    what = f" {body['task']}" if body["task"] else ""
    return f"hand over{what}{whom} by {event.agent} (h{event.seq})"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    valid = check_legal(event, check_sections, body["sections"]) == body["sections"]
    check_legal(event, check_facts, {key: body[key] for key in FACTS})
    if body["to"]:
        check_legal(event, check_agent, body["to"])
    for key in ("task", "role"):
        if body[key]:
            check_legal(event, check_word, body[key], key)
    record = agent_record(state, event.agent)
    if not valid or body["to"] == event.agent or (record is not None and record.state == KILLED):
        raise Illegal(f"event {event.seq} is a handoff that cannot be made")
    for claim in body["claims"]:
        own = own_claim(state, Item(claim["space"], claim["path"]), event.agent)
        if own is None or _row(own) != claim:
            raise Illegal(f"event {event.seq} hands over '{printable(claim['path'])}', which is not held so")
    changes = new_record(event.seq, event.agent, event.at, body)
    if body["task"]:
        task = task_record(state, body["task"])
        if task is None or not may_pass(task, event.agent):
            raise Illegal(f"event {event.seq} hands over a task that is not {event.agent}'s")
        changes.update(set_handoff(state, task, f"h{event.seq}"))
    return changes


KIND = Kind(FIELDS, subject, apply, recall, touches=touches_nothing, agents=("claims",))
