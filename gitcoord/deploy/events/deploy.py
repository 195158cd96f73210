"""deploy: the outcome of a deploy of a commit to a target; the record also releases the claim on the target.

It is recorded even if the claim was lost meanwhile, since the target has changed.
"""

from __future__ import annotations

from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.names import is_oid, printable
from gitcoord.claims.events.release import add_release
from gitcoord.claims.model import Item, own_claim
from gitcoord.deploy.model import NOT_RUN, OK, OUTCOMES, Deployed, Deploys, deploy_file, deploys_of
from gitcoord.deploy.targets import check_target, resource_of
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled
from gitcoord.ledger.sessions import KILLED, Actor, agent_record, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"target": str, "commit": str, "outcome": str, "code": int, "verify_code": int, "token": int}


class Deploy(NamedTuple):
    """The command: the outcome of a deploy under the claim with this token."""

    actor: Actor
    target: str
    commit: str
    outcome: str
    code: int
    verify_code: int
    token: int


def decide(state: State, command: Deploy, world: World) -> Decision:
    """Allowed while halted, as a release is; killed agents are refused."""
    agent = command.actor.agent
    raise_if(dead(state, world, agent))
    if agent_record(state, agent) is None:
        raise refused("not-held", f"'{agent}' never claimed '@{resource_of(command.target)}'")
    chain = Chain(state, agent, world)
    event = chain.add("deploy", {key: getattr(command, key) for key in FIELDS})
    own = own_claim(state, Item("resource", resource_of(command.target)), agent)
    if own is not None:
        add_release(chain, world, [own], "")
    held = own is not None and own.token == command.token
    record = deploys_of(chain.state, command.target)
    good = record is not None and record.good is not None and record.good.seq == event.seq
    return Decision(chain.events, [], {"seq": event.seq, "held": held, "good": good})


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    body = events[0].body
    return [Recalled(decide, Deploy(actor, **{key: body[key] for key in FIELDS}))]


def subject(event: Event) -> str:
    body = event.body
    outcome = "" if body["outcome"] == OK else f" ({body['outcome']})"
    return f"deploy {body['commit'][:12]} to {body['target']} by {event.agent}{outcome}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    target = _valid_target(event)
    record = agent_record(state, event.agent)
    if record is None or record.state == KILLED:
        raise Illegal(f"event {event.seq} is a deploy by '{event.agent}', who may not")
    before = deploys_of(state, target)
    last = Deployed(event.seq, event.at, event.agent, **{key: body[key] for key in FIELDS if key != "target"})
    good = before.good if before is not None else None
    if last.succeeded and not (good is not None and good.token > last.token):
        good = last  # a deploy that ended late, under an older token, is not the newest
    return {deploy_file(target): Deploys(target, last, good).to_record()}


def _valid_target(event: Event) -> str:
    body = event.body
    try:
        target = check_target(body["target"])
    except UsageError as error:
        raise Illegal(f"event {event.seq}: {error.message}") from None
    if body["outcome"] not in OUTCOMES or not is_oid(body["commit"]):
        raise Illegal(f"event {event.seq} deploys '{printable(body['commit'][:64])}' with no known outcome")
    if not 1 <= body["token"] < event.seq or min(body["code"], body["verify_code"]) < NOT_RUN:
        raise Illegal(f"event {event.seq} has a token or an exit code that cannot be")
    return target


def commits(event: Event) -> list[str]:
    return [event.body["commit"]]


KIND = Kind(FIELDS, subject, apply, recall, commits=commits, leads=True)
