"""Subagents under their parent's claims: they may write there, so they need no claim of their own.

A parent often waits until its subagent has ended. If that waited for its parent's claim, both would stand still.
"""

from __future__ import annotations

from gitcoord.base.errors import raise_if
from gitcoord.base.names import PATH, shown
from gitcoord.claims.model import WRITE, Claim, Item, covers_item, expiry_of_claim, is_turn_item, overlapping
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import admit
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import halted
from gitcoord.startup.annotations import Any, Callable


def decide_below(
    state: State, command: Any, world: World, decide: Callable[[State, Any, World], Decision]
) -> Decision | None:
    """The answer to a subagent's Take or Wait: `decide` is asked for the paths that no claim of an agent above it covers, and those
    claims are told as `covered`. None where nothing is covered.

    Its own earlier requests for what is covered end: it does not wait for that any more."""
    if any(map(is_turn_item, command.items)) or getattr(command, "nonce", None):
        return None  # a landing counts what it holds, and a nonce stands for just these items
    agent: str = command.actor.agent
    found = {item: covering_claim(state, world, item, agent) for item in command.items if item.space == PATH}
    covering = {item: claim for item, claim in found.items() if claim is not None}
    if not covering:
        return None
    rest = tuple(item for item in command.items if item not in covering)
    answer = decide(state, command._replace(items=rest), world) if rest else _all(state, command, world, covering)
    rows = [
        {"path": shown(item.name, item.space), "agent": claim.agent, "held": shown(claim.path, claim.space)}
        for item, claim in covering.items()
    ]
    return answer._replace(result={**answer.result, "covered": rows})


def _all(state: State, command: Any, world: World, covering: dict[Item, Claim]) -> Decision:
    from gitcoord.claims.events.leave import Leave
    from gitcoord.claims.events.leave import decide as decide_leave
    from gitcoord.policy.roles import may_not_claim

    raise_if(halted(state))
    admit(state, command.actor, world)
    if command.mode == WRITE:
        raise_if(may_not_claim(state, command.actor, world, tuple(item.name for item in covering)))
    left = decide_leave(state, Leave(command.actor, tuple(covering)), world)
    token = max(claim.token for claim in covering.values())
    return left._replace(result={"token": token, "claims": [], "renewed": True})


def covering_claim(state: State, world: World, item: Item, agent: str) -> Claim | None:
    """A live write claim on all of this item by an agent whose subagent this is, by its name."""
    for claim in overlapping(state, item):
        if claim.mode == WRITE and agent.startswith(f"{claim.agent}.") and covers_item(state, claim, item):
            return None if expiry_of_claim(state, world, claim).expired else claim
    return None
