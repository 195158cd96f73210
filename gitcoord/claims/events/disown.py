"""disown: the lineage of a path is cleared, because the released work was abandoned or rewritten."""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.errors import UsageError, raise_if, refused
from gitcoord.base.names import printable
from gitcoord.claims.released import lineage_file, released_below
from gitcoord.ledger.event import Chain, Decision, Event
from gitcoord.ledger.kinds import Kind, recall_from_body, subject
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import barred
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {"path": str, "reason": str, "entries": [(str, int)]}


class Disown(NamedTuple):
    actor: Actor
    path: str
    reason: str


def decide(state: State, command: Disown, world: World) -> Decision:
    if not command.reason:
        raise UsageError("disowning needs a reason", hints=("git claim disown <path> --reason '...'",))
    raise_if(barred(state, command.actor, world))
    entries = [[record.path, record.seq] for record in released_below(state, command.path)]
    result: dict[str, object] = {"path": command.path, "disowned": entries}
    if not entries:
        raise refused("no-lineage", f"no released work is on record below '{printable(command.path)}'")
    chain = Chain(state, command.actor.agent, world)
    chain.add("disown", {"path": command.path, "reason": command.reason, "entries": entries})
    return Decision(chain.events, [], result)


def apply(state: State, event: Event) -> Changes:
    return {lineage_file(state, path, seq): None for path, seq in event.body["entries"]}


KIND = Kind(FIELDS, subject("disown {path} by {agent}"), apply, recall_from_body(decide, Disown))
