"""Random histories: agents on two machines ask, release, expire, kill and halt in every order, by hypothesis.

After each step the invariants of `World.check` hold, and in the end the replay of all messages gives the same state.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gitcoord.base.codec import dumps
from gitcoord.base.errors import Refusal
from gitcoord.claims import take as asking
from gitcoord.claims.events import claim as claim_kind
from gitcoord.claims.events.disown import Disown
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.takeover import Takeover
from gitcoord.claims.model import Grant, Item, own_claim
from gitcoord.claims.take import Take
from gitcoord.deploy.events.deploy import Deploy
from gitcoord.deploy.model import all_deploys
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.close import Close
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.handoff.model import open_handoffs
from gitcoord.journal.events.journal import Write
from gitcoord.ledger.event import Decision, Illegal
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.start import Start
from gitcoord.sessions.events.stop import Stop
from gitcoord.sessions.events.unhalt import Unhalt
from tests.ledger.world import World, paths
from tests.races.support import soak
from tests.support import FakeHost

AGENTS = ("alice", "bob", "carol")
PLACES = ("a", "a/b", "a/b/c", "A/b", ".", "e\u0301/x", "é", "\udcff", "x" * 300)
THINGS = ("@gpu", "@gpu", "@db", "@deploy", "@deploy/production")
SECTIONS = {"state": "so far", "changed": "much", "remaining": "little", "next": "the rest"}
ANSWERS_TO_A_REPEAT = {"gone", "halted", "killed", "instance", "session-over"}

# One number a step, from which the step draws its details: hypothesis's own choices of many small things repeat so
# often that histories stay shallow; so it chooses and shrinks the steps, and chance the rest.
seeds = st.integers(0, 1 << 32)


class Chance(Random):
    """The details of one step."""

    def actor(self) -> Actor:
        """Most commands come from agents as they usually are; some from another process, an old session, a child."""
        plain = Actor(self.choice(AGENTS), person=self.random() < 0.5)
        if self.random() < 0.8:
            return plain
        return plain._replace(
            instance=self.choice(["", "one", "two"]),
            session=self.choice([0, 0, 1, 2, 3]),
            parent=self.choice(["", "alice"]),
            join=self.random() < 0.3,
        )

    def places(self, most: int) -> tuple[Item, ...]:
        return paths(*dict.fromkeys(self.choices(PLACES, k=self.randint(1, most))))

    def terms(self) -> dict[str, Any]:
        return {"mode": self.choice(["write", "write", "read", "intent"]), "ttl": self.choice([0, 1, 60, 3600])}


class Ledger(RuleBasedStateMachine):
    """Several agents, two machines with clocks of their own, one ledger."""

    @initialize(fold=st.booleans())
    def begin(self, fold: bool) -> None:
        self.world = World(fold_case=fold)
        self.machines = (self.world.host, FakeHost("another boot", mono=77))
        self.kept: list[Take] = []
        self.handed = 0
        self.count = 0

    def act(self, kind: str, command: Any, machine: int = 0) -> Decision | Refusal:
        return self.world.do(kind, command, self.machines[machine])

    @rule(seed=seeds)
    def take_paths(self, seed: int) -> None:
        chance = Chance(seed)
        self.take(
            Take(chance.actor(), chance.places(3), **chance.terms(), nonce="given" * (chance.random() < 0.3)),
            seed % 4 == 0,
        )

    @rule(seed=seeds)
    def take_a_path(self, seed: int) -> None:
        chance = Chance(seed)
        self.take(Take(chance.actor(), chance.places(1), ttl=chance.choice([0, 60])), False)

    @rule(seed=seeds)
    def take_a_thing(self, seed: int) -> None:
        chance = Chance(seed)
        item = paths(chance.choice(THINGS))
        self.take(Take(chance.actor(), item, **chance.terms(), units=chance.choice([0, 1, 2])), seed % 4 == 0)

    def take(self, command: Take, machine: bool) -> None:
        self.count += 1
        command = command._replace(nonce=f"n{self.count}" if command.nonce else "")
        before, agent = self.world.held(), command.actor.agent
        answer = self.act("claim", command, machine)
        if isinstance(answer, Refusal):
            assert self.world.held() == before
            return
        owns = [own_claim(self.world.state, item, agent) for item in command.items]
        assert all(own is not None and own.mode == command.mode for own in owns), "granted in part"
        if answer.events:
            assert max(own.token for own in owns if own is not None) == answer.result["token"] == self.world.state.seq
            assert all(own is not None and own.token >= answer.events[0].seq for own in owns), "granted in part"
            self.kept += [command] if command.nonce else []

    @precondition(lambda self: self.kept)
    @rule(seed=seeds)
    def repeat(self, seed: int) -> None:
        """The same command under the same nonce gives no second event, whatever happened in between."""
        before, log = dumps(self.world.state.files), len(self.world.log)
        answer = self.act("claim", Chance(seed).choice(self.kept))
        assert (dumps(self.world.state.files), len(self.world.log)) == (before, log), "a second event for one nonce"
        if isinstance(answer, Refusal):
            assert answer.code in ANSWERS_TO_A_REPEAT, answer
        else:
            assert answer.result.get("repeated"), "not told as the repeat for one nonce"

    @rule(seed=seeds)
    def release(self, seed: int) -> None:
        chance = Chance(seed)
        items = chance.choice([(), chance.places(1)])
        self.act("release", Release(chance.actor(), items, dirty=chance.random() < 0.5))

    @rule(seed=seeds)
    def begin_or_end(self, seed: int) -> None:
        chance = Chance(seed)
        who = chance.actor()
        if chance.random() < 0.5:
            self.act("start", Start(who, chance.random() < 0.5), seed % 4 == 0)
        else:
            self.act("stop", Stop(who, chance.random() < 0.8))

    @rule(seed=seeds)
    def start_again(self, seed: int) -> None:
        """`start` takes exactly the expired claims again whose paths are free."""
        chance = Chance(seed)
        who = chance.actor()
        before, record = self.world.held(), self.world.agent(who.agent)
        terms = chance.terms()
        lost = [row for row in record["lost"] if row["cause"] == "expire"] if record is not None else []
        mode, ttl = terms["mode"], terms["ttl"] or 60
        again = tuple(Grant(row["space"], row["path"], 1, mode, ttl, 0, "", "", "", 1) for row in lost)
        answer = self.act("start", Start(who, chance.random() < 0.5, again=again), seed % 4 == 0)
        gained = {(path, agent) for path, agent, _ in self.world.held() - before}
        assert gained <= {(row["path"], who.agent) for row in lost}
        if isinstance(answer, Decision):
            assert before <= self.world.held(), "a start ended a claim"

    @rule(seed=seeds)
    def hand_over(self, seed: int) -> None:
        """An offer changes no claim; accepting moves all that was offered, or nothing."""
        chance = Chance(seed)
        who, before = chance.actor(), self.world.held()
        waiting = open_handoffs(self.world.state)
        if not waiting or chance.random() < 0.4:
            to = chance.choice(["", "", *(name for name in AGENTS if name != who.agent)])
            self.act("handoff", Offer(who, SECTIONS, to, items=chance.choice([(), (), chance.places(1)])))
            assert self.world.held() == before
            return
        row = chance.choice(waiting)
        if chance.random() < 0.2:
            self.act("close", Close(who, row.id, chance.choice(["declined", "withdrawn"]), "because"))
            assert self.world.held() == before
            return
        answer = self.act("accept", Accept(who, row.id), seed % 4 == 0)
        offered = {(space, name) for space, name in row.claims}
        if isinstance(answer, Refusal):
            assert self.world.held() == before
            return
        mine = {(c.space, c.path): c for c in self.world.claims(who.agent)}
        assert offered <= set(mine), "accepted in part"
        assert all(mine[key].token == self.world.state.seq for key in offered), "an old token"
        left = {(c.space, c.path) for c in self.world.claims(row.giver)}
        assert who.agent != row.giver and not offered & left, "the old holder still has it"
        self.handed += 1

    @rule(seed=seeds)
    def write_down(self, seed: int) -> None:
        chance = Chance(seed)
        before = self.world.state.below("journal")
        answer = self.act("journal", Write(chance.actor(), f"entry {seed}", ("a",)))
        after = self.world.state.below("journal")
        assert {key: after[key] for key in before} == before, "an entry was changed"
        assert len(after) == len(before) + isinstance(answer, Decision)

    @rule(seed=seeds)
    def watch_over_them(self, seed: int) -> None:
        chance = Chance(seed)
        who, victim = chance.actor(), chance.choice(AGENTS)
        overseer = who._replace(person=chance.random() < 0.8)  # an agent's own is refused
        every: dict[str, Any] = {
            "kill": Kill(overseer, victim), "revive": Revive(overseer, victim), "halt": Halt(overseer), "unhalt": Unhalt(overseer),
            "expire": Sweep(who), "disown": Disown(who, chance.choice(PLACES), "because"),
        }  # fmt: skip
        kind = chance.choice([*every, "revive", "expire"])
        self.act(kind, every[kind], seed % 2)
        if kind == "halt" and chance.random() < 0.7:
            self.act("unhalt", every["unhalt"])

    @precondition(lambda self: self.world.claims())
    @rule(seed=seeds)
    def takeover(self, seed: int) -> None:
        chance = Chance(seed)
        claim = chance.choice(self.world.claims())
        self.act("takeover", Takeover(chance.actor(), claim.item, claim.token, "because"))

    @precondition(lambda self: self.world.claims())
    @rule(seed=seeds)
    def deploy(self, seed: int) -> None:
        """The result of a deploy is recorded; of the claims only the deployer's own on the target ends."""
        chance = Chance(seed)
        who, before = chance.actor(), self.world.held()
        outcome, code, verify = chance.choice(
            [("ok", 0, 0), ("failed", 1, -1), ("unverified", 0, 1), ("interrupted", 130, -1)]
        )
        token = chance.randint(1, self.world.state.seq)
        answer = self.act("deploy", Deploy(who, "production", chance.choice("12") * 40, outcome, code, verify, token))
        gone = before - self.world.held()
        assert {(path, agent) for path, agent, _ in gone} <= {("deploy/production", who.agent)}, (
            "a deploy freed too much"
        )
        if isinstance(answer, Decision):
            (record,) = all_deploys(self.world.state)
            assert record.last.seq == answer.result["seq"]
            assert record.good is None or (record.good.code == 0 and record.good.verify_code <= 0), "no success"

    @rule(seed=seeds)
    def time_passes(self, seed: int) -> None:
        chance = Chance(seed)
        seconds = chance.choice([1, 40, 100, 2000, 5000, 9 * 86400])
        for machine in self.machines:
            machine.advance(seconds)
        if seconds > 6 * 86400:
            self.kept.clear()  # a nonce is remembered for a week, then it is a new command
        self.machines[seed % 2].sleep(chance.choice([0, 0, 100, 3000]))  # a lid was closed

    @rule(seed=seeds)
    def beat(self, seed: int) -> None:
        self.world.heartbeat(Chance(seed).choice(AGENTS), self.machines[seed % 4 == 0])

    @rule(seed=seeds)
    def work_goes_on(self, seed: int) -> None:
        chance = Chance(seed)
        self.world.dirty = {item.name for item in chance.places(2)}
        self.world.head = chance.choice(["", "1" * 40, "2" * 40])
        self.world.changed = {name: [[f"{name}/f", "100644", "b" * 40]] for name in PLACES if name != "."}
        self.world.landed = {"1" * 40}

    @invariant()
    def what_must_be_true_is_true(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.check_replay()


TestLedger = Ledger.TestCase
TestLedger.settings = settings(stateful_step_count=50)


# --- long histories, and proof that the checker can fail


STEPS = (
    *["take_paths", "take_a_path", "take_a_thing", "time_passes", "beat", "release"] * 3,
    *["repeat", "begin_or_end", "work_goes_on", "takeover", "deploy", "watch_over_them"],
)  # fmt: skip


HANDING = (*STEPS, *["hand_over"] * 8, *["start_again"] * 2, "write_down")


def walk(seed: int, steps: int, among: tuple[str, ...] = STEPS) -> World:
    """A history that hypothesis would be slow to reach; the seed makes it again."""
    chance, machine = Random(seed), Ledger()
    machine.begin(fold=seed % 2 == 0)
    for _ in range(steps):
        step = chance.choice(among)
        if (step == "repeat" and not machine.kept) or (step in ("takeover", "deploy") and not machine.world.claims()):
            continue
        getattr(machine, step)(seed=chance.getrandbits(32))
        machine.world.check()
    machine.world.check_replay()
    return machine.world


@pytest.mark.parametrize("seed", range(soak(6, 24)))
def test_long_histories(seed: int) -> None:
    kinds = {event.kind for event in walk(seed, 400).events()}
    assert {"claim", "release", "expire", "start", "stop"} <= kinds


def test_histories_with_handoffs() -> None:
    """The histories are useful: many handoffs are accepted in them."""
    kinds = [event.kind for seed in range(soak(3, 12)) for event in walk(seed, 400, HANDING).events()]
    assert kinds.count("accept") > 5 and kinds.count("journal") > 3


def test_a_handoff_in_part_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old holder that keeps what it handed over."""
    monkeypatch.setattr("gitcoord.handoff.events.accept.lose", lambda state, event, entries: {})
    broken("old holder|which alice holds|which bob holds|which carol holds", HANDING)


def broken(match: str, among: tuple[str, ...] = STEPS) -> None:
    with pytest.raises((AssertionError, Illegal), match=match):
        for seed in range(20):
            walk(seed, 400, among)


def test_two_writers_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitcoord.claims.model.compatible", lambda held, asked: True)
    monkeypatch.setattr(claim_kind, "compatible", lambda held, asked: True)
    broken("conflict")


def test_overlap_that_is_not_seen_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("gitcoord.claims.model", "gitcoord.claims.events.claim"):
        monkeypatch.setattr(f"{module}.overlapping", lambda state, item: [])
    broken("conflict|too many units")


def test_a_session_that_lives_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A revive that gives back the killed session instead of the name alone."""
    monkeypatch.setattr("gitcoord.sessions.events.revive.ENDED", "open")
    broken("lives again")


def test_an_apply_that_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed agent whose claims are not freed."""
    monkeypatch.setattr("gitcoord.sessions.events.kill.free", lambda state, agent, freed, changes: None)
    broken("a killed agent holds")


def test_a_grant_in_part_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = claim_kind.apply

    def part(state: Any, event: Any) -> Any:
        changes = whole(state, event)
        return dict(list(changes.items())[:1])

    monkeypatch.setattr(claim_kind, "KIND", claim_kind.KIND._replace(apply=part))
    broken("granted in part")


def test_a_second_event_for_one_nonce_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "remembered", lambda *_: None)
    broken("for one nonce")


def test_a_lost_message_is_caught() -> None:
    world = World()
    world.must("claim", Take(Actor("alice"), paths("a")))
    world.check_replay()
    del world.log[1]
    with pytest.raises(AssertionError):
        world.check()
    with pytest.raises(AssertionError):
        world.check_replay()
