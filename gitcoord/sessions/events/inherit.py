"""inherit: claims that an ended session left behind pass to another session, with new tokens and the age that they had.

Only a session that ended by itself leaves something: one without heartbeats may come back, and work of a killed agent is a
person's to look at. Which work tree has the files is known on its machine alone, so the client chooses the claims, and the rule
says which of them may pass.
"""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import raise_if, refused
from gitcoord.base.names import PATH, printable, shown
from gitcoord.claims.events.expire import lose
from gitcoord.claims.model import Claim, Item, file_of, own_claim, own_claims, prefetch_around
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, Touched, session_hooks
from gitcoord.ledger.sessions import ENDED, Actor, admit, agent_record, dead_above, next_heartbeat
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import as_started, halted, open_session, require_open
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {
    "session": int,
    "claims": [{"space": str, "path": str, "agent": str, "token": int}],
}


class Inherit(NamedTuple):
    """The command. `claims`: (path, agent) of each claim that is to pass."""

    actor: Actor
    claims: tuple[tuple[str, str], ...]


def decide(state: State, command: Inherit, world: World) -> Decision:
    from gitcoord.claims.take import require_no_deadlock

    raise_if(halted(state))
    actor = command.actor
    admitted = admit(state, actor, world)
    found = {
        (claim.path, claim.agent): claim
        for holder in dict.fromkeys(agent for _, agent in command.claims)
        for claim in inheritable(state, world, actor, holder)
    }
    missing = [pair for pair in command.claims if pair not in found]
    if missing or not command.claims:
        what = f"what {missing[0][1]} left in '{printable(missing[0][0])}'" if missing else "nothing"
        raise refused("inherit", f"'{actor.agent}' cannot go on with {what}", "git claim list")
    chain = Chain(state, actor.agent, world)
    open_session(chain, actor, world, admitted)
    claims = [found[pair] for pair in command.claims]
    rows = [{"space": c.space, "path": c.path, "agent": c.agent, "token": c.token} for c in claims]
    chain.add("inherit", {"session": admitted.session, "claims": rows})
    require_no_deadlock(chain.state, world, actor.agent)
    beat = next_heartbeat(
        world.heartbeat(actor.agent), actor.agent, admitted.session, world, min(claim.ttl for claim in claims)
    )
    held = own_claims(chain.state, [claim.item for claim in claims], actor.agent)
    result: Record = {
        "claims": [claim.to_json(claim.ttl) for claim in held],
        "inherited": [{"path": claim.path, "from": claim.agent} for claim in claims],
    }
    return Decision(chain.events, [beat] if beat else [], result)


def inheritable(state: State, world: World, actor: Actor, holder: str) -> list[Claim]:
    """The claims of an ended session that this actor may go on with: of the same role, or of its own subagent."""
    record = agent_record(state, holder)
    if record is None or record.state != ENDED or holder == actor.agent:
        return []
    if dead_above(state, world, Actor(holder, parent=record.parent)) is not None:
        return []
    if not holder.startswith(f"{actor.agent}.") and not _same_role(state, world, actor, holder):
        return []
    return _left(state, holder, record.kept)


def _same_role(state: State, world: World, actor: Actor, holder: str) -> bool:
    from gitcoord.policy.roles import role_of

    policy = world.policy()
    return role_of(state, policy, holder) == role_of(state, policy, actor.agent)


def _left(state: State, holder: str, kept: list[list[str]]) -> list[Claim]:
    """Claims on paths that outlived the holder's session, but for those of an open handoff or of another's task."""
    items = [Item(*pair) for pair in kept if pair[0] == PATH]
    prefetch_around(state, items)
    claims = own_claims(state, items, holder)
    waiting = {key for hooks in session_hooks() for key in hooks.outlives(state, holder)} if claims else set()
    return [c for c in claims if (c.space, c.path) not in waiting and not _is_for_another(state, c)]


def _is_for_another(state: State, claim: Claim) -> bool:
    """Return whether it was claimed for a task that another agent has by now."""
    from gitcoord.tasks.model import task_record

    task = task_record(state, claim.task) if claim.task else None
    return task is not None and task.owner not in ("", claim.agent)


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    actor = as_started(events, actor)
    pairs = tuple((row["path"], row["agent"]) for row in events[-1].body["claims"])
    return [Recalled(decide, Inherit(actor, pairs))]


def subject(event: Event) -> str:
    rows = event.body["claims"]
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"inherit {shown(rows[0]['path'], rows[0]['space'])}{more} of {rows[0]['agent']} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    rows = event.body["claims"]
    require_open(state, event.agent, event.body["session"])
    if not rows:
        raise Illegal(f"event {event.seq} passes nothing on")
    changes = lose(state, event, rows)
    for row in rows:
        record = agent_record(state, row["agent"])
        item = Item(row["space"], row["path"])
        claim = own_claim(state, item, row["agent"])
        if (
            record is None
            or record.state != ENDED
            or claim is None
            or claim not in _left(state, row["agent"], record.kept)
        ):
            raise Illegal(f"event {event.seq} passes on what '{row['agent']}' did not leave behind")
        file = file_of(state, item, event.agent)
        if own_claim(state, item, event.agent) is None:
            # The age stays: who waits for the path has waited since then.
            new = claim._replace(agent=event.agent, session=event.body["session"], token=event.seq, nonce=event.nonce)
            changes[file] = new.checked(file).to_record()
    if state.names("waits"):
        from gitcoord.claims.requests import consume  # only where somebody waits

        consume(state, event.agent, changes)
    return changes


def refs(state: State, event: Event) -> dict[str, bool]:
    found = {}
    for row in event.body["claims"]:
        item = Item(row["space"], row["path"])
        found["refs/" + file_of(state, item, row["agent"])] = False
        if own_claim(state, item, event.agent) is None:
            found["refs/" + file_of(state, item, event.agent)] = True
    return found


def touches(event: Event) -> Touched:
    return Touched(paths=tuple(row["path"] for row in event.body["claims"]))


KIND = Kind(FIELDS, subject, apply, recall, refs, touches=touches, agents=("claims",))
