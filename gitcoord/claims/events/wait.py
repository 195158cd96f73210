"""wait: an agent stands in the queue for paths or resources. The event's number is its ticket."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import Refused, UsageError, raise_if, refused
from gitcoord.base.names import shown
from gitcoord.claims.events.claim import checked_item
from gitcoord.claims.events.expire import add_expire, expired_keys
from gitcoord.claims.model import MAX_TTL, MIN_TTL, MODES, WRITE, Claim, Item, conflicts_of, expiry_of_claim, own_claims
from gitcoord.claims.queue import Queue, kept_for, plain_request
from gitcoord.claims.requests import (
    LONGEST_RESERVE,
    NEXT,
    PRIORITIES,
    Request,
    drop,
    own_request,
    own_requests,
    put,
    task_of,
)
from gitcoord.claims.take import Judged, Take, confirms_of, default_ttl, granted, require_no_deadlock
from gitcoord.claims.take import decide as decide_take
from gitcoord.ledger.event import Chain, Decision, Event, Illegal, check_legal
from gitcoord.ledger.format import QUEUE, with_minor
from gitcoord.ledger.kinds import Kind, Recalled, touches_nothing
from gitcoord.ledger.sessions import Actor, Admission, Heartbeat, admit, next_heartbeat
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.waiting import highest_priority
from gitcoord.sessions.admission import as_started, halted, open_session, require_open
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {
    "session": int, "ticket": int, "items": [(str, str)], "mode": str, "units": int, "priority": str, "blocking": bool,
    "reserve": int, "ttl": int, "expected": int, "reason": str, "task": str, "base": str,
}  # fmt: skip


class Wait(NamedTuple):
    """The command: take the items, or stand in the queue for them. `blocking`: the agent does nothing else until then."""

    actor: Actor
    items: tuple[Item, ...]
    mode: str = WRITE
    ttl: int = 0
    expected: int = 0
    reason: str = ""
    task: str = ""
    base: str = ""
    units: int = 0
    priority: str = "normal"
    blocking: bool = True
    only: tuple[tuple[str, str, str], ...] = ()  # the expired claims to end, by key; none: all that conflict

    @property
    def take(self) -> Take:
        said = (self.mode, self.ttl, self.expected, self.reason, self.task, self.base, self.units)
        return Take(self.actor, self.items, *said, only=self.only)


def decide(state: State, command: Wait, world: World) -> Decision:
    """Grant all items, or a place in the queue; the same place where the agent has it already."""
    if command.priority not in PRIORITIES:
        raise UsageError(f"'{command.priority}' is not a priority", hints=(", ".join(PRIORITIES),))
    _require_no_task(command.items)
    mine = own_place(state, command)
    if mine is not None:
        return _ask_again(state, command, world, mine)
    _require_priority(state, command, world)
    if NEXT in command.items:
        raise_if(halted(state))
        return _stand(state, command, world, refused("kept", "tasks are kept for agents that wait for them"))
    try:
        taken = decide_take(state, command.take, world)
    except Refused as error:
        # "deadlock": the agent blocks in an earlier request, which this one replaces.
        if error.code not in ("held", "kept", "deadlock"):
            raise
        return _stand(state, command, world, error)
    if not _replaces(state, command, taken):
        return taken
    ended = [event for event in taken.events if event.kind == "expire"]
    if ended:  # on its own first, as where it lets others go
        beats = [beat for beat in taken.beats if beat.agent != command.actor.agent]
        return Decision(ended, beats, {}, again=True)
    return _stand(state, command, world)


def _replaces(state: State, command: Wait, taken: Decision) -> bool:
    """Would this claim leave an earlier request of its agent, which a place in the queue would end, or turn into one that does not block? It
    gets the claim by such a place then."""
    if not (any(event.kind == "claim" for event in taken.events) and state.names("waits")):
        return False
    held = own_claims(state, dict.fromkeys(command.items), command.actor.agent)
    if any(
        MODES.index(own.mode) > MODES.index(command.mode) or own.units > (command.units or own.units) for own in held
    ):
        return False  # it gives something up, which no grant does
    earlier = own_requests(state, command.actor.agent)
    return any((command.blocking and each.blocking) or set(each.items) & set(command.items) for each in earlier)


def _require_no_task(items: tuple[Item, ...]) -> None:
    if task_of(items) or (NEXT in items and len(items) > 1):
        raise UsageError(
            "a task is not waited for like a path",
            hints=("git coord task next --wait 10m", "or: git coord task take <id> --wait 10m"),
        )


def own_place(state: State, command: Wait) -> Request | None:
    """The agent's own request for just this."""
    if not command.items or not state.names("waits"):
        return None
    found = own_request(state, command.items[0], command.actor.agent)
    return found if found is not None and found.is_same(command.items, command.mode, command.units or 1) else None


def _stand(state: State, command: Wait, world: World, error: Refused | None = None) -> Decision:
    """A new place in the queue. `error`: why the items cannot be had at once."""
    admitted = admit(state, command.actor, world)
    chain = Chain(state, command.actor.agent, world)
    open_session(chain, command.actor, world, admitted)
    before = chain.state
    event = chain.add("wait", _body(command, world, admitted.session, 0))
    is_granted = any(row["ticket"] == event.seq for row in event.granted)
    if error is not None and is_granted and _goes_too_far(before, command, world):
        raise error
    if command.blocking:
        require_no_deadlock(chain.state, world, chain.agent)
    return _answer(chain, command, world, admitted, [])


def _goes_too_far(state: State, command: Wait, world: World) -> bool:
    """Would a new request go past one that may not be overtaken, only because that one waits for this agent?"""
    queue = Queue(state, world)
    claim = plain_request(command.actor.agent, command.items, command.mode, command.units or 1)
    kept = kept_for(queue, claim, queue.rivals(claim))
    return kept is not None and queue.at_limit(kept)


def _require_priority(state: State, command: Wait, world: World) -> None:
    asked = PRIORITIES.index(command.priority)
    if asked >= PRIORITIES.index("normal"):
        return  # everybody may
    highest = highest_priority(state, command.actor, world)
    if asked < PRIORITIES.index(highest):
        raise refused("priority", f"an agent may ask for '{highest}' at most", "ask a person")


def _ask_again(state: State, command: Wait, world: World, mine: Request) -> Decision:
    """The same place. Conflicting claims that have expired are ended, which may grant this or an earlier request."""
    raise_if(halted(state))
    command = _with_earlier_terms(command, mine)
    admitted = admit(state, command.actor, world)
    chain = Chain(state, command.actor.agent, world)
    queue = Queue(state, world)
    beats = add_expire(chain, world, _expired(queue, command, mine), [])
    if not chain.events and _changes(queue, command, mine):
        if command.priority != mine.priority:
            _require_priority(state, command, world)
        chain.add("wait", _body(command, world, admitted.session, mine.ticket))
        if command.blocking and not mine.blocking:
            require_no_deadlock(chain.state, world, chain.agent)
    return _answer(chain, command, world, admitted, beats)


def _with_earlier_terms(command: Wait, mine: Request) -> Wait:
    """Terms that are not said again stay as they were. The priority never gets lower: a person may have raised it."""
    return command._replace(
        reason=command.reason or mine.reason, task=command.task or mine.task, ttl=command.ttl or mine.ttl,
        expected=command.expected or mine.expected,
        priority=min(mine.priority, command.priority, key=PRIORITIES.index),
    )  # fmt: skip


def _expired(queue: Queue, command: Wait, mine: Request) -> list[Judged]:
    """The expired claims for which this request waits, or one for which it is kept, whose agent may not ask any more."""
    asked = [mine, *queue.keepers(mine)]
    conflicts = [conflicts_of(queue.state, queue.world, i, r.agent, r.mode, r.units) for r in asked for i in r.items]
    rows = [row for each in conflicts for row in each.expired if row[0].agent != mine.agent]
    expired = {c.key: (c, s) for c, s in rows if not command.only or c.key in command.only}
    return list(expired.values())


def _changes(queue: Queue, command: Wait, mine: Request) -> bool:
    """Is there something to record: other terms, or that the request may go although no event has granted it yet? The queue follows what
    it grants."""
    said = ("priority", "blocking", "reason", "task", "expected")
    if any(getattr(mine, key) != getattr(command, key) for key in said):
        return True
    if queue.blocking_claims(mine):
        return False  # as with most that ask again
    return any(grant.request.ticket == mine.ticket for grant in queue.grants([mine]))


def _body(command: Wait, world: World, session: int, ticket: int) -> Record:
    settings = world.waiting()
    return {
        "session": session, "ticket": ticket, "items": [list(item) for item in dict.fromkeys(command.items)],
        "mode": command.mode, "units": command.units or 1, "priority": command.priority,
        "blocking": command.blocking, "reserve": settings.reserve if command.blocking else settings.reserve_queued,
        "ttl": command.ttl or default_ttl(command.items, world), "expected": command.expected,
        "reason": command.reason, "task": command.task, "base": command.base,
    }  # fmt: skip


def _answer(chain: Chain, command: Wait, world: World, admitted: Admission, beats: list[Heartbeat]) -> Decision:
    """Granted, or where the agent stands now."""
    state, agent = chain.state, chain.agent
    held = own_claims(state, dict.fromkeys(command.items), agent)
    mine = own_place(state, command)
    done = mine is None and len(held) == len(set(command.items))
    ttl = min((own.ttl for own in held), default=0) if done else 0
    beat = next_heartbeat(world.heartbeat(agent), agent, admitted.session, world, ttl, confirms_of(held) if done else 0)
    known = chain.events[0].seq - 1 if chain.events else state.seq
    result = granted(held) if done else standing(state, world, mine, known)
    return Decision(chain.events, [*beats, beat] if beat else beats, result)


def standing(state: State, world: World, mine: Request | None, known: int) -> Record:
    """Where a request stands: its position among those for the same items, who is before it, and whose claims it waits for.

    `known`: the Seq up to which the state is in the ledger."""
    if mine is None:
        return {"waiting": True, "ticket": 0, "position": 0, "of": 0, "before": [], "held": [], "paths": []}
    queue = Queue(state, world)
    before, count = queue.standing(mine)
    return {
        "waiting": True, "ticket": mine.ticket, "position": len(before) + 1, "of": count,
        "before": [each.agent for each in before], "paths": [shown(item.name, item.space) for item in mine.items],
        "held": [c.to_json(_expires_in(state, world, c, known)) for c in queue.blocking_claims(mine)],
    }  # fmt: skip


def _expires_in(state: State, world: World, claim: Claim, known: int) -> int | None:
    """Seconds until the claim may be expired. The time of a grant that is not in the ledger yet has not begun: its token may
    become another's."""
    return expiry_of_claim(state, world, claim).expires_in if claim.token <= known else None


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    body = events[-1].body
    items = tuple(Item(*pair) for pair in body["items"])
    keys = ("mode", "ttl", "expected", "reason", "task", "base", "units", "priority", "blocking")
    wait = Wait(as_started(events, actor), items, **{key: body[key] for key in keys}, only=expired_keys(events))
    return [Recalled(decide, wait)]


def subject(event: Event) -> str:
    items = event.body["items"]
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    return f"wait for {shown(items[0][1], items[0][0])}{more} by {event.agent}"


def _checked(event: Event) -> tuple[Item, ...]:
    """The items of a wait; Illegal where its body makes no sense."""
    body = event.body
    items = tuple(checked_item(Item(*pair), event) for pair in body["items"])
    check_legal(event, _require_no_task, items)
    if (
        not items or len(set(items)) != len(items) or body["mode"] not in MODES or body["priority"] not in PRIORITIES
        or body["units"] < 1 or not 1 <= body["reserve"] <= LONGEST_RESERVE or not MIN_TTL <= body["ttl"] <= MAX_TTL
    ):  # fmt: skip
        raise Illegal(f"event {event.seq} waits in a mode, number, class or ttl that does not exist")
    return items


def apply(state: State, event: Event) -> Changes:
    """A new request in the queue, or one at its old place with other terms."""
    body = event.body
    require_open(state, event.agent, body["session"])
    items = _checked(event)
    changes: Changes = with_minor(state, QUEUE)
    old = [own for item in items if (own := own_request(state, item, event.agent)) is not None]
    kept = next((own for own in old if own.ticket == body["ticket"]), None)
    if body["ticket"] and (kept is None or not kept.is_same(items, body["mode"], body["units"])):
        raise Illegal(f"event {event.seq} asks again for what '{event.agent}' does not wait for")
    for own in old:
        drop(state, own, changes)  # an agent has one request for one item
    request = Request(
        event.seq, event.agent, body["session"], items, body["mode"], body["units"], body["priority"], 0,
        body["blocking"], 0, body["reserve"], body["ttl"], body["expected"], body["reason"], body["task"], body["base"],
        event.at,
    )  # fmt: skip
    if kept is not None:
        request = request._replace(ticket=kept.ticket, overtaken=kept.overtaken, missed=kept.missed, at=kept.at)
    if request.blocking:
        for own in own_requests(state, event.agent):
            if own.blocking and not set(own.items) & set(items):
                put(state, own._replace(blocking=False), changes)  # an agent waits in one place at a time
    put(state, request, changes)
    return changes


KIND = Kind(FIELDS, subject, apply, recall, touches=touches_nothing)
