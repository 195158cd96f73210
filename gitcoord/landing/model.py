"""Landings: the settings of `[land]`, the turn, and the record of a landing that is under way."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape, record_of, values_of
from gitcoord.base.durations import parse_duration
from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import RESOURCE, printable
from gitcoord.claims.model import Claim, Item, is_turn_item, own_claim, resource_like, turn_item
from gitcoord.claims.requests import Request
from gitcoord.ledger.state import State
from gitcoord.policy.model import invalid_setting
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

MERGE, REBASE, SQUASH = WAYS = ("merge", "rebase", "squash")
LEASE = 60  # seconds for which a turn lasts without being taken again
# The same once it was taken again while it is under way: by that, and nothing else, a landing in a lane keeps its place (`in_lanes`).
AGAIN = LEASE + 1
MAX_CHECKS = 20
NUMBER = "number/"
LANE = "lane/"  # resources so named are paths that a landing in a lane changes
MOST_LANES = 64
_MOST_NAMED = 100  # paths of one landing; above that, the directories in which they are
MOST_FIRST = 2  # so often a landing that goes on after a conflict is first in the queue

# A claim that the landing releases, with the files that it changes below it: as in a release, with the holder.
RELEASED: dict[str, Shape] = {
    "space": str, "path": str, "agent": str, "token": int, "commit": str, "base": str,
    "files": [(str, str, str)], "landed": [(str, int)],
}  # fmt: skip
CHECK: dict[str, Shape] = {"command": str, "code": int, "seconds": int}
FACTS: dict[str, Shape] = {
    "trunk": str, "branch": str, "tip": str, "old": str, "new": str, "how": str, "checks": [CHECK], "task": str,
    "released": [RELEASED],
}  # fmt: skip
_LANDING: dict[str, Shape] = {"agent": str, "seq": int, "at": int, **FACTS}


class OpenLanding(NamedTuple):
    """A landing that is under way: what `land` will do once trunk contains `new`."""

    agent: str
    seq: int  # of the event `landing`
    at: int
    trunk: str
    branch: str
    tip: str  # of the branch
    old: str  # of trunk, before
    new: str  # of trunk, afterwards
    how: str
    checks: list[Record]
    task: str  # '' or the task that it completes
    released: list[Record]

    @classmethod
    def from_record(cls, record: Record, file: str) -> OpenLanding:
        return cls._make(values_of(record, _LANDING, file))

    def to_record(self) -> Record:
        return record_of(_LANDING, self)

    @property
    def announced(self) -> bool:
        """Is it checked, and trunk does not move by it yet? What moves trunk releases at least its turn."""
        return not self.released

    def to_json(self) -> dict[str, object]:
        row = self._asdict()
        return {**row, "released": [f"{'@' if r['space'] == RESOURCE else ''}{r['path']}" for r in self.released]}


class Unfinished(NamedTuple):
    """A landing that failed, or that a conflict stopped. `tree`: the work tree in which a conflict stands, or ''. `output`: the
    file with a failed check's output, or ''."""

    agent: str
    branch: str
    message: str
    at: int
    tree: str = ""
    output: str = ""


def landing_file(agent: str) -> str:
    return f"landings/@{agent}"


def open_landing(state: State, agent: str) -> OpenLanding | None:
    """The landing of this agent that is under way. An agent has at most one."""
    file = landing_file(agent)
    record = state.get(file)
    return None if record is None else OpenLanding.from_record(record, file)


def open_landings(state: State) -> list[OpenLanding]:
    """All landings that are under way, or were when their process died; by number."""
    found = [OpenLanding.from_record(record, file) for file, record in state.below("landings").items()]
    return sorted(found, key=lambda landing: landing.seq)


def in_lanes(state: State) -> list[OpenLanding]:
    """The landings whose agents have a turn, in the order in which they land. With several lanes a landing goes on record before its check
    (`announced`): its number is its place. One that moves trunk is before all others. A record from an earlier turn of its agent has no place: it is older than
    the turn, which was not taken again. Neither has one whose turn is kept for a conflict (`lasts_for_conflict`)."""
    turns = [(landing, own_turn(state, landing.trunk, landing.agent)) for landing in open_landings(state)]
    found = [row for row, turn in turns if turn is not None and (turn.token < row.seq or turn.ttl == AGAIN)]
    return sorted(found, key=lambda landing: (landing.announced, landing.seq))


def lasts_for_conflict(seconds: int) -> int:
    """How long a turn lasts that is kept so many seconds for resolving a conflict: it has no place, so never as one that was taken again."""
    return seconds + 1 if seconds == AGAIN else seconds


def lands_before(state: State, agent: str) -> list[OpenLanding]:
    """The landings that land before that of this agent, in order: all, where it has no place yet."""
    found = in_lanes(state)
    place = next((at for at, landing in enumerate(found) if landing.agent == agent), len(found))
    return found[:place]


def lane_item(path: str) -> Item:
    """The resource that keeps two landings that change this path out of the lanes at the same time. A path of its own beside the path itself: claims
    on that are about work, and may be another agent's."""
    return resource_like(LANE, path)


def lane_items(paths: Iterable[str]) -> tuple[Item, ...]:
    """The resources of all these paths: of many, those of the directories above them."""
    parts = [path.split("/") for path in paths]
    for depth in range(max(map(len, parts), default=0), 0, -1):
        found = tuple(dict.fromkeys(lane_item("/".join(part[:depth])) for part in parts))
        if len(found) <= _MOST_NAMED or depth == 1:
            return found
    return ()


def number_item(sequence: str) -> Item:
    """The resource that a landing takes which gives numbers of this sequence."""
    return Item(RESOURCE, NUMBER + sequence)


def is_of_landing(item: Item) -> bool:
    """Is this a resource that only landings take?"""
    return is_turn_item(item) or is_lane_item(item) or (item.space == RESOURCE and item.name.startswith(NUMBER))


def is_lane_item(item: Item) -> bool:
    return item.space == RESOURCE and item.name.startswith(LANE)


def own_turn(state: State, trunk: str, agent: str) -> Claim | None:
    """The agent's claim on the turn of this trunk."""
    return own_claim(state, turn_item(trunk), agent)


class Rules(NamedTuple):
    """The settings of `[land]` in the policy of trunk."""

    how: str = MERGE
    checks: tuple[str, ...] = ()
    timeout: int = 30 * 60  # of each check
    resolve: int = 5 * 60  # how long a turn is kept for resolving a conflict
    guarded: tuple[str, ...] = ()  # files and directories that the checks rest on: taken from trunk for them
    lanes: int = 1  # landings that are checked at the same time
    renumber: tuple[str, ...] = ()  # sequences whose files get their numbers at landing
    renumber_command: str = ""  # corrects texts that name the file of an old number
    only: bool = False  # trunk moves by landings alone, but for people
    keeps_signatures: bool = False  # signed commits are not made anew


def rules_of(pairs: Iterable[tuple[str, str]]) -> Rules:
    """The settings of `[land]`; CouldNotJudge where one of them cannot be read."""
    rules = Rules()
    for key, value in pairs:
        if not key.startswith("land."):
            continue
        setting = key[len("land.") :]
        if setting == "how":
            if value not in WAYS:
                raise _invalid(key, value, f"one of {', '.join(WAYS)}")
            rules = rules._replace(how=value)
        elif setting == "check":
            rules = rules._replace(checks=(*rules.checks, value))
        elif setting == "guarded":
            if "*" in value:  # names with [ or ? are real ones
                raise _invalid(key, value, "paths: patterns are not read here; name the file or the directory")
            rules = rules._replace(guarded=(*rules.guarded, *value.split()))
        elif setting == "timeout":
            rules = rules._replace(timeout=_seconds(key, value))
        elif setting == "resolve":
            rules = rules._replace(resolve=_seconds(key, value))
        elif setting == "signatures":
            if value != "keep":
                raise _invalid(key, value, "keep")
            rules = rules._replace(keeps_signatures=True)
        elif setting == "lanes":
            if not (value.isascii() and value.isdecimal() and len(value) < 4 and 1 <= int(value) <= MOST_LANES):
                raise _invalid(key, value, f"a number from 1 to {MOST_LANES}")
            rules = rules._replace(lanes=int(value))
        elif setting == "renumber":
            rules = rules._replace(renumber=(*rules.renumber, *value.split()))
        elif setting == "renumbercommand":
            rules = rules._replace(renumber_command=value)
        elif setting == "only":
            if value.lower() not in ("true", "false"):
                raise _invalid(key, value, "true or false")
            rules = rules._replace(only=value.lower() == "true")
    if len(rules.checks) > MAX_CHECKS:
        raise invalid_setting(
            f"land.check is there {len(rules.checks)} times, not at most {MAX_CHECKS}: one command can run several"
        )
    return rules


def _seconds(key: str, value: str) -> int:
    try:
        return parse_duration(value, 24 * 3600)
    except UsageError:
        raise _invalid(key, value, "a duration such as 10m") from None


def _invalid(key: str, value: str, wanted: str) -> CouldNotJudge:
    return invalid_setting(f"{key} is '{printable(value[:80])}', not {wanted}")


def landing_queue(
    trunk: str, holders: Iterable[Claim], waiting: Iterable[Request], open: Iterable[OpenLanding]
) -> Record:
    """The agent that lands on this trunk, and those that wait for a turn, in order. `waiting`: requests in the order of the queue."""
    item, landings = turn_item(trunk), list(open)
    turns = [request for request in waiting if item in request.items]
    places = {landing.agent: landing.at for landing in landings if landing.trunk == trunk}
    return {
        "trunk": trunk,
        "landing": [
            {
                "agent": c.agent, "reason": c.reason, **_since(c, places.get(c.agent)), "token": c.token,
                "source": f"event {c.token}, heartbeat of {c.agent}",
            }
            for c in holders
            if c.item == item
        ],
        "open": [{**landing.to_json(), "source": f"event {landing.seq}"} for landing in landings],
        "waiting": [
            {
                "agent": r.agent, "ticket": r.ticket, "position": position, "reason": r.reason, "since": r.at,
                "paths": [i.name for i in r.items if i != item and not is_lane_item(i)], "source": f"event {r.ticket}",
            }
            for position, r in enumerate(turns, 1)
        ],
    }  # fmt: skip


def _since(turn: Claim, place: int | None) -> Record:
    """Since when it lands: a turn that was taken again tells only when that was, if there is no record from before."""
    if turn.ttl != AGAIN:
        return {"since": turn.at}
    return {"since": turn.at, "renewed": True} if place is None else {"since": min(turn.at, place)}
