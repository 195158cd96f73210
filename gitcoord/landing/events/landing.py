"""landing: trunk is about to move from `old` to `new`, in this agent's turn; what `land` will release and complete is on record."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.names import is_oid, printable
from gitcoord.claims.model import (
    WRITE,
    Claim,
    Item,
    all_claims,
    covers_item,
    own_claim,
    prefetch_own,
    turn_item,
    turn_times,
)
from gitcoord.claims.released import landed
from gitcoord.claims.take import Take
from gitcoord.claims.take import decide as decide_take
from gitcoord.landing.events.land import add_land
from gitcoord.landing.model import (
    FACTS,
    LEASE,
    MAX_CHECKS,
    WAYS,
    OpenLanding,
    is_lane_item,
    landing_file,
    lands_before,
    lane_item,
    open_landings,
    own_turn,
)
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.format import LANDINGS, format_record, with_minor
from gitcoord.ledger.kinds import Kind, Recalled, touches_nothing
from gitcoord.ledger.sessions import Actor, admit
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import may_not_land
from gitcoord.sessions.admission import actor_heartbeats, as_started, halted, require_open
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import NEEDS_HUMAN, not_the_owner, task_record, the_task

FIELDS = {"session": int, **FACTS}
_SAID = ("trunk", "branch", "tip", "old", "new", "how", "checks", "task")


class Begin(NamedTuple):
    """The command. `items`: (space, path, agent) of the claims to release; none: it is checked first, in a lane, and has its place from now on.
    `together`: trunk moves in the same transaction."""

    actor: Actor
    trunk: str
    branch: str
    tip: str
    old: str
    new: str
    how: str
    checks: list[Record]
    task: str
    items: tuple[tuple[str, str, str], ...]
    together: bool = False
    takes: bool = False  # the turn is taken in the same chain, where it is free


def decide(state: State, command: Begin, world: World) -> Decision:
    """On record, in the agent's turn. With `together` it has landed in the same chain."""
    raise_if(halted(state))
    raise_if(may_not_land(state, command.actor, world.restrictions()))
    agent = command.actor.agent
    session = admit(state, command.actor, world).session
    chain = Chain(state, agent, world)
    beats = actor_heartbeats(state, command.actor, world)
    if command.takes and own_turn(state, command.trunk, agent) is None:
        taken = take_turn(state, command, world)
        if taken.again:
            return taken
        chain.follow(taken.events)
        state, beats = chain.state, taken.beats
    if own_turn(state, command.trunk, agent) is None:
        raise refused("turn-over", f"the turn of '{agent}' to land is over: nothing has landed", "git coord land")
    if command.together or command.items:
        _require_first(state, command)
    else:
        _require_lanes(state, command, world)
    if command.task:
        require_task(state, command.task, agent)
    body = {
        "session": session,
        **{key: getattr(command, key) for key in _SAID},
        "released": _rows(state, command, world),
    }
    event = chain.add("landing", body)
    if command.together:
        add_land(chain, world, agent)
    return Decision(chain.events, beats, {"seq": event.seq})


def require_task(state: State, name: str, agent: str) -> None:
    """Refused unless this agent may complete the task by landing."""
    task = the_task(state, name)
    raise_if(not_the_owner(state, task, agent))
    if task.state == NEEDS_HUMAN:
        raise refused(
            "needs-human",
            f"{task.id} waits for a person, who decides how it goes on",
            f"ask a person; why it waits: git coord task show {task.id}",
        )


def _require_first(state: State, command: Begin) -> None:
    """Refused while landings before this one are under way in other lanes: trunk moves in their order."""
    before = lands_before(state, command.actor.agent)
    if before:
        names = ", ".join(f"{landing.branch} of {landing.agent}" for landing in before[:3])
        raise refused("not-first", f"{printable(names)} lands first: nothing has landed", "git coord land --list")


def _require_lanes(state: State, command: Begin, world: World) -> None:
    """Refused unless this landing, which goes on record before its check, has claimed all that it changes for its lane. Two claims on one path cannot
    be, so landings that meet are never in lanes at the same time."""
    agent = command.actor.agent
    if not world.on_trunk([command.old]):
        raise refused(
            "not-landed",
            f"{command.trunk} does not contain {command.old[:12]}, on which this would land",
            "begin again: git coord land",
        )
    held = [claim for claim in all_claims(state, agent) if is_lane_item(claim.item)]
    for path in world.touched(command.old, command.new):
        if not any(covers_item(state, claim, lane_item(path)) for claim in held):
            raise refused("lane", f"'{printable(path)}' is not claimed for the lane of '{agent}'", "git coord land")


def take_turn(state: State, command: Begin, world: World) -> Decision:
    """The turn without paths, as a plain claim: Refused where somebody has it or waits for it."""
    reason = f"lands {command.branch}"[:200]
    take = Take(command.actor, (turn_item(command.trunk),), WRITE, *turn_times(LEASE), reason)
    return decide_take(state, take, world)


def _rows(state: State, command: Begin, world: World) -> list[Record]:
    """The claims to release, each with the files that this landing changes below it."""
    for agent in {agent for _, _, agent in command.items}:
        prefetch_own(state, [Item(space, path) for space, path, holder in command.items if holder == agent], agent)
    claims: list[Claim] = []
    others = {holder for _, _, holder in command.items if not is_own(holder, command.actor.agent)}
    strangers = others.difference(world.agents_of(command.old, command.new) if others else ())
    if strangers:
        raise UsageError(f"no commit that lands is by '{min(strangers)}': a landing releases claims on its own work")
    for space, path, holder in command.items:
        claim = own_claim(state, Item(space, path), holder)
        if claim is not None:  # else it was lost meanwhile
            claims.append(claim)
    paths = [claim.path for claim in claims if claim.space == "path" and claim.mode == WRITE]
    files = world.changed(command.old, command.new, paths) if paths and command.old != command.new else {}
    found = {path: (command.old, rows) for path, rows in files.items() if rows}
    gone = landed(state, world, found, dict.fromkeys(found, command.new))
    return [
        {
            "space": claim.space, "path": claim.path, "agent": claim.agent, "token": claim.token,
            "commit": command.new if claim.space == "path" and claim.path in found else "",
            "base": command.old if claim.space == "path" and claim.path in found else claim.base,
            "files": found[claim.path][1] if claim.space == "path" and claim.path in found else [],
            "landed": gone[claim.path] if claim.space == "path" and claim.path in found else [],
        }
        for claim in claims
    ]  # fmt: skip


def is_own(holder: str, agent: str) -> bool:
    """Is the holder this agent, or a subagent of it?"""
    return holder == agent or holder.startswith(agent + ".")


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    first = events[0]
    body = next(event.body for event in events if event.kind == "landing")
    items = tuple((row["space"], row["path"], row["agent"]) for row in body["released"])
    begin = Begin(as_started(events, actor), **{key: body[key] for key in _SAID}, items=items)
    begin = begin._replace(together=events[-1].kind == "land", takes=first.kind != "landing")
    return [Recalled(decide, begin)]


def subject(event: Event) -> str:
    return f"landing of {event.body['branch']} on {event.body['trunk']} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    body = event.body
    require_open(state, event.agent, body["session"])
    if body["trunk"] != format_record(state).sync or own_turn(state, body["trunk"], event.agent) is None:
        raise Illegal(f"event {event.seq} lands on '{printable(body['trunk'])}' without having the turn")
    if not all(is_oid(body[key]) for key in ("tip", "old", "new")) or body["how"] not in WAYS:
        raise Illegal(f"event {event.seq} lands what is no commit, or in a way that does not exist")
    if len(body["checks"]) > MAX_CHECKS or any(row["seconds"] < 0 for row in body["checks"]):
        raise Illegal(f"event {event.seq} has checks that cannot be")
    for row in body["released"]:
        claim = own_claim(state, Item(row["space"], row["path"]), row["agent"])
        if claim is None or claim.token != row["token"]:
            raise Illegal(
                f"event {event.seq} will release '{printable(row['path'])}', which {row['agent']} does not hold"
            )
    task = task_record(state, body["task"]) if body["task"] else None
    if body["task"] and (task is None or not_the_owner(state, task, event.agent) is not None):
        raise Illegal(f"event {event.seq} completes {printable(body['task'])}, which is not {event.agent}'s")
    changes: Changes = with_minor(state, LANDINGS)
    for other in open_landings(state):
        if own_turn(state, other.trunk, other.agent) is None:
            changes[landing_file(other.agent)] = None  # its turn is over, and nobody has found it on trunk
    record = OpenLanding(event.agent, event.seq, event.at, **{key: body[key] for key in FACTS})
    changes[landing_file(event.agent)] = record.to_record()
    return changes


def commits(event: Event) -> list[str]:
    return [event.body["new"]]


KIND = Kind(FIELDS, subject, apply, recall, touches=touches_nothing, commits=commits, agents=("released",), leads=True)
