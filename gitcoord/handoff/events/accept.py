"""accept: claims (with new tokens), task and branch of a handoff pass to the new owner in this one event.

The giver holds nothing of it from then on: every gate refuses its changes. Claims that expired meanwhile are granted too, unless
another agent holds them; then nothing is accepted.
"""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import Refusal, Refused, raise_if, refused
from gitcoord.base.names import printable
from gitcoord.claims.events.claim import require_free
from gitcoord.claims.events.expire import add_expire, expired_keys, lose
from gitcoord.claims.model import (
    MAX_TTL,
    MODES,
    WRITE,
    Claim,
    Grant,
    Item,
    conflicts_of,
    file_of,
    overlapping,
    own_claim,
    own_claims,
    prefetch_around,
)
from gitcoord.handoff.model import (
    ACCEPTED,
    Handoff,
    closed_record,
    handoff_record,
    may_pass,
    not_addressed,
    not_open,
    the_handoff,
)
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, Touched, paths_in
from gitcoord.ledger.sessions import Actor, Admission, Expiry, Heartbeat, admit, next_heartbeat
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import as_started, halted, open_session, require_open
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.events.lapse import add_lapses, lapsed_ids, left_behind, lost
from gitcoord.tasks.model import held_by, pass_on, task_record
from gitcoord.tasks.workers import caps_for, is_cap, is_launched, task_ttl
from gitcoord.tasks.workers import role as role_here

Judged = tuple[Claim, Expiry]

_GRANT: dict[str, Shape] = {
    "mode": str, "ttl": int, "expected": int, "reason": str, "task": str, "base": str, "units": int, "capacity": int,
}  # fmt: skip
FIELDS: dict[str, Shape] = {
    "handoff": str, "holder": str, "session": int, "task": str, "items": [(str, str)], "grants": [_GRANT],
    "claims": [{"space": str, "path": str, "agent": str, "token": int}], "ttl": int,
}  # fmt: skip


_KEPT = ("expected", "reason", "task", "base")  # these pass on unchanged


class Accept(NamedTuple):
    actor: Actor
    handoff: str
    only: tuple[
        tuple[str, str, str], ...
    ] = ()  # (space, path, agent) of expired claims to end; none: all that conflict
    ttl: int = 0  # the task's ttl when the command is recalled; 0: as the settings say
    lapsed: tuple[str, ...] | None = None  # tasks whose owners may be found lost; None: all


def decide(state: State, command: Accept, world: World) -> Decision:
    raise_if(halted(state))
    actor = command.actor
    admitted = admit(state, actor, world)
    record = the_handoff(state, command.handoff)
    if record.state == ACCEPTED and record.by == actor.agent:
        return Decision([], [], {**_result(record), "claims": [], "repeated": True})
    raise_if(not_open(record) or not_addressed(state, world, record, actor))
    if record.task:
        _require_task(state, world, record, actor)
    return _accept(state, command, world, record, admitted)


def _accept(state: State, command: Accept, world: World, record: Handoff, admitted: Admission) -> Decision:
    from gitcoord.claims.take import access_to, require_no_deadlock

    actor, session = command.actor, admitted.session
    prefetch_around(state, [claim.item for claim in record.claims])
    free = _without(state, _losing(state, record))
    ttl = _ttl(state, world, command, record)
    offered = [*_with_task(record, ttl), *_caps(state, world, command, record, ttl)]
    items = [claim.item for claim in offered]
    grants = [_grant(state, world, item, claim, actor.agent) for item, claim in zip(items, offered)]
    for item, grant in zip(items, grants):
        raise_if(access_to(actor, item, grant["mode"], grant["units"], world))
    conflicts = [conflicts_of(free, world, i, actor.agent, g["mode"], g["units"]) for i, g in zip(items, grants)]
    live = _by_claim(each.live for each in conflicts)
    if live:
        raise Refused(_held(record, list(live.values())))
    only = set(command.only)
    expired = {
        key: row for key, row in _by_claim(each.expired for each in conflicts).items() if not only or key in only
    }
    chain = Chain(state, actor.agent, world)
    beats = _end_expired(chain, command, world, list(expired.values()))
    open_session(chain, actor, world, admitted)
    body = {
        "handoff": record.id, "holder": record.giver, "session": session, "task": record.task,
        "items": [list(item) for item in items], "grants": grants, "ttl": ttl,
        "claims": _losing(chain.state, record),  # an expiry may have taken some: what was reserved together is lost together
    }  # fmt: skip
    chain.grants = True
    chain.add("accept", body)
    require_no_deadlock(chain.state, world, actor.agent)
    now = own_claims(chain.state, items, actor.agent)
    beat = next_heartbeat(
        world.heartbeat(actor.agent), actor.agent, session, world, min([own.ttl for own in now], default=0)
    )
    result = {**_result(record), "claims": [own.to_json(own.ttl) for own in now], "repeated": False}
    return Decision(chain.events, [*beats, beat] if beat else beats, result)


def _end_expired(chain: Chain, command: Accept, world: World, expired: list[Judged]) -> list[Heartbeat]:
    """End expired claims. An agent that loses what a task needs, or a place under a cap, loses its task with it."""
    if not expired:
        return []
    owners = {claim.agent for claim, _ in expired}
    found = lost(chain.state, world, chain.agent, command.lapsed or ()) if command.lapsed != () else []
    rows = [row for row in found if row[0].agent in owners]
    chain.grants = False
    beats = add_lapses(chain, world, rows)
    known = [claim for claim, _ in expired]
    expired = expired + [row for row in left_behind(chain, world, rows, command.only or None) if row[0] not in known]
    return add_expire(chain, world, expired, beats)


def _result(record: Handoff) -> dict[str, object]:
    row = record.to_json()
    return {key: row[key] for key in ("id", "from", "task", "branch", "head", "dirty", "unpushed")}


def _losing(state: State, record: Handoff) -> list[Record]:
    """The giver's remaining claims, with any token; with its last task also its place under a cap."""
    holder = record.giver
    held = own_claims(state, (claim.item for claim in record.claims), holder)
    if record.task and [task.id for task in held_by(state, holder)] == [record.task]:
        places = overlapping(state, Item("resource", "workers"))
        held += [c for c in places if c.agent == holder and is_cap((c.space, c.path))]
    return [{"space": own.space, "path": own.path, "agent": own.agent, "token": own.token} for own in held]


def _ttl(state: State, world: World, command: Accept, record: Handoff) -> int:
    """The task's ttl for its new owner; 0 if no task passes.

    A launched worker gets the short ttl of the settings; others keep a ttl that is longer than the usual one.
    """
    task = task_record(state, record.task) if record.task else None
    if task is None or command.ttl:
        return command.ttl if task is not None else 0
    own = task_ttl(world, command.actor)
    return own if is_launched(command.actor) else max(own, task.ttl)


def _with_task(record: Handoff, ttl: int) -> list[Grant]:
    """The claims that are offered; those of the task live as long as it does."""
    return [claim._replace(ttl=ttl) if ttl and claim.task == record.task else claim for claim in record.claims]


def _caps(state: State, world: World, command: Accept, record: Handoff, ttl: int) -> list[Grant]:
    """The places under a cap that the new owner of a task needs and does not have yet, or has only reserved."""
    needed = caps_for(state, world, command.actor) if record.task else ()
    owns = [(item, own_claim(state, item, command.actor.agent)) for item in needed]
    return [_place(item, record.task, ttl) for item, own in owns if own is None or own.reserved is not None]


def _place(item: Item, task: str, ttl: int) -> Grant:
    """A place under a cap, as if it were offered with the task."""
    return Grant(item.space, item.name, 0, WRITE, ttl, 0, "", task, "", 1)


def _without(state: State, losing: list[Record]) -> State:
    return state.patched({file_of(state, Item(c["space"], c["path"]), c["agent"]): None for c in losing})


def _grant(state: State, world: World, item: Item, claim: Grant, agent: str) -> Record:
    """The new owner's grant: the offered claim, joined with its own claim on the same item."""
    own = own_claim(state, item, agent)
    grant: Record = {key: getattr(claim, key) for key in _GRANT if key != "capacity"}
    grant["capacity"] = world.resource(item.name).capacity if item.space == "resource" else 1
    if own is not None:
        grant["mode"] = max(own.mode, claim.mode, key=MODES.index)
        grant["ttl"] = max(own.ttl, claim.ttl)
        if grant["capacity"] > 1:
            grant["units"] = min(own.units + claim.units, grant["capacity"])
    return grant


def _by_claim(rows: Iterable[list[Judged]]) -> dict[tuple[str, str, str], Judged]:
    return {claim.key: (claim, verdict) for row in rows for claim, verdict in row}


def _held(record: Handoff, rows: list[Judged]) -> Refusal:
    """The refusal with every holder, if others took claims that had expired."""
    names = ", ".join(sorted({claim.agent for claim, _ in rows}))
    held = tuple(claim.to_json(verdict.expires_in) for claim, verdict in rows)
    hints = (f"accept it when they have released it: git handoff accept {record.id}",)
    return Refusal("held", f"{record.id} cannot be accepted now: part of it is held by {names}", held, hints)


def _require_task(state: State, world: World, record: Handoff, actor: Actor) -> None:
    """Refused if the task cannot pass any more, or is for another role."""
    task = task_record(state, record.task)
    if task is None or not may_pass(task, record.giver):
        now = "gone" if task is None else f"{task.state}, by {task.owner}" if task.owner else task.state
        raise refused(
            "task-gone",
            f"the task {record.task} of {record.id} is {now}: there is nothing to accept",
            f"git coord task show {record.task}",
        )
    if task.role and role_here(state, world, actor) != task.role:
        raise refused("role", f"the task {task.id} is for the role '{printable(task.role)}'")


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    body = events[-1].body
    said = (body["handoff"], expired_keys(events), body["ttl"], lapsed_ids(events))
    return [Recalled(decide, Accept(as_started(events, actor), *said))]


def subject(event: Event) -> str:
    body = event.body
    what = f" with {body['task']}" if body["task"] else ""
    return f"accept {body['handoff']}{what} from {body['holder']} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    require_open(state, event.agent, body["session"])
    record = _checked_handoff(state, event)
    changes = lose(state, event, body["claims"])
    free = state.patched(changes)
    for pair, grant in zip(body["items"], body["grants"]):
        item = Item(*pair)
        require_free(free, event, item, grant["mode"], grant["units"], grant["capacity"])
        file = file_of(state, item, event.agent)
        changes[file] = _claim(event, item, grant).checked(file).to_record()
    if state.names("waits"):
        from gitcoord.claims.requests import consume  # only where somebody waits

        consume(state, event.agent, changes)
    if body["task"]:
        task = task_record(state, body["task"])
        if task is None or not may_pass(task, body["holder"]):
            raise Illegal(f"event {event.seq} passes on a task that {body['holder']} does not have")
        changes.update(pass_on(state, task, event, body["session"], body["ttl"]))
    changes.update(closed_record(record, ACCEPTED, event.agent, "", event.at))
    return changes


def _checked_handoff(state: State, event: Event) -> Handoff:
    """The handoff, if the event fits it."""
    body = event.body
    record = handoff_record(state, body["handoff"])
    if record is None or not_open(record) is not None or record.giver != body["holder"]:
        raise Illegal(f"event {event.seq} accepts a handoff that does not wait")
    if event.agent == record.giver or record.to not in ("", event.agent) or body["task"] != record.task:
        raise Illegal(f"event {event.seq} accepts a handoff that is for another")
    offered = [[claim.space, claim.path] for claim in record.claims]
    items, more = body["items"][: len(offered)], body["items"][len(offered) :]
    fits = items == offered and all(body["task"] and is_cap(pair) for pair in more)
    if not fits or len(body["grants"]) != len(body["items"]) or body["claims"] != _losing(state, record):
        raise Illegal(f"event {event.seq} does not pass on what was handed over")
    said = [*record.claims, *(_place(Item(*pair), record.task, 0) for pair in more)]
    if any(grant[key] != getattr(claim, key) for grant, claim in zip(body["grants"], said) for key in _KEPT):
        raise Illegal(f"event {event.seq} passes something on as it was not offered")
    if (body["ttl"] < 1) == bool(body["task"]) or body["ttl"] > MAX_TTL:
        raise Illegal(f"event {event.seq} passes on a task for a time that makes no sense")
    if any(grant["mode"] not in MODES or grant["units"] < 1 for grant in body["grants"]):
        raise Illegal(f"event {event.seq} grants in a mode or number that does not exist")
    return record


def _claim(event: Event, item: Item, grant: Record) -> Claim:
    kept = {key: value for key, value in grant.items() if key != "capacity"}
    return Claim(
        path=item.name, space=item.space, agent=event.agent, session=event.body["session"], token=event.seq,
        nonce=event.nonce, at=event.at, **kept,
    )  # fmt: skip


def refs(state: State, event: Event) -> dict[str, bool]:
    body = event.body
    gone = {"refs/" + file_of(state, Item(c["space"], c["path"]), c["agent"]): False for c in body["claims"]}
    return gone | {"refs/" + file_of(state, Item(*pair), event.agent): True for pair in body["items"]}


def touches(event: Event) -> Touched:
    return Touched(paths=paths_in(event.body["items"]))


KIND = Kind(FIELDS, subject, apply, recall, refs, touches=touches, agents=("holder", "claims"))
