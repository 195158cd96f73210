"""The grants of an event: which requests may go because of it, the claims that these become, and the requests that are overtaken.

The event lists its grants in `granted`, a row for each. A claim without a request lists those that it overtakes in `past`. Everybody who
makes the event again comes to the same.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import refused
from gitcoord.base.names import RESOURCE, printable, shell_word, shown
from gitcoord.claims.events.claim import require_free
from gitcoord.claims.model import WRITE, Item, file_of
from gitcoord.claims.queue import Grant, Queue, claims_of, kept_for, plain_request
from gitcoord.claims.requests import (
    NEXT,
    Request,
    all_requests,
    asked_items,
    capacity_for,
    directory_of,
    drop,
    own_requests,
    put,
    requests_around,
    wait_file,
)
from gitcoord.ledger.event import READY, Event, Illegal
from gitcoord.ledger.kinds import task_rules
from gitcoord.ledger.sessions import OPEN, agent_record
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World

# --- made: which requests may go, and which are overtaken


def freed_by(before: State, changes: Changes) -> list[str]:
    """The files whose change may let a request go: what was freed, and what was given to an agent that waits, since requests for which
    that agent waits may be passed by others from now on."""
    given = {key: r["agent"] for key, r in changes.items() if key.startswith("claims/") and r is not None}
    waiting = {agent for agent in given.values() if own_requests(before, agent)}
    return [
        key
        for key in changes
        if key.startswith(("halt", READY)) or given.get(key) in waiting or _frees(before, key, changes[key])
    ]


def _frees(before: State, key: str, record: Record | None) -> bool:
    if key.startswith("waits/"):
        return True
    old = before.get(key) if key.startswith("claims/") else None
    if old is None or record is None:
        return old is not None
    return bool(old["units"] > record["units"] or (old["mode"] == WRITE != record["mode"]))


def grants_after(after: State, keys: list[str], world: World) -> tuple[Record, ...]:
    """The rows of the requests that may go now that these files have changed. While everything is halted, none."""
    if after.get("halt") is not None:
        return ()
    queue = Queue(after, world)
    files = [key for key in keys if not key.startswith(READY)]
    first = all_requests(after) if "halt" in keys else _near(queue, files)
    return tuple(_row(after, world, grant) for grant in queue.grants(first, _agents(files)))


def _agents(files: list[str]) -> list[str]:
    """The agents whose claims or requests these files are."""
    return list(dict.fromkeys(file.rpartition("/@")[2] for file in files))


def _near(queue: Queue, files: list[str]) -> list[Request]:
    """The requests around these files, those of their agents with all for which they wait, and those for any task: whatever is free, a
    task may need it."""
    near = queue.beside(files)
    for agent in _agents(files):
        for each in queue.of(agent).values():
            near.update(queue.reachable(each))
    near.update(queue.around(plain_request("", (NEXT,), WRITE, 1)))
    return list(near.values())


def _row(state: State, world: World, grant: Grant) -> Record:
    request, items = grant.request, grant.request.given(state)
    return {
        "ticket": request.ticket, "agent": request.agent, "items": [list(item) for item in items],
        "past": [each.ticket for each in grant.past],
        "capacity": {item.name: capacity_for(world, item) for item in items if item.space == RESOURCE},
    }  # fmt: skip


def overtaken_by(state: State, world: World, agent: str, items: tuple[Item, ...], mode: str, units: int) -> list[int]:
    """The tickets of the requests that a claim overtakes; Refused where it has to wait for one of them."""
    claim = plain_request(agent, items, mode, units)
    queue = Queue(state, world)
    rivals = queue.rivals(claim)
    kept = kept_for(queue, claim, rivals)
    if kept is not None:
        what, wanted = (printable(", ".join(shown(i.name, i.space) for i in each[:3])) for each in (items, kept.items))
        words = f"'{what}' is free, but kept for {kept.agent}, who waits for {wanted}"
        raise refused("kept", words, *_finish_first(queue, kept, agent))
    return [request.ticket for request in rivals if queue.overtakes(claim, request)]


def _finish_first(queue: Queue, kept: Request, agent: str) -> tuple[str, ...]:
    """Hints where the request for which a path is kept waits, directly or by way of others, for claims of this agent, which would wait for
    ever; or of an agent whose subagent this is, which usually waits for it."""
    names = agent.split(".")
    family = {".".join(names[: n + 1]) for n in range(len(names))}
    wanted = [claim for each in queue.reachable(kept).values() for claim in queue.blocking_claims(each, family)]
    own = " ".join(dict.fromkeys(shell_word(shown(c.path, c.space)) for c in wanted if c.agent == agent))
    if own:
        return (f"finish and release what others wait for, then ask again: git claim release {own}",)
    above = dict.fromkeys(c.agent for c in wanted)
    return tuple(f"finish, so that {name}, whose subagent you are, can release what others wait for" for name in above)


# --- applied: the claims that they become


def apply_grants(state: State, event: Event, changes: Changes) -> Changes:
    """The changes of an event together with those of its grants; Illegal where a grant does not fit."""
    changes = dict(changes)
    work = state.patched(changes)
    if event.past:
        items = [Item(*pair) for pair in event.body["items"]]
        counted = _counted(work, _passed(work, event, event.agent, items, list(event.past)))
        changes.update(counted)
        work = work.patched(counted)
    for row in event.granted:
        more = _applied(work, event, row)
        changes.update(more)
        work = work.patched(more)
    return changes


def _applied(state: State, event: Event, row: Record) -> Changes:
    """The changes of one grant: claims instead of the request, and a count for each that it overtakes."""
    request, items = _granted(state, event, row)
    for item in items:
        capacity = row["capacity"].get(item.name, 1)
        require_free(state, event._replace(agent=request.agent), item, request.mode, request.units, capacity)
    past = _passed(state, event, request.agent, list(request.items), row["past"])
    changes: Changes = {}
    drop(state, request, changes)
    return {**changes, **_counted(state, past), **claims_of(state, request, event.seq, event.at, event.nonce)}


def _granted(state: State, event: Event, row: Record) -> tuple[Request, list[Item]]:
    """The request of a row, and what it is given; Illegal where it is not there, or its session is over."""
    agent, items = row["agent"], [Item(*pair) for pair in row["items"]]
    file = wait_file(state, asked_items(tuple(items))[0], agent) if items else ""
    record = state.get(file) if items else None
    request = Request.from_record(record, file) if record is not None else None
    if request is not None and NEXT in request.items:
        request = task_rules().form_for(state, request, items)
    if request is None or request.ticket != row["ticket"] or list(request.given(state)) != items:
        raise Illegal(f"event {event.seq} grants a request of '{agent}' that is not there")
    holder = agent_record(state, agent)
    if holder is None or (holder.state, holder.session) != (OPEN, request.session):
        raise Illegal(f"event {event.seq} grants to '{agent}', whose session is over")
    if not all(type(units) is int for units in row["capacity"].values()):
        raise Illegal(f"event {event.seq} does not fit together")
    return request, items


def _passed(state: State, event: Event, agent: str, items: list[Item], tickets: list[int]) -> list[Request]:
    """The requests with these tickets; Illegal where one is not there, or not beside these items."""
    near = {
        r.ticket: r for item in items for r in requests_around(state, directory_of(state, item)) if r.agent != agent
    }
    if len(set(tickets)) != len(tickets) or not near.keys() >= set(tickets):
        raise Illegal(f"event {event.seq} overtakes a request that is not there")
    return [near[ticket] for ticket in tickets]


def _counted(state: State, past: list[Request]) -> Changes:
    changes: Changes = {}
    for each in past:
        put(state, each._replace(overtaken=each.overtaken + 1), changes)
    return changes


def refs_of_grants(state: State, event: Event) -> dict[str, bool]:
    """The refs of the claims that an event grants."""
    return {"refs/" + file_of(state, Item(*pair), row["agent"]): True for row in event.granted for pair in row["items"]}
