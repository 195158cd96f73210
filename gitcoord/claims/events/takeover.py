"""takeover: a person takes a live claim away, naming its token and a reason. Agents cannot."""

from __future__ import annotations

from gitcoord.base.errors import Refusal, Refused, UsageError, raise_if, refused
from gitcoord.base.names import printable, shown
from gitcoord.claims.events.expire import lose
from gitcoord.claims.model import Claim, Item, expiry_of_claim, file_of, key_of, overlapping, own_claim
from gitcoord.claims.requests import capacity_for
from gitcoord.claims.take import Take
from gitcoord.claims.take import decide as decide_take
from gitcoord.ledger.event import Chain, Decision, Event
from gitcoord.ledger.kinds import Kind, Recalled, Touched
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import not_an_approver
from gitcoord.sessions.admission import as_started, barred
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"space": str, "path": str, "holder": str, "token": int, "reason": str}


class Takeover(NamedTuple):
    actor: Actor
    item: Item
    token: int
    reason: str
    base: str = ""


def decide(state: State, command: Takeover, world: World) -> Decision:
    if not command.reason:
        raise UsageError(
            "a takeover needs a reason", hints=("git claim takeover <path> --token n --force --reason '...'",)
        )
    raise_if(barred(state, command.actor, world))
    instead = "ask the holder to release it, or wait: git claim --wait 10m <path>"
    raise_if(not_an_approver(command.actor, world, "take a live claim away", instead))
    what = shown(command.item.name, command.item.space)
    rivals = [c for c in overlapping(state, command.item) if c.agent != command.actor.agent]
    claim = next(
        (c for c in rivals if c.token == command.token and key_of(state, c.item) == key_of(state, command.item)),
        None,
    )
    if claim is None:
        held = tuple(c.to_json(None) for c in rivals)
        raise Refused(
            Refusal(
                "token", f"no claim on '{printable(what)}' has token {command.token}", held, ("git claim show <path>",)
            )
        )
    if expiry_of_claim(state, world, claim).expired:
        raise refused(
            "expired", f"the claim on '{printable(what)}' has expired: claim it", f"git claim {printable(what)}"
        )
    chain = Chain(state, command.actor.agent, world)
    row = {"space": claim.space, "path": claim.path, "holder": claim.agent, "token": claim.token}
    chain.grants = False
    chain.add("takeover", {**row, "reason": command.reason})
    take = Take(
        command.actor,
        (command.item,),
        claim.mode,
        reason=command.reason,
        base=command.base,
        units=_units(state, command, world, claim),
        part=True,
        ahead=True,
    )
    granted = decide_take(chain.state, take, world)
    chain.follow([event._replace(part=event.part + 1) for event in granted.events[:-1]])
    chain.grants = True
    for event in granted.events[-1:]:
        chain.add(event.kind, event.body, past=event.past)  # it also grants what is free by the takeover
    return Decision(chain.events, granted.beats, {**granted.result, "taken_from": claim.to_json(None)})


def _units(state: State, command: Takeover, world: World, claim: Claim) -> int:
    """All units of the claim, beside those that the person has: what were left over would be free without a grant."""
    own = own_claim(state, command.item, command.actor.agent)
    units = claim.units + (own.units if own is not None else 0)
    return min(units, capacity_for(world, command.item))


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    body = events[0].body
    base = events[-1].body["bases"][-1] if events[-1].kind == "claim" else ""
    item = Item(*events[-1].body["items"][0]) if events[-1].kind == "claim" else Item(body["space"], body["path"])
    actor = as_started(events, actor)
    return [Recalled(decide, Takeover(actor, item, body["token"], body["reason"], base))]


def subject(event: Event) -> str:
    body = event.body
    return f"takeover {shown(body['path'], body['space'])} from {body['holder']} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    entry = {"space": body["space"], "path": body["path"], "agent": body["holder"], "token": body["token"]}
    return lose(state, event, [entry])


def refs(state: State, event: Event) -> dict[str, bool]:
    item = Item(event.body["space"], event.body["path"])
    return {"refs/" + file_of(state, item, event.body["holder"]): False}


def touches(event: Event) -> Touched:
    return Touched(paths=(event.body["path"],))


KIND = Kind(FIELDS, subject, apply, recall, refs, touches=touches, agents=("holder",), leads=True)
