"""Workers: how many may have a task at once, and when one is lost. A cap is a resource, and is claimed like one.

[workers]
    cap = 8             at most so many agents with a task, over all roles
    heartbeat = 60s     a launched worker without a heartbeat for so long is lost
    attempts = 3        so many owners may be lost before a person has to look
[workers "code"]
    cap = 3             of them, at most so many of this role
"""

from __future__ import annotations

from gitcoord.base.durations import parse_duration
from gitcoord.base.errors import UsageError
from gitcoord.base.names import check_resource, printable
from gitcoord.claims.model import DEFAULT_TTL, MAX_TTL, Item
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.ledger.world import Resource, World
from gitcoord.policy.model import invalid_setting
from gitcoord.policy.roles import role_of
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

ALL = "workers/all"
HEARTBEAT = 60
LAUNCHED = "run:"  # how the instance of an agent that `git coord run` keeps alive begins


class Workers(NamedTuple):
    """The settings. `caps` has '' for all roles together."""

    caps: dict[str, int]
    heartbeat: int = HEARTBEAT
    attempts: int = 0


def parse_workers(pairs: Iterable[tuple[str, str]]) -> Workers:
    found = Workers({})
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section != "workers":
            continue
        if setting == "cap":
            found.caps[name] = _count(key, value)
        elif setting == "attempts" and not name:
            found = found._replace(attempts=_count(key, value))
        elif setting == "heartbeat" and not name:
            found = found._replace(heartbeat=_duration(key, value))
    return found


def _count(key: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 7 and int(value)):
        raise invalid_setting(f"{printable(key)} is '{printable(value[:40])}', not a number from 1 on")
    return int(value)


def _duration(key: str, value: str) -> int:
    try:
        seconds = parse_duration(value)
    except UsageError:
        seconds = 0
    if not 1 <= seconds <= MAX_TTL:
        raise invalid_setting(f"{printable(key)} is not a usable duration", "from 1s to 7d")
    return seconds


def cap_resources(workers: Workers) -> dict[str, Resource]:
    """The caps as resources, which anybody may see and claim like any other."""
    try:
        return {
            check_resource(_resource(role)): Resource(cap, workers.heartbeat, declared=True)
            for role, cap in workers.caps.items()
        }
    except UsageError as error:
        raise invalid_setting(f"workers: {error.message}") from None


def _resource(role: str) -> str:
    return f"workers/role/{role}" if role else ALL


def role(state: State, world: World, actor: Actor) -> str:
    return role_of(state, world.policy(), actor.agent, person=actor.person)


def caps_for(state: State, world: World, actor: Actor) -> tuple[Item, ...]:
    """The caps under which this agent's work falls."""
    caps = world.workers().caps
    if not caps:
        return ()
    own = role(state, world, actor) if set(caps) != {""} else ""
    return tuple(Item("resource", _resource(name)) for name in dict.fromkeys(("", own)) if name in caps)


def task_ttl(world: World, actor: Actor) -> int:
    """The ttl of this agent's task: short if a launcher sends its heartbeats, else that of a claim."""
    return world.workers().heartbeat if is_launched(actor) else DEFAULT_TTL


def is_launched(actor: Actor) -> bool:
    """Return whether `git coord run` sends its heartbeats."""
    return actor.instance.startswith(LAUNCHED)


def is_cap(item: Iterable[str]) -> bool:
    space, name = item
    return space == "resource" and name.startswith("workers/")
