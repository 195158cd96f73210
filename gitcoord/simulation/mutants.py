"""Deliberate faults of the protocol, by name. Each must be caught by an invariant: it shows that the invariants can fail.

A mutant replaces functions for the length of one `with`; the product has no switch for any of it.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

from gitcoord.claims.events import claim as claim_event
from gitcoord.claims.model import Claim, Conflicts, overlapping
from gitcoord.claims.queue import Grant, Queue
from gitcoord.claims.requests import Request
from gitcoord.ledger.sessions import Expiry
from gitcoord.simulation.authority import Authority, push_of
from gitcoord.simulation.client import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Patches = dict[str, Any]  # "module:name" or "module:Class.name" -> what stands there instead

_MODEL, _CLAIM, _TAKE = "gitcoord.claims.model", "gitcoord.claims.events.claim", "gitcoord.claims.take"
_REQUESTS, _QUEUE, _GRANTS = "gitcoord.claims.requests", "gitcoord.claims.queue", "gitcoord.claims.grants"
_SESSIONS, _CLIENT, _AUTHORITY = (
    "gitcoord.ledger.sessions",
    "gitcoord.simulation.client",
    "gitcoord.simulation.authority",
)


def two_writers() -> Patches:
    """A write claim is compatible with any other."""
    return {f"{module}:compatible": lambda held, asked: True for module in (_MODEL, _CLAIM)}


def overlap_unseen() -> Patches:
    """A claim on a directory does not cover the files below it."""

    def same(state: Any, item: Any) -> list[Claim]:
        return [claim for claim in overlapping(state, item) if claim.path == item.name]

    return {f"{_MODEL}:overlapping": same, f"{_CLAIM}:overlapping": same}


def units_pairwise() -> Patches:
    """Units are compared with each other holder's alone, never with the sum."""

    def conflicts(state: Any, world: Any, item: Any, agent: str, mode: str, units: int) -> Conflicts:
        found = _conflicts_of(state, world, item, agent, mode, units)
        capacity = world.resource(item.name).capacity
        live = [row for row in found.live if capacity == 1 or row[0].units + units > capacity]
        return Conflicts(live, found.expired)

    return {f"{_TAKE}:conflicts_of": conflicts, f"{_CLAIM}:require_free": lambda *_: None}


def fencing_off() -> Patches:
    """The gate believes everybody who says that it holds a path."""
    return {f"{_AUTHORITY}:Authority.may_land": lambda self, agent, items: True}


def expiry_without_heartbeat() -> Patches:
    """An expiry does not replace the heartbeat that it judged."""

    def push(view: Any, decision: Any, *, person: bool) -> Any:
        beats = [beat for beat in decision.beats if not beat.judged]
        return push_of(view, decision._replace(beats=beats), person=person)

    return {f"{_CLIENT}:push_of": push}


def clocks_trusted() -> Patches:
    """A heartbeat is as old as its sender's wall clock says."""
    return {f"{_SESSIONS}:MAX_SKEW": 0}


def never_expires() -> Patches:
    """No claim ever expires."""
    return {f"{_MODEL}:expiry_of": lambda *_: Expiry(False, "same clock", 1)}


def told_before_swap() -> Patches:
    """A client says that it was granted before it has read its event back."""

    def swap(self: Client, push: Any) -> Any:
        self.machine.request(lambda: self.authority.push(push)).send(lambda answer: None)
        yield 1
        return True

    return {f"{_CLIENT}:Client._swap": swap}


def blind_write() -> Patches:
    """The ledger is moved without naming the value that is expected there."""
    plain = Authority.push

    def push(self: Authority, push: Any) -> Any:
        if push.commits and push.parent != self.head and push.parent in self.position:
            count = len(self.history) - 1 - self.position[push.parent]
            del self.history[-count:], self.states[-count:]
        return plain(self, push)

    return {f"{_AUTHORITY}:Authority.push": push}


def no_epoch() -> Patches:
    """After events were lost, numbers go on where the authority's history ends."""
    return {f"{_CLIENT}:first_number": lambda seq, highest: seq + 1}


def granted_in_part() -> Patches:
    """Of a request for several paths only the first is granted."""
    whole = claim_event.apply

    def part(state: Any, event: Any) -> Any:
        return dict(list(whole(state, event).items())[:1])

    return {f"{_CLAIM}:KIND": claim_event.KIND._replace(apply=part)}


def kill_frees_nothing() -> Patches:
    """The claims of a killed agent stay."""
    return {"gitcoord.sessions.events.kill:free": lambda state, agent, freed, changes: None}


def killed_goes_on() -> Patches:
    """A killed agent may act as before."""
    return {f"{_SESSIONS}:dead": lambda *_: None, "gitcoord.sessions.events.start:KILLED": ""}


def replay_differs() -> Patches:
    """An event has an effect that its message does not tell."""
    whole = claim_event.apply
    counted = [0]

    def drifting(state: Any, event: Any) -> Any:
        counted[0] += 1
        return {key: {**record, "at": counted[0]} for key, record in whole(state, event).items() if record}

    return {f"{_CLAIM}:KIND": claim_event.KIND._replace(apply=drifting)}


# --- the queue


def overtakings_not_counted() -> Patches:
    """A request that goes past others does not say so."""
    plain = Queue.grants

    def grants(self: Queue, *given: Any) -> list[Grant]:
        return [Grant(grant.request, []) for grant in plain(self, *given)]

    return {f"{_QUEUE}:Queue.grants": grants}


def plain_claim_not_counted() -> Patches:
    """A claim without a request goes past those who wait, and does not say so."""
    plain = import_module(_GRANTS).overtaken_by

    def overtaken(*given: Any) -> list[int]:
        plain(*given)
        return []

    return {f"{_GRANTS}:overtaken_by": overtaken}


def plain_claim_jumps() -> Patches:
    """A claim without a request takes what is kept for another."""
    return {f"{_GRANTS}:kept_for": lambda *_: None}


def overtaken_for_ever() -> Patches:
    """A request may be overtaken any number of times."""
    return {
        f"{_GRANTS}:kept_for": lambda *_: None,
        f"{_QUEUE}:Queue._is_kept_for": lambda self, request, other: False,
    }


def grant_out_of_order() -> Patches:
    """The last that came is the first that goes."""
    return {f"{_QUEUE}:Queue.rank": lambda self, request: (0, 0, -request.ticket)}


def classes_ignored() -> Patches:
    """Priorities do not count."""
    return {f"{_QUEUE}:Queue.rank": lambda self, request: (request.overtaken < self.limit, 0, request.ticket)}


def overtaken_by_the_overtaken() -> Patches:
    """Requests that may not be overtaken any more overtake each other."""
    plain = Queue._needs
    return {f"{_QUEUE}:Queue._needs": lambda self, request, other: self.at_limit(other) or plain(self, request, other)}


def kept_for_ever() -> Patches:
    """A request is kept waiting for one that waits for it."""
    return {f"{_QUEUE}:Queue._needs": lambda self, request, other: False}


def handed_over_in_silence() -> Patches:
    """Nobody goes for the reason that another was handed something."""
    made: Any = import_module(_GRANTS)

    def freed(before: Any, changes: Any) -> list[str]:
        return [key for key in changes if made._frees(before, key, changes[key])]

    return {f"{_GRANTS}:freed_by": freed}


def grant_takes_away() -> Patches:
    """A grant replaces a stronger claim that its agent holds."""
    plain = Request._claim
    return {
        f"{_REQUESTS}:Request.given": lambda self, state: self.items,
        f"{_REQUESTS}:Request._claim": lambda self, item, own, *said: plain(self, item, None, *said),
    }


def nobody_granted() -> Patches:
    """An event that frees something grants nothing."""
    return {f"{_GRANTS}:grants_after": lambda *_: ()}


def reservation_never_expires() -> Patches:
    """A grant that nobody confirms is kept for ever."""
    plain = import_module(_MODEL).expiry_of_claim

    def expiry(state: Any, world: Any, claim: Any) -> Expiry:
        found = plain(state, world, claim)
        return Expiry(False, "unconfirmed", 1) if found.rule == "unconfirmed" else found

    return {f"{module}:expiry_of_claim": expiry for module in (_MODEL, "gitcoord.claims.events.expire")}


def confirmation_ignored() -> Patches:
    """A grant is taken back although its holder has confirmed it."""
    return {f"{_MODEL}:is_confirmed": lambda world, claim: False}


def ticket_reused() -> Patches:
    """A request that missed its turn keeps its place."""
    plain = import_module(_REQUESTS).returned
    return {f"{_REQUESTS}:returned": lambda claims, ticket: plain(claims, claims[0].reserved["ticket"])}


def wait_outlives_session() -> Patches:
    """An agent whose session is over still waits."""
    return {f"{_REQUESTS}:drop_all": lambda state, agent, changes: None}


def no_reduction_test() -> Patches:
    """Nobody looks for deadlocks."""
    return {f"{module}:require_no_deadlock": lambda *_: None for module in (_TAKE, "gitcoord.claims.events.wait")}


def no_reduction_test_on_handoff() -> Patches:
    """Nobody looks for deadlocks when a waiting agent is given claims by another."""
    take: Any = import_module(_TAKE)
    plain = import_module("gitcoord.handoff.events.accept").decide

    def accept(state: Any, command: Any, world: Any) -> Any:
        looks, take.require_no_deadlock = take.require_no_deadlock, lambda *_: None
        try:
            return plain(state, command, world)
        finally:
            take.require_no_deadlock = looks

    return {"gitcoord.simulation.people:decide_accept": accept}


def halt_ignored() -> Patches:
    """Agents go on during a halt."""
    places = (_TAKE, "gitcoord.claims.events.wait", "gitcoord.handoff.events.accept")
    return {f"{place}:halted": lambda state: None for place in places}


def takeover_by_anybody() -> Patches:
    """An agent takes a live claim away."""
    return {"gitcoord.claims.events.takeover:not_an_approver": lambda *_: None}


def takeover_in_part() -> Patches:
    """A takeover of several units takes one, and the others are free for nobody."""
    return {"gitcoord.claims.events.takeover:_units": lambda *_: 1}


def handed_over_and_kept() -> Patches:
    """The giver of a handoff keeps what it has handed over, where others may read it too."""
    plain = import_module("gitcoord.handoff.events.accept").lose

    def lose(state: Any, event: Any, entries: Any) -> Any:
        return {key: record for key, record in plain(state, event, entries).items() if key[:7] != "claims/"}

    return {"gitcoord.handoff.events.accept:lose": lose, "gitcoord.handoff.events.accept:require_free": lambda *_: None}


def upgrade_waits_its_turn() -> Patches:
    """A holder that asks for more of what it holds goes after those who wait longer."""
    return {f"{_QUEUE}:Queue._is_upgrade": lambda self, request: False}


def second_request_forgotten() -> Patches:
    """An agent that blocks in one request is granted no other."""
    return {
        f"{_QUEUE}:Queue._closes": lambda self, request: any(
            each.blocking and each.ticket != request.ticket for each in self.of(request.agent).values()
        )
    }


def deadlock_without_units() -> Patches:
    """A deadlock is seen wherever somebody waits for a holder that waits, although others could help."""

    def stuck(requests: Any, agent: str) -> dict[int, Any]:
        own = requests.blocking(agent)
        holders = {c.agent for each in own for c in requests.blocking_claims(each)}
        return {r.ticket: r for r in own} if any(requests.blocking(name) for name in holders) else {}

    return {"gitcoord.claims.deadlock:stuck_with": stuck, "gitcoord.claims.deadlock:_in_words": lambda *_: ""}


_conflicts_of = import_module(_MODEL).conflicts_of
MUTANTS: dict[str, Callable[[], Patches]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        two_writers, overlap_unseen, units_pairwise, fencing_off, expiry_without_heartbeat, clocks_trusted, never_expires,
        told_before_swap, blind_write, no_epoch, granted_in_part, kill_frees_nothing, killed_goes_on, replay_differs, overtakings_not_counted, plain_claim_not_counted,
        plain_claim_jumps, overtaken_for_ever, overtaken_by_the_overtaken, kept_for_ever, handed_over_in_silence, grant_takes_away, grant_out_of_order, classes_ignored, nobody_granted, reservation_never_expires,
        confirmation_ignored, ticket_reused, wait_outlives_session, no_reduction_test,
        no_reduction_test_on_handoff, deadlock_without_units, halt_ignored, takeover_by_anybody, takeover_in_part, handed_over_and_kept,
        second_request_forgotten, upgrade_waits_its_turn,
    )
}  # fmt: skip


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """The protocol with this fault; '' is the protocol as it is."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for place, value in (MUTANTS[name]() if name else {}).items():
            module, _, path = place.partition(":")
            *owners, last = path.split(".")
            owner = import_module(module)
            for part in owners:
                owner = getattr(owner, part)
            before.append((owner, last, getattr(owner, last)))
            setattr(owner, last, value)
        yield
    finally:
        for owner, last, value in reversed(before):
            setattr(owner, last, value)
