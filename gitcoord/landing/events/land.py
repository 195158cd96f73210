"""land: trunk has what a `landing` put on record. Its claims are released, its task is completed, the record ends."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import Refused, UsageError, refused
from gitcoord.claims.events.release import given_back
from gitcoord.claims.model import Item, file_of, own_claim
from gitcoord.landing.model import OpenLanding, landing_file, open_landing
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, kind_of, subject
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import actor_heartbeats
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.contracts import checked_record
from gitcoord.tasks.model import DONE, NEEDS_HUMAN, REVIEW, changed, not_the_owner, task_record
from gitcoord.tasks.model import given_back as task_given_back

_SAID = ("trunk", "branch", "old", "new", "task")
FIELDS: dict[str, Shape] = {
    "owner": str, "landing": int, **dict.fromkeys(_SAID, str), "released": [{"space": str, "path": str, "agent": str}],
}  # fmt: skip


class Land(NamedTuple):
    """The command: finish the landing of `owner`, whoever finds it on trunk."""

    actor: Actor
    owner: str
    landing: int


def decide(state: State, command: Land, world: World) -> Decision:
    """Allowed while halted, as a release is: trunk has moved already. Harmless to repeat."""
    refusal = dead(state, world, command.actor.agent)
    if refusal is not None:
        raise Refused(refusal)
    found = open_landing(state, command.owner)
    if found is None or found.seq != command.landing:
        return Decision([], [], {"landed": False})
    chain = Chain(state, command.actor.agent, world)
    add_land(chain, world, command.owner)
    return Decision(chain.events, actor_heartbeats(state, command.actor, world), {"landed": True})


def add_land(chain: Chain, world: World, owner: str) -> None:
    """Add the event that ends the landing of this agent; Refused where trunk does not contain it."""
    found = open_landing(chain.state, owner)
    assert found is not None
    if not world.on_trunk([found.new]):
        raise refused(
            "not-landed",
            f"{found.trunk} does not contain {found.new[:12]}: it has not landed",
            "begin again: git coord land",
        )
    held = [{key: row[key] for key in ("space", "path", "agent")} for row in _held(chain.state, found)]
    said = {key: getattr(found, key) for key in _SAID}
    chain.add("land", {"owner": owner, "landing": found.seq, **said, "released": held})


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    if any(event.kind == "landing" for event in events):
        return kind_of("landing").recall(state, events, actor)  # turn, landing and land in one step
    body = events[0].body
    return [Recalled(decide, Land(actor, body["owner"], body["landing"]))]


def _found(state: State, event: Event) -> OpenLanding:
    body = event.body
    found = open_landing(state, body["owner"])
    if found is None or found.seq != body["landing"] or any(getattr(found, key) != body[key] for key in _SAID):
        raise Illegal(f"event {event.seq} ends a landing of '{body['owner']}' that is not under way")
    return found


def _held(state: State, found: OpenLanding) -> list[Record]:
    """The rows of the claims that are still held as they were: others may have been lost meanwhile."""
    rows = []
    for row in found.released:
        claim = own_claim(state, Item(row["space"], row["path"]), row["agent"])
        if claim is not None and claim.token == row["token"]:
            rows.append(row)
    return rows


def apply(state: State, event: Event) -> Changes:
    found = _found(state, event)
    changes: Changes = {landing_file(found.agent): None}
    rows = _held(state, found)
    if event.body["released"] != [{key: row[key] for key in ("space", "path", "agent")} for row in rows]:
        raise Illegal(f"event {event.seq} releases other claims than the landing of '{found.agent}'")
    for agent in dict.fromkeys(row["agent"] for row in rows):
        changes.update(given_back(state, event.seq, agent, [row for row in rows if row["agent"] == agent]))
    task = task_record(state, found.task) if found.task else None
    # A task that was lost, given back or stopped by a person meanwhile stays as it is.
    if task is not None and not_the_owner(state, task, found.agent) is None and task.state != NEEDS_HUMAN:
        said = {"summary": f"landed {found.branch} on {found.trunk}", "not_done": [], "commits": [found.new]}
        try:
            result = checked_record("complete", said)
        except UsageError as error:
            raise Illegal(f"event {event.seq}: {error.message}") from None
        over = REVIEW if task.review else DONE
        done = task_given_back(task, event.at)._replace(
            state=over, result={**result, "agent": found.agent, "seq": event.seq}
        )
        changes.update(changed(state, task, done))
    return changes


def refs(state: State, event: Event) -> dict[str, bool]:
    rows = event.body["released"]
    return {"refs/" + file_of(state, Item(row["space"], row["path"]), row["agent"]): False for row in rows}


def commits(event: Event) -> list[str]:
    return [event.body["new"]]


KIND = Kind(
    FIELDS,
    subject("land {branch} on {trunk} by {owner}"),
    apply,
    recall,
    refs,
    commits=commits,
    agents=("owner", "released"),
)
