"""Sessions, one rule at a time: expiry and its clocks, instances, ends, kills, children, and what an end leaves."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.codec import Malformed
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.release import Release
from gitcoord.claims.take import Take
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import (
    MAX_SKEW,
    SLOT_MS,
    Actor,
    Heartbeat,
    Seen,
    decode_heartbeat,
    encode_heartbeat,
    expiry_of,
    next_heartbeat,
)
from gitcoord.ledger.state import State
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.revive import decide as decide_revive
from gitcoord.sessions.events.start import Start
from gitcoord.sessions.events.stop import Stop
from gitcoord.sessions.events.unhalt import Unhalt
from tests.ledger.world import Outside, World, paths
from tests.support import BOOT, START, FakeHost

ALICE, BOB, CAROL = Actor("alice"), Actor("bob"), Actor("carol")
ADA = Actor("ada", person=True)


@pytest.fixture
def world() -> World:
    return World()


def take(world: World, who: Actor, *names: str, **more: Any) -> Decision:
    return world.must("claim", Take(who, paths(*names), **more))


def state_of(world: World, name: str) -> tuple[str, int]:
    record = world.agent(name)
    assert record is not None
    return record["state"], record["session"]


# --- silence


def verdict(world: World, ttl: int = 60, *, host: FakeHost | None = None, session: int = 1) -> tuple[bool, str]:
    found = expiry_of(State(), world.outside(host), "alice", session, ttl)
    assert (found.expires_in == 0) or not found.expired
    return found.expired, found.rule


def beat(world: World, **more: Any) -> None:
    base = Heartbeat("", "alice", BOOT, 1, world.host.mono(), world.host.wall(), SLOT_MS)
    world.commit(Decision([], [base._replace(**more)], {}))


@pytest.mark.parametrize(("milliseconds", "silent"), [(0, False), (60_000, False), (90_000, False), (90_001, True)])
def test_on_one_machine_the_clock_decides(world: World, milliseconds: int, silent: bool) -> None:
    """The ttl counts from the end of the slot: the agent may have been alive until then."""
    beat(world)
    world.host.ticks += milliseconds
    assert verdict(world) == (silent, "same clock")


@pytest.mark.parametrize("ttl", [1, 60, 1800])
@pytest.mark.parametrize("boot", [BOOT, "another boot"])
def test_it_is_told_when_a_claim_may_be_expired(world: World, ttl: int, boot: str) -> None:
    """The time is exact: not before it, and right after. A slot may be longer than the ttl."""
    world.host.ticks += 17_000
    beat(world, mono=world.host.ticks - world.host.ticks % SLOT_MS)
    looks = FakeHost(boot, mono=world.host.ticks)
    verdict(world, ttl, host=looks)  # at first sight
    looks.advance(1)
    told = expiry_of(State(), world.outside(looks), "alice", 1, ttl).expires_in
    assert told is not None and told >= ttl
    looks.advance(told - 1)
    assert verdict(world, ttl, host=looks)[0] is False
    looks.advance(2)
    assert verdict(world, ttl, host=looks)[0] is True


def test_a_closed_lid_expires_nobody(world: World) -> None:
    beat(world)
    world.host.sleep(10 * 86400)
    assert verdict(world) == (False, "same clock")


def test_another_machine_watches_for_longer(world: World) -> None:
    beat(world)
    other = FakeHost("another boot", mono=5)
    assert verdict(world, host=other) == (False, "watched")
    other.advance(72 + SLOT_MS // 1000)  # the holder beats once a slot at most
    assert verdict(world, host=other) == (False, "watched")
    other.ticks += 1
    assert verdict(world, host=other) == (True, "watched")


def test_a_beat_in_between_starts_the_watch_anew(world: World) -> None:
    other = FakeHost("another boot")
    beat(world)
    verdict(world, host=other)
    other.advance(70)
    world.host.advance(40)
    beat(world)
    assert verdict(world, host=other) == (False, "watched")
    other.advance(70 + SLOT_MS // 1000)
    assert verdict(world, host=other)[0] is False
    other.advance(3)
    assert verdict(world, host=other)[0] is True


def test_a_reboot_is_another_machine(world: World) -> None:
    beat(world)
    later = FakeHost("boot after that", wall=world.host.wall() + 100, mono=1)
    assert verdict(world, host=later) == (False, "watched")


def test_older_than_any_skew(world: World) -> None:
    beat(world)
    limit = START + SLOT_MS // 1000 + 60 + MAX_SKEW
    assert verdict(world, host=FakeHost("other", wall=limit)) == (False, "watched")
    assert verdict(world, host=FakeHost("other", wall=limit + 1)) == (True, "older than any skew")


def test_a_clock_that_runs_behind_expires_nobody(world: World) -> None:
    beat(world)
    assert verdict(world, host=FakeHost("other", wall=0)) == (False, "watched")


def test_first_sight_counts_as_a_beat(world: World) -> None:
    found = expiry_of(State(), world.outside(FakeHost("other")), "alice", 1, 60)
    assert (found.expired, found.expires_in) == (False, 72)
    seen = Seen("", "yet another", 0)  # what it saw before was something else

    class Elsewhere(Outside):
        def first_seen(self, agent: str) -> Seen | None:
            return seen

    world.beats["alice"] = Heartbeat("f" * 40, "alice", BOOT, 1, 0, START, SLOT_MS)
    found = expiry_of(State(), Elsewhere(world, FakeHost("yet another")), "alice", 1, 60)
    assert (found.rule, found.expires_in) == ("first sight", 72 + SLOT_MS // 1000)


def test_a_missing_beat_is_watched(world: World) -> None:
    assert verdict(world) == (False, "watched")
    world.host.advance(73)
    assert verdict(world) == (True, "watched")


def test_sightings_of_another_boot_do_not_count(world: World) -> None:
    beat(world)
    other = FakeHost("other")
    verdict(world, host=other)
    again = FakeHost("other after its reboot", mono=other.mono() + 10**9)
    assert verdict(world, host=again) == (False, "watched")


def test_a_tombstone_and_a_newer_session_end_the_old_one(world: World) -> None:
    beat(world, killed=7)
    assert verdict(world) == (True, "killed")
    assert verdict(world, session=2)[0] is False
    beat(world, session=2)
    assert verdict(world) == (True, "session over")
    assert verdict(world, session=2) == (False, "same clock")


@pytest.mark.parametrize(("ttl", "slot"), [(0, 30_000), (1800, 30_000), (60, 20_000), (3, 1000), (1, 333)])
def test_a_slot_is_at_most_a_third_of_the_ttl(world: World, ttl: int, slot: int) -> None:
    made = next_heartbeat(None, "alice", 1, world.outside(), ttl)
    assert made is not None and made.slot == slot and made.mono % slot == 0 and made.mono <= world.host.mono()


def test_one_beat_a_slot(world: World) -> None:
    take(world, ALICE, "a")
    first = world.beats["alice"]
    world.heartbeat("alice")
    assert world.beats["alice"] is first
    world.host.advance(30)
    world.heartbeat("alice")
    assert world.beats["alice"].mono == first.mono + 30_000


def test_beats_are_strict() -> None:
    good = Heartbeat("", "alice", BOOT, 1, 2, 3, 4)
    assert decode_heartbeat("", encode_heartbeat(good)) == good
    for data in (
        b"{}",
        b"[]",
        b"",
        encode_heartbeat(good).replace(b'"v":1', b'"v":2'),
        encode_heartbeat(good).replace(b":3", b":true"),
        encode_heartbeat(good).replace(b'"slot":4,', b""),
        encode_heartbeat(good) * 2,
    ):
        with pytest.raises(Malformed):
            decode_heartbeat("", data)


# --- expiry


def test_asking_takes_what_has_expired(world: World) -> None:
    take(world, ALICE, "a", ttl=60)
    take(world, ALICE, "b", ttl=3600)
    world.host.advance(200)
    decision = take(world, BOB, "a")
    assert [event.kind for event in decision.events] == ["expire", "start", "claim"]
    evidence = decision.events[0].body["claims"][0]
    assert evidence["agent"] == "alice" and evidence["rule"] == "same clock" and len(evidence["beat"]) == 40
    judged = next(beat for beat in decision.beats if beat.agent == "alice")
    assert judged.judged == decision.events[0].seq
    assert world.held() == {("a", "bob", "write"), ("b", "alice", "write")}
    assert state_of(world, "alice") == ("open", 1)  # expiry ends that claim only


def test_the_loser_is_told_once(world: World) -> None:
    take(world, ALICE, "a", ttl=60)
    world.host.advance(200)
    take(world, BOB, "a")
    assert "lost to bob" in world.refused("release", Release(ALICE, paths("a"))).message
    record = world.agent("alice")
    assert record is not None and [entry["path"] for entry in record["lost"]] == ["a"]
    take(world, ALICE, "b")
    record = world.agent("alice")
    assert record is not None and record["lost"] == []


def test_the_holders_own_next_command_goes_on(world: World) -> None:
    take(world, ALICE, "a", ttl=60)
    world.host.advance(1000)
    take(world, ALICE, "b")
    world.refused("claim", Take(BOB, paths("a")))


def test_a_holders_own_sweep_beats_first(world: World) -> None:
    """Until an expiry exists, the holder's own next command goes on: it must not expire itself."""
    take(world, ALICE, "a", ttl=60)
    world.host.advance(1000)
    world.must("expire", Sweep(ALICE))
    assert world.held() == {("a", "alice", "write")}


def test_a_sweep_expires_all_that_may_be(world: World) -> None:
    take(world, ALICE, "a", "b", ttl=60)
    take(world, BOB, "c", ttl=3600)
    take(world, ALICE, "d", "e", ttl=7200)
    assert world.must("expire", Sweep(CAROL)).events == []
    world.host.advance(1000)
    assert len(world.must("expire", Sweep(CAROL)).events) == 1
    assert world.held() == {("c", "bob", "write"), ("d", "alice", "write"), ("e", "alice", "write")}


# --- instances


def one(name: str = "alice", instance: str = "conversation-1", **more: Any) -> Actor:
    return Actor(name, instance)._replace(**more)


def test_two_processes_under_one_live_name(world: World) -> None:
    take(world, one(), "a")
    for kind, command in (("claim", Take(one(instance="2"), paths("b"))), ("start", Start(one(instance="2")))):
        assert world.refused(kind, command).code == "instance"
    take(world, one(instance="2", join=True), "b")
    take(world, ALICE, "c")  # where no instance is known, the name is trusted
    assert state_of(world, "alice") == ("open", 1)


def test_a_process_that_is_known_to_be_gone_is_superseded(world: World) -> None:
    take(world, one(), "a")
    world.gone = "another"
    assert world.refused("start", Start(one(instance="2"), fresh=True)).code == "instance"
    world.gone = one().instance
    decision = world.must("start", Start(one(instance="2"), fresh=True))
    assert [event.kind for event in decision.events] == ["stop", "start", "claim"]
    assert world.held() == {("a", "alice", "write")}
    assert world.refused("claim", Take(one(session=1), paths("b"))).code == "session-over"


@pytest.mark.parametrize("kind", ["release", "stop"])
def test_another_process_may_not_give_back_what_is_not_its_own(world: World, kind: str) -> None:
    take(world, one(), "a")
    command = Release(one(instance="2")) if kind == "release" else Stop(one(instance="2"))
    world.do(kind, command)
    assert world.held() == {("a", "alice", "write")}


def test_a_silent_session_is_superseded(world: World) -> None:
    take(world, one(), "a")
    world.host.advance(4000)
    decision = take(world, one(instance="2"), "b")
    # What the silent session held goes on with the name, as a grant of the new session.
    assert [event.kind for event in decision.events] == ["stop", "start", "claim", "claim"]
    assert world.held() == {("a", "alice", "write"), ("b", "alice", "write")}
    assert state_of(world, "alice") == ("open", 2)
    assert world.refused("claim", Take(one(session=1), paths("a"))).code == "session-over"


def test_a_fresh_start_insists_on_a_session_of_its_own(world: World) -> None:
    world.must("start", Start(one(), fresh=True))
    assert world.refused("start", Start(one(), fresh=True)).code == "instance"
    assert world.must("start", Start(one())).result["opened"] is False
    world.host.advance(4000)
    assert world.must("start", Start(one(), fresh=True)).result["session"] == 2


def test_a_fresh_start_goes_on_with_what_a_claim_opened(world: World) -> None:
    """A claim made for an agent before its launch does not prevent the launch."""
    take(world, ALICE, "a")
    decision = world.must("start", Start(one(), fresh=True))
    assert decision.result["session"] == 2 and world.held() == {("a", "alice", "write")}
    assert world.refused("start", Start(one(instance="2"), fresh=True)).code == "instance"


def test_a_session_that_is_over_does_nothing_more(world: World) -> None:
    assert world.must("start", Start(ALICE)).result["session"] == 1
    zombie = ALICE._replace(session=1)
    take(world, zombie, "a")
    world.must("stop", Stop(zombie))
    assert world.refused("claim", Take(zombie, paths("a"))).code == "session-over"
    assert world.refused("start", Start(zombie)).code == "session-over"
    assert world.must("stop", Stop(zombie)).result["stopped"] is False
    take(world, ALICE, "a")
    assert state_of(world, "alice") == ("open", 2)


def test_a_session_that_is_over_releases_nothing_of_the_next(world: World) -> None:
    zombie = ALICE._replace(session=1)
    take(world, ALICE, "a")
    world.must("stop", Stop(ALICE))
    take(world, ALICE, "b")
    world.do("release", Release(zombie))
    assert world.held() == {("b", "alice", "write")}


# --- ends


def test_stop_releases(world: World) -> None:
    take(world, ALICE, "a", "@gpu")
    decision = world.must("stop", Stop(ALICE))
    assert [event.kind for event in decision.events] == ["release", "stop"]
    assert world.held() == set() and state_of(world, "alice") == ("ended", 1)
    assert world.must("stop", Stop(ALICE)).events == []


def test_uncommitted_work_is_kept_until_its_ttl(world: World) -> None:
    take(world, ALICE, "a", "b", ttl=600)
    world.dirty = {"a"}
    assert world.refused("stop", Stop(ALICE)).code == "dirty"
    assert world.must("stop", Stop(ALICE, keep=True)).result["kept"] == ["a"]
    assert world.held() == {("a", "alice", "write")}
    world.refused("claim", Take(BOB, paths("a")))
    world.host.advance(1000)
    take(world, BOB, "a")
    assert world.held() == {("a", "bob", "write")}
    take(world, ALICE, "b")
    assert state_of(world, "alice") == ("open", 2)


def test_kept_claims_go_on_in_the_next_session(world: World) -> None:
    take(world, ALICE, "a", "b", ttl=600, reason="why", base="0" * 40)
    world.dirty = {"a", "b"}
    world.must("stop", Stop(ALICE, keep=True))
    world.dirty = {"a"}
    world.must("release", Release(ALICE, paths("b")))
    decision = world.must("start", Start(ALICE))
    assert [event.kind for event in decision.events] == ["start", "claim"]
    (claim,) = world.claims()
    assert (claim.session, claim.reason, claim.base, claim.ttl) == (2, "why", "0" * 40, 600)
    assert claim.token == world.state.seq
    world.check()


def test_children_end_with_their_parent(world: World) -> None:
    world.must("start", Start(ALICE))
    take(world, Actor("child", parent="alice"), "c")
    take(world, Actor("grandchild", parent="child"), "g")
    take(world, BOB, "b")
    world.must("stop", Stop(ALICE))
    assert state_of(world, "child")[0] == state_of(world, "grandchild")[0] == "ended"
    assert world.held() == {("b", "bob", "write"), ("c", "child", "write"), ("g", "grandchild", "write")}
    # Whoever watched over the child gives back what is committed, though the session is over.
    world.must("stop", Stop(Actor("child", session=1)))
    assert world.held() == {("b", "bob", "write"), ("g", "grandchild", "write")}


def test_children_end_with_a_superseded_parent(world: World) -> None:
    world.must("start", Start(one()))
    take(world, Actor("child", parent="alice"), "c")
    world.host.advance(4000)
    world.must("start", Start(one(instance="2")))
    assert state_of(world, "child")[0] == "ended"


def test_a_circle_of_parents_ends(world: World) -> None:
    take(world, Actor("alice", parent="bob"), "a")
    take(world, Actor("bob", parent="alice"), "b")
    world.must("stop", Stop(ALICE))
    assert world.held() == {("b", "bob", "write")}  # until its ttl


# --- kill and revive


def test_a_kill_is_for_good(world: World) -> None:
    take(world, ALICE, "a")
    take(world, Actor("child", parent="alice"), "c")
    decision = world.must("kill", Kill(ADA, "alice", "loops"))
    assert decision.beats[0].killed == decision.events[0].seq
    assert (
        world.held() == {("c", "child", "write")}
        and state_of(world, "alice") == ("killed", 1)
        and state_of(world, "child")[0] == "ended"
    )
    for kind, command in (
        ("claim", Take(ALICE, paths("a"))), ("start", Start(ALICE)), ("release", Release(ALICE)), ("stop", Stop(ALICE)),
        ("unhalt", Unhalt(ALICE)), ("halt", Halt(ALICE)), ("kill", Kill(ALICE, "child")), ("expire", Sweep(ALICE)),
    ):  # fmt: skip
        assert world.refused(kind, command).code == "killed"
    assert world.must("kill", Kill(ADA, "alice")).events == []
    assert world.refused("kill", Kill(ADA, "nobody")).code == "no-agent"


def test_killed_agents_cannot_revive_each_other(world: World) -> None:
    for who in (ALICE, BOB, CAROL):
        world.must("start", Start(who))
    world.must("kill", Kill(ADA, "alice"))
    world.must("kill", Kill(ADA, "carol"))
    assert world.refused("revive", Revive(ALICE, "carol")).code == "killed"


def test_revive_lets_the_name_open_a_new_session(world: World) -> None:
    take(world, ALICE, "a")
    world.must("kill", Kill(ADA, "alice"))
    assert world.refused("revive", Revive(ALICE, "alice")).code == "killed"
    assert world.refused("revive", Revive(BOB, "alice")).code == "person"
    world.must("revive", Revive(ADA, "alice"))
    assert state_of(world, "alice") == ("ended", 1)
    assert world.must("revive", Revive(BOB, "alice")).events == []
    refusal = world.refused("claim", Take(ALICE._replace(session=1), paths("a")))
    assert refusal.code == "session-over"
    assert refusal.hints[0] == "start anew: git coord run --as alice -- <command>"
    take(world, ALICE, "a")
    assert state_of(world, "alice") == ("open", 2)


def test_a_kill_works_while_halted(world: World) -> None:
    take(world, ALICE, "a")
    world.must("halt", Halt(ADA))
    world.must("kill", Kill(ADA, "alice"))
    assert world.refused("revive", Revive(BOB, "alice")).code == "halted"


def test_a_tombstone_alone_is_a_kill(world: World) -> None:
    """The other half of a torn kill: the ledger does not know it yet, and the session is dead all the same."""
    take(world, ALICE, "a")
    tomb = Heartbeat("", "alice", BOOT, 1, world.host.mono(), world.host.wall(), 1, killed=9)
    world.commit(Decision([], [tomb], {}))
    assert world.refused("claim", Take(ALICE, paths("b"))).code == "killed"
    take(world, BOB, "a")


def test_a_revival_reads_the_tombstone(world: World) -> None:
    """A transaction records a kill by each tombstone that its rule has read. Else the name would stay dead, and the hint be vain."""
    take(world, ALICE, "a")
    world.commit(Decision([], [Heartbeat("", "alice", BOOT, 1, world.host.mono(), world.host.wall(), 1, killed=9)], {}))
    asked: list[str] = []

    class Reads(Outside):
        def heartbeat(self, agent: str) -> Heartbeat | None:
            asked.append(agent)
            return super().heartbeat(agent)

    decide_revive(world.state, Revive(ADA, "alice"), Reads(world, world.host))
    assert "alice" in asked


def test_an_ended_agent_may_be_killed(world: World) -> None:
    take(world, ALICE, "a")
    world.dirty = {"a"}
    world.must("stop", Stop(ALICE, keep=True))
    world.must("kill", Kill(ADA, "alice"))
    assert world.held() == set() and state_of(world, "alice") == ("killed", 1)


# --- people are above agents


def test_an_agent_stops_nobody_that_it_did_not_launch(world: World) -> None:
    for who in (ALICE, BOB, Actor("alice.smith"), ADA):
        world.must("start", Start(who))
    for target in ("bob", "alice.smith", "ada", "alice"):
        refusal = world.refused("kill", Kill(ALICE, target))
        assert refusal.code == "person" and refusal.hints, target
    assert world.refused("halt", Halt(ALICE)).code == "person"


def test_an_agent_ends_its_own_subagents_and_workers(world: World) -> None:
    world.must("start", Start(ALICE))
    for name, parent in (("alice.sub", "alice"), ("worker", "alice"), ("grandchild", "worker"), ("cousin", "bob")):
        take(world, Actor(name, parent=parent), name)
    assert world.refused("kill", Kill(Actor("worker", parent="alice"), "alice")).code == "person"
    for name in ("grandchild", "alice.sub", "worker"):
        world.must("kill", Kill(ALICE, name))
    assert world.held() == {("cousin", "cousin", "write")}
    assert world.refused("kill", Kill(ALICE, "cousin")).code == "person"


def test_a_circle_of_parents_gives_no_right_over_others(world: World) -> None:
    take(world, Actor("carol", parent="bob"), "a")
    take(world, Actor("bob", parent="carol"), "b")
    assert world.refused("kill", Kill(ALICE, "bob")).code == "person"


def test_anybody_records_the_kill_whose_tombstone_is_there(world: World) -> None:
    take(world, ALICE, "a")
    tomb = Heartbeat("", "alice", BOOT, 1, world.host.mono(), world.host.wall(), 1, killed=9)
    world.commit(Decision([], [tomb], {}))
    world.must("kill", Kill(BOB, "alice"))
    assert state_of(world, "alice") == ("killed", 1)


def test_a_person_who_was_killed_acts_again(world: World) -> None:
    """Also while halted: it lifts the halt afterwards."""
    grace = Actor("grace", person=True)
    for who in (ADA, grace):
        world.must("start", Start(who))
    world.must("kill", Kill(grace, "ada"))
    world.must("halt", Halt(grace))
    world.must("kill", Kill(grace, "grace"))
    for kind, command in (("unhalt", Unhalt(ADA)), ("revive", Revive(ADA, "grace"))):
        assert world.refused(kind, command).code in ("killed", "halted")
    assert world.refused("revive", Revive(Actor("ada"), "ada")).code == "halted", "an agent under that name"
    world.must("revive", Revive(ADA, "ada"))
    world.must("unhalt", Unhalt(ADA))
    world.must("revive", Revive(ADA, "grace"))
