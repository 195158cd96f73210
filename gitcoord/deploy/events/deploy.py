"""deploy: a commit was deployed to a target, or it was tried; the deployer's claim on the target ends with the record.

What happened is recorded whatever became of the claim meanwhile: the surface has changed, and others must know.
"""

from __future__ import annotations

from gitcoord.base.codec import VERSION, check
from gitcoord.base.errors import Refusal, UsageError
from gitcoord.base.names import encode, is_oid, printable
from gitcoord.claims.events.release import add_release
from gitcoord.claims.model import Item, own_claim
from gitcoord.deploy.targets import check_target, resource_of
from gitcoord.ledger.event import Chain, Decision, Illegal
from gitcoord.ledger.kinds import Kind, attempt
from gitcoord.ledger.sessions import KILLED, Actor, agent_record, dead
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.codec import Record, Shape
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.kinds import Attempt
    from gitcoord.ledger.state import Changes, State, View

FIELDS = {"target": str, "commit": str, "outcome": str, "code": int, "verify_code": int, "token": int}
OK, FAILED, UNVERIFIED, INTERRUPTED = "ok", "failed", "unverified", "interrupted"
OUTCOMES = (OK, FAILED, UNVERIFIED, INTERRUPTED)
NOT_RUN = -1  # the exit code of a verification that did not take place

_ENTRY: dict[str, Shape] = {
    "seq": int, "at": int, "agent": str, "commit": str, "outcome": str, "code": int, "verify_code": int, "token": int,
}  # fmt: skip
_RECORD: dict[str, Shape] = {"target": str, "last": _ENTRY, "good": [_ENTRY]}


class Deploy(NamedTuple):
    """The command: what came of a deploy that was made under the claim with this token."""

    actor: Actor
    target: str
    commit: str
    outcome: str
    code: int
    verify_code: int
    token: int
    nonce: str = ""
    refused: tuple[Record, ...] = ()


def decide(state: State, command: Deploy, view: View) -> Decision | Refusal:
    """Allowed while halted, as a release is. Only the killed have no say."""
    agent = command.actor.agent
    refusal = dead(state, view, agent)
    if refusal is not None:
        return refusal
    if agent_record(state, agent) is None:
        return Refusal("not-held", f"'{agent}' never claimed '@{resource_of(command.target)}'")
    chain = Chain(state, agent, view.wall, command.nonce, command.refused)
    event = chain.add("deploy", {key: getattr(command, key) for key in FIELDS})
    own = own_claim(state, Item("resource", resource_of(command.target)), agent)
    if own is not None:
        add_release(chain, view, [own], "")
    held = own is not None and own["token"] == command.token
    record = deploy_record(chain.state, command.target)
    good = record is not None and bool(record["good"]) and record["good"][0]["seq"] == event.seq
    return Decision(chain.events, [], {"seq": event.seq, "held": held, "good": good})


def deploy_file(target: str) -> str:
    return f"deploys/{encode(target)}"


def deploy_record(state: State, target: str) -> Record | None:
    """The last deploy of a target, and the last successful one."""
    file = deploy_file(target)
    record = state.get(file)
    return None if record is None else check(record, _RECORD, file)


def all_deploys(state: State) -> list[Record]:
    return [check(record, _RECORD, file) for file, record in sorted(state.below("deploys").items())]


def succeeded(body: Record) -> bool:
    """The command did its work, and no verification says otherwise."""
    return body["outcome"] in (OK, UNVERIFIED) and body["code"] == 0 and body["verify_code"] in (0, NOT_RUN)


def recall(state: State, events: list[Event], actor: Actor) -> list[Attempt]:
    event, body = events[0], events[0].body
    return [
        attempt(decide, Deploy(actor, **{key: body[key] for key in FIELDS}, nonce=event.nonce, refused=event.refused))
    ]


def subject(event: Event) -> str:
    body = event.body
    outcome = "" if body["outcome"] == OK else f" ({body['outcome']})"
    return f"deploy {body['commit'][:12]} to {body['target']} by {event.agent}{outcome}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    target = _sound(event)
    record = agent_record(state, event.agent)
    if record is None or record["state"] == KILLED:
        raise Illegal(f"event {event.seq} is a deploy by '{event.agent}', who may not")
    before = deploy_record(state, target)
    entry = {"seq": event.seq, "at": event.at, "agent": event.agent, **{k: body[k] for k in FIELDS if k != "target"}}
    good = before["good"] if before is not None else []
    if succeeded(body) and not (good and good[0]["token"] > body["token"]):
        good = [entry]  # one that woke up late, under an older token, does not count as the newest
    return {deploy_file(target): {"v": VERSION, "target": target, "last": entry, "good": good}}


def _sound(event: Event) -> str:
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


KIND = Kind(FIELDS, subject, apply, recall, leads=True)
