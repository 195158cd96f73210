"""Claim refs and session refs of a push: they must follow from the ledger; an agent sends only its own heartbeats."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record
from gitcoord.base.errors import CouldNotJudge, UsageError, refused
from gitcoord.base.names import SESSIONS, Oid, check_agent, printable, session_ref
from gitcoord.claims.model import Claim
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.loose_writer import ObjectHasher
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import (
    KILLED,
    OPEN,
    SLOT_MS,
    Agent,
    Heartbeat,
    agent_file,
    decode_heartbeat,
    encode_heartbeat,
)
from gitcoord.server.limits import BEAT_BYTES, Limits
from gitcoord.startup.annotations import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.server.accounts import Pusher

Lookup = Callable[[str], Record | None]


# --- claims --------------------------------------------------------------------------------------------------------


def judge_claims(
    ctx: Context, limits: Limits, moves: list[RefUpdate], wanted: dict[str, Oid | None], head: Oid, claim: Lookup
) -> None:
    """Judge the claim refs. `wanted`: those that the push's events demand; `claim` reads the ledger at `head`."""
    moved = {move.ref: move.new or None for move in moves}
    for move in moves:
        if move.ref in wanted:
            if (move.new or None) != wanted[move.ref]:
                raise refused("claims", f"{_ref(move.ref)} is not left where the ledger says", "fetch and try again")
        elif move.new:
            _require_grant(ctx, limits, move, head, claim)
        elif claim(move.ref.removeprefix("refs/")) is not None:
            raise refused(
                "claims",
                f"{_ref(move.ref)} stands for a claim that is held: only the ledger ends it",
                "give it back: git claim release <path>",
            )
    lacking = [ref for ref in wanted if ref not in moved]
    for ref, oid in zip(lacking, ctx.store.resolve(lacking)):
        if oid != wanted[ref]:
            raise refused("claims", f"the push moves the ledger without {_ref(ref)}, which must follow it")


def _require_grant(ctx: Context, limits: Limits, move: RefUpdate, head: Oid, claim: Lookup) -> None:
    """Raise Refused unless a restored claim ref names the event that granted the claim."""
    file = move.ref.removeprefix("refs/")
    record = claim(file)
    if record is None:
        raise refused("claims", f"{_ref(move.ref)} stands for no claim in the ledger", "ask for it: git claim <path>")
    limits.check_size(ctx, move.new, "commit", _ref(move.ref))
    try:
        event = Commit(ctx.store.read([move.new])[0], move.ref).event
    except CouldNotJudge:
        event = None
    token = Claim.from_record(record, file).token
    if event is None or event.seq != token or not is_ancestor(ctx.repo.env, move.new, head):
        raise refused("claims", f"{_ref(move.ref)} does not name the event that granted this claim")


def _ref(ref: str) -> str:
    return printable(ref[:200])


# --- sessions ------------------------------------------------------------------------------------------------------


class Sessions:
    """The heartbeats of a push, by agent; `oids` are the blobs that it leaves on their session refs."""

    def __init__(self, ctx: Context, limits: Limits, moves: list[RefUpdate]) -> None:
        """Raise Refused unless every session ref gets a small heartbeat of its own agent."""
        self._ctx = ctx
        self.beats: dict[str, Heartbeat] = {}
        self.oids: dict[str, Oid] = {}
        self._old: dict[str, Oid] = {}
        for move in moves:
            agent = _agent_of(move.ref)
            if not move.new:
                raise refused("sessions", f"{_ref(move.ref)} may not be deleted: it tells that an agent is alive")
            limits.check_size(ctx, move.new, "blob", _ref(move.ref), BEAT_BYTES)
            self.beats[agent] = self._read(move.new, agent)
            self.oids[agent], self._old[agent] = move.new, move.old

    def _read(self, oid: Oid, agent: str) -> Heartbeat:
        found = self._ctx.store.read([oid])[0]
        try:
            assert found is not None
            beat = decode_heartbeat(oid, found.data)
        except Malformed as error:
            raise refused("sessions", f"{session_ref(agent)} would hold no heartbeat: {error.message}") from None
        if beat.agent != agent or encode_heartbeat(beat) != found.data:
            raise refused("sessions", f"{session_ref(agent)} would hold no heartbeat of '{agent}'")
        return beat

    def begin(self, agent_of: Lookup) -> None:
        """Judge the heartbeats of a whole history: all its agents may have one, living and ended."""
        for agent in self.beats:
            if agent_of(agent_file(agent)) is None:
                raise refused(
                    "sessions", f"{session_ref(agent)} is the heartbeat of an agent that is not in this ledger"
                )

    def judge(self, pusher: Pusher, demanded: dict[str, Heartbeat], agent_of: Lookup) -> None:
        """Raise Refused unless these are own heartbeats, and exactly those of others that the events demand."""
        for agent, due in demanded.items():
            if agent not in self.beats:
                raise refused("sessions", f"the push must also replace {session_ref(agent)}, which it judged")
            self._require_due(agent, due)
        for agent, beat in self.beats.items():
            if agent not in demanded:
                pusher.require(agent, f"{session_ref(agent)} is the heartbeat of '{agent}'")
                file = agent_file(agent)
                record = agent_of(file)
                self._require_living(agent, beat, Agent.from_record(record, file) if record is not None else None)

    def _require_due(self, agent: str, due: Heartbeat) -> None:
        beat = self.beats[agent]
        if due.killed:
            same = (beat.killed, beat.session, beat.judged) == (due.killed, due.session, 0)
        else:
            same = self.oids[agent] == ObjectHasher(self._ctx.store.oid_length).write("blob", encode_heartbeat(due))
        if not same:
            raise refused("sessions", f"{session_ref(agent)} is not left as the event demands", "fetch and try again")

    def _require_living(self, agent: str, beat: Heartbeat, record: Agent | None) -> None:
        if record is None or record.state != OPEN or record.session != beat.session:
            dead = record is not None and record.state == KILLED
            why = "was killed: nothing of it gets through" if dead else f"has no open session {beat.session}"
            raise refused("sessions", f"'{agent}' {why}", "start anew: git coord start")
        host = self._ctx.host
        ahead = beat.boot == host.boot and beat.mono > host.mono() + SLOT_MS
        if beat.judged or beat.killed or not 1 <= beat.slot <= SLOT_MS or ahead:
            raise refused("sessions", f"{session_ref(agent)} would hold a heartbeat that no client makes")
        old = self._ctx.store.read([self._old[agent]])[0] if self._old[agent] else None
        try:
            before = decode_heartbeat(old.oid, old.data) if old is not None and old.kind == "blob" else None
        except Malformed:
            before = None
        if before is not None and before.killed and before.session >= beat.session:
            raise refused("killed", f"session {beat.session} of '{agent}' was killed")


def _agent_of(ref: str) -> str:
    try:
        return check_agent(ref.removeprefix(SESSIONS))
    except UsageError as error:
        raise refused("sessions", f"{_ref(ref)}: {error.message}") from None
