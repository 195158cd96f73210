"""role: a person gives an agent a role, or takes it away."""

from __future__ import annotations

from gitcoord.base.errors import raise_if
from gitcoord.ledger.event import Chain, Decision, Event
from gitcoord.ledger.kinds import Kind, recall_from_body, touches_target
from gitcoord.ledger.sessions import Actor, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import GivenRole, given_role, not_an_approver, role_file
from gitcoord.startup.namedtuple import NamedTuple

FIELDS = {"target": str, "role": str}


class SetRole(NamedTuple):
    """The command. The role '' removes the given role, so that the policy's default applies again."""

    actor: Actor
    target: str
    role: str


def decide(state: State, command: SetRole, world: World) -> Decision:
    refusal = dead(state, world, command.actor.agent)
    raise_if(refusal or not_an_approver(command.actor, world, "give roles", "ask one of them"))
    given = given_role(state, command.target)
    result = {"agent": command.target, "role": command.role}
    if (given.role if given is not None else "") == command.role:
        return Decision([], [], {**result, "changed": False})
    chain = Chain(state, command.actor.agent, world)
    chain.add("role", {"target": command.target, "role": command.role})
    return Decision(chain.events, [], {**result, "changed": True})


def subject(event: Event) -> str:
    target, role = event.body["target"], event.body["role"]
    return f"role {role} for {target} by {event.agent}" if role else f"no role for {target}"


def apply(state: State, event: Event) -> Changes:
    target, role = event.body["target"], event.body["role"]
    if not role:
        return {role_file(target): None}
    return {role_file(target): GivenRole(target, role, event.agent, event.seq).to_record()}


KIND = Kind(FIELDS, subject, apply, recall_from_body(decide, SetRole), touches=touches_target, agents=("target",))
