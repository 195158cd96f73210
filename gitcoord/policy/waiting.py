"""The settings of the queue of claims.

[queue]
    overtake = 3            a request is overtaken so often, and then never again
    reserve = 15s           so long a grant is kept for a process that waits, until it confirms it
    reserveQueued = 2m      the same for a request that was made with --queue
    priority = high         the highest class that an agent may ask for
[role "ops"]
    priority = critical     the same for the agents of one role
"""

from __future__ import annotations

from gitcoord.base.durations import parse_duration
from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import printable
from gitcoord.claims.requests import LONGEST_RESERVE, PRIORITIES
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.ledger.world import Waiting, World
from gitcoord.policy.model import invalid_setting
from gitcoord.policy.roles import role_of
from gitcoord.startup.annotations import Iterable

_LIMITED = PRIORITIES[:-1]  # 'normal' is for everybody


def parse_waiting(pairs: Iterable[tuple[str, str]]) -> Waiting:
    found = Waiting()
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "role" and setting == "priority":
            found = found._replace(by_role=(*found.by_role, (name, _class(key, value))))
        elif section != "queue" or name:
            continue
        elif setting == "overtake":
            found = found._replace(overtake=_count(key, value))
        elif setting == "reserve":
            found = found._replace(reserve=_seconds(key, value))
        elif setting == "reservequeued":
            found = found._replace(reserve_queued=_seconds(key, value))
        elif setting == "priority":
            found = found._replace(highest=_class(key, value))
    return found


def highest_priority(state: State, actor: Actor, world: World) -> str:
    """The highest class that this actor may ask for: any for a person, else as the settings say for its role."""
    settings = world.waiting()
    if actor.person:
        return PRIORITIES[0]
    if not settings.by_role:
        return settings.highest
    return dict(settings.by_role).get(role_of(state, world.policy(), actor.agent), settings.highest)


def _class(key: str, value: str) -> str:
    if value not in _LIMITED:
        raise _invalid(key, value, f"one of {', '.join(_LIMITED)}")
    return value


def _count(key: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 5):
        raise _invalid(key, value, "a number")
    return int(value)


def _seconds(key: str, value: str) -> int:
    try:
        seconds = parse_duration(value)
    except UsageError:
        seconds = 0
    if not 1 <= seconds <= LONGEST_RESERVE:
        raise _invalid(key, value, "a duration from 1s to 1h")
    return seconds


def _invalid(key: str, value: str, wanted: str) -> CouldNotJudge:
    return invalid_setting(f"{printable(key)} is '{printable(value[:40])}', not {wanted}")
