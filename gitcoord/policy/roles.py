"""Roles: where an agent may write, and who may approve."""

from __future__ import annotations

from gitcoord.base.codec import Record, record_of, values_of
from gitcoord.base.errors import Refusal
from gitcoord.base.names import covers, printable, shell_word
from gitcoord.claims.model import Item, key_of
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.policy.model import ENFORCE, Attributes, Policy, Role
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

_ROLE = {"agent": str, "role": str, "by": str, "seq": int}


class GivenRole(NamedTuple):
    """The role that a person gave an agent."""

    agent: str
    role: str
    by: str
    seq: int

    def to_record(self) -> Record:
        return record_of(_ROLE, self)


def role_file(agent: str) -> str:
    return f"roles/{agent}"


def given_role(state: State, agent: str) -> GivenRole | None:
    file = role_file(agent)
    record = state.get(file)
    return None if record is None else GivenRole._make(values_of(record, _ROLE, file))


def may_approve(actor: Actor, approvers: Iterable[str]) -> bool:
    """Return whether the actor is a person at a terminal, and a listed approver where the policy lists any."""
    named = list(approvers)
    return actor.person and not actor.by_setting and (not named or actor.agent in named)


def not_an_approver(actor: Actor, world: World, action: str, hint: str) -> Refusal | None:
    """The refusal of an action that is reserved for approvers."""
    approvers = world.approvers()
    if may_approve(actor, approvers):
        return None
    listed = " whom the settings list as approver" if approvers else ""
    return Refusal("person", f"only a person at a terminal{listed} may {action}", hints=(hint,))


def not_an_overseer(state: State, actor: Actor, world: World, action: str) -> Refusal | None:
    """The refusal of an action that is reserved for approvers and for roles with `overseer`."""
    policy = world.policy()
    if _oversees(state, policy, actor) or may_approve(actor, policy.approvers):
        return None
    listed = " whom the settings list as approver" if policy.approvers else ""
    return Refusal("person", f"only a person at a terminal{listed} may {action}", hints=("ask one of them",))


def may_not_stop(state: State, actor: Actor, world: World, action: str) -> Refusal | None:
    """The refusal of a kill or a halt by an agent without `overseer`. Any person may stop agents, approver or not."""
    if actor.person or _oversees(state, world.policy(), actor):
        return None
    return Refusal("person", f"only a person at a terminal may {action}", hints=("ask one of them",))


def _oversees(state: State, policy: Policy, actor: Actor) -> bool:
    role = role_of(state, policy, actor.agent, person=actor.person)
    return bool(policy.roles.get(role, Role()).overseer)


def out_of_role(state: State, policy: Policy, actor: Actor, agent: str, path: str) -> str:
    """The reason why this agent's role may not write there; '' where it may."""
    if may_approve(actor, policy.approvers):
        return ""
    role = role_of(state, policy, agent, person=actor.person and agent == actor.agent)
    profile = policy.roles.get(role, Role())
    scratch = profile.scratch.replace("{agent}", agent)
    if scratch and covers(key_of(state, Item("path", scratch)), key_of(state, Item("path", path))):
        return ""
    if profile.readonly:
        where = f": it writes only below {printable(scratch)}" if scratch else ""
        return f"the role '{printable(role)}' of '{agent}' does not write here{where}"
    writers = policy.of(path).writers
    if writers and role not in writers:
        if policy.of(path).private:
            return "a private rule of this machine says no"
        named = f"'{printable(role)}'" if role else "without a role"
        return f"it is written by {printable(', '.join(writers))}; '{agent}' is {named}"
    return ""


def may_not_claim(state: State, actor: Actor, world: World, paths: tuple[str, ...]) -> Refusal | None:
    """The refusal of a write claim on paths that this agent's role may not write, or that contain such paths."""
    policy = world.restrictions()
    if policy is None:
        return None
    if actor.unchecked:
        actor = actor._replace(person=False)  # it is judged as an agent, as its changes will be
    free = is_free(state, policy, actor, actor.agent)
    if policy.stage("role") != ENFORCE or (free and not policy.writers):
        return None
    classes = world.classes(list(paths)) if free else {path: {path: Attributes()} for path in paths}
    for path, found in classes.items():
        for name in found:
            message = out_of_role(state, policy._replace(attributes=found), actor, actor.agent, name)
            if message:
                return _not_claimed(actor.agent, path, name, message)
    return None


def may_not_land(state: State, actor: Actor, policy: Policy | None) -> Refusal | None:
    """The refusal of a landing by an agent whose role does not land. `policy`: trunk's; None where it restricts nobody."""
    if policy is None or policy.stage("role") != ENFORCE:
        return None
    role = role_of(state, policy, actor.agent, person=actor.person)
    if policy.roles.get(role, Role()).land:
        return None
    hint = f"leave it to an agent whose role may; a person may give roles: git coord role {actor.agent} <role>"
    return Refusal("role", f"the role '{printable(role)}' of '{actor.agent}' does not land", hints=(hint,))


def _not_claimed(agent: str, path: str, name: str, message: str) -> Refusal:
    below = f"'{printable(name)}' below it: " if name != path else ""
    return Refusal(
        "role",
        f"'{printable(path)}' may not be claimed for writing: {below}{message}",
        hints=(
            f"to see it stay as it is meanwhile: git claim --mode read {shell_word(path)}",
            f"leave the change to an agent whose role may; a person may give roles: git coord role {agent} <role>",
        ),
    )


def is_free(state: State, policy: Policy, actor: Actor, agent: str) -> bool:
    """Return whether this agent's role may write paths without `gitcoord-writers`."""
    role = role_of(state, policy, agent, person=actor.person and agent == actor.agent)
    return not policy.roles.get(role, Role()).readonly


def role_of(state: State, policy: Policy, agent: str, *, person: bool = False) -> str:
    """The role from the ledger or the policy, for a subagent its parent's; else the default role, which people do not have."""
    name = agent
    while name:
        given = given_role(state, name)
        if given is not None and given.role:
            return given.role
        if name in policy.agents:
            return policy.agents[name]
        name = name.rpartition(".")[0]
    return "" if person else policy.default_role
