"""Sessions, heartbeats and expiry: who is alive, and whose lease has run out as seen from where.

An agent's session has a number that only grows. One heartbeat on the agent's own ref keeps all its claims alive.
A lease that has run out permits an expire event, it does not make one; and no host trusts another's clock alone.
"""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Malformed, Record, Shape, check, dumps, loads, record_of, values_of
from gitcoord.base.errors import Refusal, Refused, raise_if, refused
from gitcoord.base.names import is_oid, shown
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

OPEN, ENDED, KILLED = "open", "ended", "killed"
SLOT_MS = 30_000
SLOT_FLOOR_MS, REMOTE_SLOT_MS = 100, 30_000  # the shortest, where a beat is a local ref or a push
SESSION_TTL = 30 * 60
MAX_SKEW = 30 * 60
MAX_LOST = 32
EXPIRED_BY = ("killed", "session over", "same clock", "older than any skew", "watched", "unconfirmed", "turn over")

_BEAT = {"agent": str, "boot": str, "session": int, "mono": int, "wall": int, "slot": int}
_BEAT_OPTIONAL = {"judged": int, "killed": int, "confirms": int}
_LOST: dict[str, Shape] = {"space": str, "path": str, "token": int, "by": str, "seq": int, "cause": str}
_AGENT: dict[str, Shape] = {
    "agent": str, "session": int, "state": str, "instance": str, "parent": str, "since": int, "lost": [_LOST],
    "kept": [(str, str)],
}  # fmt: skip


class Lost(NamedTuple):
    """A claim or task that an agent lost without its own doing: to whom, by which event."""

    space: str
    path: str
    token: int
    by: str
    seq: int
    cause: str  # the event's kind

    def to_json(self) -> dict[str, object]:
        row = {"path": shown(self.path, self.space), "kind": self.space, "token": self.token}
        return {**row, "by": self.by, "seq": self.seq, "cause": self.cause}


class Agent(NamedTuple):
    """An agent's record in the ledger: its last session, and the losses that its next command reports."""

    agent: str
    session: int
    state: str
    instance: str
    parent: str
    since: int
    lost: tuple[Lost, ...]
    kept: list[list[str]]  # [space, name] of claims that outlived the session

    @classmethod
    def from_record(cls, record: Record, file: str) -> Agent:
        agent, session, state, instance, parent, since, lost, kept = values_of(record, _AGENT, file)
        if agent_file(agent) != file:
            raise Malformed(f"{file} holds another agent's record")
        rows = tuple(Lost(*(row[key] for key in _LOST)) for row in lost)
        return cls(agent, session, state, instance, parent, since, rows, kept)

    def to_record(self) -> Record:
        return {**record_of(_AGENT, self), "lost": [row._asdict() for row in self.lost]}

    def losing(self, rows: Iterable[Lost]) -> Agent:
        """The agent after it lost these too: its next command reports the last of them."""
        return self._replace(lost=(*self.lost, *rows)[-MAX_LOST:])


class Actor(NamedTuple):
    """The acting agent: its name, and its process as far as it is known."""

    agent: str
    instance: str = ""
    session: int = 0  # the session that `run` opened for this process; 0 where nobody did
    parent: str = ""
    person: bool = False
    join: bool = False
    unchecked: bool = False  # a person by the word of somebody else's machine alone
    by_setting: bool = False  # a person by `gitcoord.person` alone: may commit, merge and pull, and approves nothing


class Heartbeat(NamedTuple):
    """A heartbeat: the slot in which the agent was last alive. `oid` names the object it was read from."""

    oid: str
    agent: str
    boot: str
    session: int
    mono: int
    wall: int
    slot: int
    judged: int = 0  # Seq of an expiry that judged this beat
    killed: int = 0  # Seq of the kill that put a tombstone here
    confirms: int = 0  # grants of requests up to this token are known to the agent


class Seen(NamedTuple):
    """This host has seen the beat `oid` ('' for a missing one) since `mono` on its own clock of `boot`."""

    oid: str
    boot: str
    mono: int


def valid_evidence(row: Record) -> bool:
    """Return whether an event names a heartbeat, or its absence, and a rule by which a lease has run out."""
    return (not row["beat"] or is_oid(row["beat"])) and row["rule"] in EXPIRED_BY


class Expiry(NamedTuple):
    """The verdict on one claim: may it be expired, by which rule, and in how many seconds it may be at the earliest, as seen from
    here (None: unknown). That is the ttl after the end of the heartbeat's slot, so it may be more than the ttl."""

    expired: bool
    rule: str
    expires_in: int | None


def agent_file(agent: str) -> str:
    return f"agents/{agent}"


def agent_record(state: State, agent: str) -> Agent | None:
    file = agent_file(agent)
    record = state.get(file)
    return None if record is None else Agent.from_record(record, file)


def hint_of_ended(state: State, holders: Iterable[str]) -> str:
    """The hint for claims whose holders' sessions have all ended, so that waiting for a release is vain; '' for others."""
    names = sorted(set(holders))
    records = [agent_record(state, name) for name in names]
    if not names or not all(record is not None and record.state == ENDED for record in records):
        return ""
    return f"{', '.join(names)} has ended: the next session in that work tree gets it, else it is free when it expires"


def agent_records(state: State) -> list[Agent]:
    """All agents that the ledger knows, by name."""
    names = [key.removeprefix("agents/") for key in sorted(state.below("agents"))]
    return [record for name in names if (record := agent_record(state, name)) is not None]


def encode_heartbeat(beat: Heartbeat) -> bytes:
    record = {"v": VERSION, **beat._asdict()}
    del record["oid"]
    for key in _BEAT_OPTIONAL:
        if not record[key]:
            del record[key]
    return dumps(record).encode() + b"\n"


def decode_heartbeat(oid: str, data: bytes) -> Heartbeat:
    record = check(loads(data), _BEAT, "heartbeat", _BEAT_OPTIONAL)
    fields = {key: value for key, value in record.items() if key != "v"}
    return Heartbeat(oid=oid, **fields)


def next_heartbeat(
    old: Heartbeat | None, agent: str, session: int, world: World, ttl: int = 0, confirms: int = 0
) -> Heartbeat | None:
    """The beat to write now, or None where the last one still covers this slot and confirms the same grants."""
    same = old is not None and old.session == session and not old.killed
    slot = old.slot if same and old is not None else SLOT_MS
    if ttl:
        slot = max(REMOTE_SLOT_MS if world.remote else SLOT_FLOOR_MS, min(slot, ttl * 1000 // 3))
    start = world.mono - world.mono % slot
    if (
        same
        and old is not None
        and old.boot == world.boot
        and old.slot == slot
        and old.mono >= start
        and not old.judged
        and confirms <= old.confirms
    ):
        return None
    known = old.confirms if same and old is not None else 0
    return Heartbeat("", agent, world.boot, session, start, world.wall, slot, confirms=max(known, confirms))


def expiry_of(state: State, world: World, agent: str, session: int, ttl: int) -> Expiry:
    """The answer to whether this observer may expire a claim of this session with this ttl, with its rule."""
    beat = world.heartbeat(agent)
    ttl_ms = ttl * 1000
    if beat is not None and beat.killed and beat.session >= session:
        return Expiry(True, "killed", 0)
    if beat is not None and beat.session > session:
        return Expiry(True, "session over", 0)
    if beat is not None and beat.session < session:
        beat = None  # the last session's: this one has not been heard of yet
    if beat is not None and beat.boot == world.boot:
        left = beat.mono + beat.slot + ttl_ms - world.mono
        return Expiry(left < 0, "same clock", max(0, left // 1000))
    if beat is not None and beat.wall + beat.slot // 1000 + ttl + MAX_SKEW < world.wall:
        return Expiry(True, "older than any skew", 0)
    seen = world.first_seen(agent)
    oid, slot = (beat.oid, beat.slot) if beat is not None else ("", 0)
    if seen is None or seen.oid != oid or seen.boot != world.boot:
        return Expiry(False, "first sight", (slot + ttl_ms * 6 // 5) // 1000)
    left = seen.mono + slot + ttl_ms * 6 // 5 - world.mono
    return Expiry(left < 0, "watched", max(0, left // 1000))


def alive(state: State, world: World, record: Agent) -> bool:
    """Return whether this open session has a recent heartbeat."""
    return not expiry_of(state, world, record.agent, record.session, SESSION_TTL).expired


def is_torn_kill(record: Agent, beat: Heartbeat | None) -> bool:
    """A tombstone on a session that the ledger still has as open: the other half of that kill was lost."""
    return record.state == OPEN and beat is not None and bool(beat.killed) and beat.session == record.session


def dead(state: State, world: World, agent: str) -> Refusal | None:
    """The refusal for an agent that was killed, by the ledger or by a tombstone that the ledger does not know yet."""
    record = agent_record(state, agent)
    if record is None:
        return None
    beat = world.heartbeat(agent)
    if record.state == KILLED or is_torn_kill(record, beat):
        return Refusal(
            "killed",
            f"'{agent}' was killed: nothing of it gets through",
            hints=(f"a person may allow the name again: git coord revive {agent}",),
        )
    return None


def dead_above(state: State, world: World, actor: Actor) -> Refusal | None:
    """The refusal for a subagent below one that was killed: it is the same tool at work, and its own name opens again at once."""
    name = actor.parent
    while name:
        refusal = dead(state, world, name)
        if refusal is not None:
            return refusal
        name = name.rpartition(".")[0]
    return None


def admit_or_none(state: State, actor: Actor, world: World) -> Refusal | None:
    """Only the refusal of `admit`."""
    try:
        admit(state, actor, world)
    except Refused as error:
        return error.refusal
    return None


class Admission(NamedTuple):
    """The session in which an actor may act, and whether it must be opened first."""

    opens: bool
    session: int


def admit(state: State, actor: Actor, world: World) -> Admission:
    """The session for this actor, or why this process may not act under this name."""
    raise_if(dead(state, world, actor.agent))
    record = agent_record(state, actor.agent)
    current = record.session if record is not None else 0
    is_open = record is not None and record.state == OPEN
    if actor.session and not (is_open and actor.session == current):
        raise refused(
            "session-over",
            f"session {actor.session} of '{actor.agent}' has ended",
            f"start anew: git coord run --as {actor.agent} -- <command>",
            "or, in a fresh shell: git coord start",
        )
    if record is None or not is_open:
        return Admission(True, current + 1)
    other = actor.instance and record.instance and record.instance != actor.instance
    if other and not actor.join:
        if alive(state, world, record) and world.gone_instance(actor.agent) != record.instance:
            raise refused(
                "instance",
                f"another process works as '{actor.agent}' (session {current})",
                "take a name of your own: GITCOORD_AGENT=<name>, or git coord run --as <name> -- <command>",
            )
        return Admission(True, current + 1)
    return Admission(False, current)
