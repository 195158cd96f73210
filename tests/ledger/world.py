"""A whole ledger in memory with a clock set by hand: the real rules, and what must always be true of their outcome."""

from __future__ import annotations

from hashlib import sha1
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gitcoord.base.codec import dumps
from gitcoord.base.errors import Refusal, Refused
from gitcoord.base.names import covers, fold
from gitcoord.claims.model import Claim, Item, all_claims
from gitcoord.claims.take import decide as decide_take
from gitcoord.ledger import world as ledger_world
from gitcoord.ledger.event import Decision, Event, apply, decode_event, effects, encode_event
from gitcoord.ledger.events.init import first_event
from gitcoord.ledger.kinds import KINDS
from gitcoord.ledger.sessions import Heartbeat, Seen, encode_heartbeat, next_heartbeat
from gitcoord.ledger.state import State
from gitcoord.ledger.world import Resource
from gitcoord.policy.model import Attributes
from gitcoord.policy.model import Policy as ProjectPolicy
from gitcoord.policy.parse import parse_policy
from gitcoord.tasks.workers import Workers, cap_resources
from tests.support import FakeHost

if TYPE_CHECKING:
    from gitcoord.base.codec import Record

RESOURCES = {"gpu": Resource(capacity=3), "db": Resource(ttl=60, writers=("alice", "bob"), readers=("carol",))}


class Outside(ledger_world.World):
    """The world of rules, without the state, as one host sees it."""

    def __init__(self, world: World, host: FakeHost) -> None:
        super().__init__(host.wall(), host.mono(), host.boot)
        self.inner = world

    def heartbeat(self, agent: str) -> Heartbeat | None:
        return self.inner.beats.get(agent)

    def first_seen(self, agent: str) -> Seen | None:
        beat = self.heartbeat(agent)
        oid = beat.oid if beat is not None else ""
        known = self.inner.sightings.get((self.boot, agent))
        if known is None or known.oid != oid:
            known = self.inner.sightings[self.boot, agent] = Seen(oid, self.boot, self.mono)
        return known

    def granted_seen(self, token: int) -> int:
        return self.inner.seen_grants.setdefault((self.boot, token), self.mono)

    def gone_instance(self, agent: str) -> str:
        return self.inner.gone

    def runner(self, nonce: str) -> str:
        return self.inner.runners.get(nonce, "")

    def resources(self) -> dict[str, Resource]:
        return {**self.inner.resources, **cap_resources(self.workers())}

    def approvers(self) -> list[str]:
        return self.inner.approvers

    def policy(self) -> ProjectPolicy:
        return parse_policy(("gitcoord.approver", name) for name in self.inner.approvers)

    def restrictions(self) -> ProjectPolicy | None:
        return self.inner.policy

    def workers(self) -> Workers:
        return Workers(dict(self.inner.caps))

    def classes(self, paths: list[str]) -> dict[str, dict[str, Attributes]]:
        return {path: {path: self.inner.classes.get(path, Attributes())} for path in paths}

    def head(self) -> str:
        return self.inner.head

    def other_trees(self, agent: str) -> list[str]:
        return []

    def dirty(self, paths: list[str]) -> list[str]:
        return [path for path in paths if path in self.inner.dirty]

    def dirty_in(self, tree: str, paths: list[str]) -> list[str]:
        return []

    def since(self, base: str, commit: str, paths: list[str]) -> dict[str, str]:
        return dict.fromkeys(paths, base)

    def changed(self, base: str, commit: str, paths: list[str]) -> dict[str, list[list[str]]]:
        return {path: self.inner.changed.get(path, []) for path in paths}

    def unlanded(self, commit: str, paths: list[str]) -> dict[str, tuple[str, list[list[str]]]]:
        return {}

    def within(self, commit: str, commits: list[str]) -> list[str]:
        return [one for one in commits if one in self.inner.within.get(commit, ())]

    def landed(self, work: str, commits: list[str]) -> list[str]:
        return [commit for commit in commits if commit in self.inner.landed]

    def touched(self, old: str, new: str) -> list[str]:
        return self.inner.touched.get(new, [])

    def agents_of(self, old: str, new: str) -> list[str]:
        return self.inner.agents

    def on_trunk(self, commits: list[str]) -> list[str]:
        return [commit for commit in commits if commit in self.inner.trunk]


class World:
    """The ledger as a list of messages, the state after them, and the heartbeats beside them."""

    def __init__(self, *, fold_case: bool = False) -> None:
        self.host = FakeHost()
        self.gone = ""
        self.runners: dict[str, str] = {}  # what this machine knows of who runs an effect, by nonce
        self.fold = fold_case
        self.state = State()
        self.log: list[bytes] = []
        self.beats: dict[str, Heartbeat] = {}
        self.sightings: dict[tuple[str, str], Seen] = {}
        self.seen_grants: dict[tuple[str, int], int] = {}
        self.resources = dict(RESOURCES)
        self.head = ""
        self.approvers: list[str] = []
        self.caps: dict[str, int] = {}
        self.policy: ProjectPolicy | None = None
        self.classes: dict[str, Attributes] = {}
        self.dirty: set[str] = set()
        self.changed: dict[str, list[list[str]]] = {}
        self.landed: set[str] = set()
        self.trunk: set[str] = set()
        self.touched: dict[str, list[str]] = {}  # the paths that a commit changes
        self.agents: list[str] = []  # of the commits that land
        self.within: dict[str, set[str]] = {}  # what a commit contains
        self.over: set[tuple[str, int]] = set()  # sessions that ended or were killed
        self.grants: set[tuple[str, str, str, int]] = set()  # as of the last check, which was made at `looked`
        self.looked = 0
        event = first_event("setup", self.host.wall(), "n0", fold=fold_case, sync="main", authority={"local": 1})
        self.commit(Decision([event], [], {}))

    # --- doing

    def outside(self, host: FakeHost | None = None, nonce: str = "n") -> Outside:
        found = Outside(self, host or self.host)
        found.nonce = nonce
        return found

    def decide(self, kind: str, command: Any, host: FakeHost | None = None) -> Decision | Refusal:
        """The rule's answer; the rule must leave the state it was given as it was."""
        before = dumps(self.state.files)
        nonce = getattr(command, "nonce", "") or f"{self.host.random()}"
        rule = decide_take if kind == "claim" else import_module(f"gitcoord.{KINDS[kind]}.events.{kind}").decide
        try:
            answer: Decision | Refusal = rule(self.state, command, self.outside(host, nonce))
        except Refused as error:
            answer = error.refusal
        assert dumps(self.state.files) == before, "a rule changed the state that it was asked about"
        return answer

    def do(self, kind: str, command: Any, host: FakeHost | None = None) -> Decision | Refusal:
        answer = self.decide(kind, command, host)
        if isinstance(answer, Decision):
            self.commit(answer)
        return answer

    def must(self, kind: str, command: Any, host: FakeHost | None = None) -> Decision:
        answer = self.do(kind, command, host)
        assert isinstance(answer, Decision), answer
        return answer

    def refused(self, kind: str, command: Any, host: FakeHost | None = None) -> Refusal:
        before, log = dumps(self.state.files), len(self.log)
        answer = self.do(kind, command, host)
        assert isinstance(answer, Refusal), answer
        assert (dumps(self.state.files), len(self.log)) == (before, log)
        return answer

    def commit(self, decision: Decision) -> None:
        """Commit as a transaction would: every event through its bytes, then the heartbeats that move with them."""
        for part, event in enumerate(decision.events):
            assert event.part == part
            message = encode_event(event)
            self.log.append(message)
            after = apply(self.state, decode_event(message))
            advance(self.state, decode_event(message))
            # The state that rules see on top of another one is the one that replay makes in place.
            assert after.below("claims") == self.state.below("claims")
            assert all(after.get(key) == record for key, record in self.state.files.items())
        assert len({beat.agent for beat in decision.beats}) == len(decision.beats), "one ref cannot move twice"
        for beat in decision.beats:
            self.beats[beat.agent] = beat._replace(oid=sha1(encode_heartbeat(beat)).hexdigest())

    def heartbeat(self, agent: str, host: FakeHost | None = None) -> None:
        """Send the heartbeat that any command of a living agent sends."""
        record = self.agent(agent)
        if record is not None and record["state"] == "open":
            beat = next_heartbeat(self.beats.get(agent), agent, record["session"], self.outside(host))
            self.commit(Decision([], [beat] if beat else [], {}))

    # --- looking

    def agent(self, name: str) -> Record | None:
        return self.state.get(f"agents/{name}")

    def claims(self, agent: str = "") -> list[Claim]:
        return all_claims(self.state, agent)

    def held(self) -> set[tuple[str, str, str]]:
        return {(claim.path, claim.agent, claim.mode) for claim in self.claims()}

    def events(self) -> list[Event]:
        return [decode_event(message) for message in self.log]

    # --- what must always be true

    def check(self) -> None:
        self._no_conflicts()
        self._sessions_stay_over()
        self._tokens_grow()
        self._claims_belong_to_sessions()

    def _no_conflicts(self) -> None:
        """Written out anew, so that it does not share a mistake with the rules."""
        claims = self.claims()
        units: dict[str, int] = {}
        for index, one in enumerate(claims):
            policy = self.resources.get(one.path, Resource()) if one.space == "resource" else Resource()
            if policy.capacity > 1:
                units[one.path] = units.get(one.path, 0) + one.units
                assert units[one.path] <= policy.capacity, f"too many units of {one.path}"
            for other in claims[index + 1 :]:
                if one.agent == other.agent or one.space != other.space:
                    continue
                if policy.capacity > 1 and one.path == other.path:
                    continue
                keys = [fold(each.path, case=self.fold) for each in (one, other)]
                overlap = covers(*keys) or covers(*keys[::-1])
                assert not (overlap and "write" in (one.mode, other.mode)), f"conflict: {one} and {other}"

    def _sessions_stay_over(self) -> None:
        for name in self.state.names("agents"):
            record = self.agent(name)
            assert record is not None
            current = (name, record["session"])
            if record["state"] == "open":
                assert current not in self.over, f"session {current} lives again"
            else:
                self.over.add(current)
            self.over |= {(name, session) for session in range(1, record["session"])}

    def _tokens_grow(self) -> None:
        """Check that a new grant has a token above all earlier ones, and that Seq counts the messages."""
        grants = {(c.space, c.path, c.agent, c.token) for c in self.claims()}
        for *_, token in grants - self.grants:
            assert self.looked < token <= self.state.seq, f"token {token} was given before"
        assert self.state.seq == len(self.log) >= self.looked
        self.grants, self.looked = grants, self.state.seq

    def _claims_belong_to_sessions(self) -> None:
        for claim in self.claims():
            record = self.agent(claim.agent)
            assert record is not None and record["state"] != "killed", f"a killed agent holds {claim.path}"
            kept = [claim.space, claim.path] in record["kept"]
            assert kept or (record["state"] == "open" and record["session"] == claim.session), claim

    def check_replay(self) -> None:
        """Check that replaying all messages gives the same state, in whole and event by event."""
        state = State()
        for number, message in enumerate(self.log, start=1):
            event = decode_event(message)
            assert encode_event(event) == message and event.seq == number
            advance(state, event)
        assert state.files == self.state.files and state.seq == self.state.seq


def advance(state: State, event: Event) -> None:
    """Apply the event's effects in place, as replay does."""
    state.patch(effects(state, event))
    state.seq = event.seq


def paths(*names: str) -> tuple[Item, ...]:
    return tuple(Item("resource", name[1:]) if name[0] == "@" else Item("path", name) for name in names)
