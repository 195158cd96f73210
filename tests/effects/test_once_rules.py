"""An effect happens at most once: one beginning under a key, whatever happens to its runner, machine and session."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gitcoord.base.errors import Refusal, UsageError
from gitcoord.effects.events.done import NOT_STARTED, Done
from gitcoord.effects.events.forget import Forget
from gitcoord.effects.events.once import Once
from gitcoord.effects.once import UNDER_WAY, UNKNOWN, check_key, once_file, once_record
from gitcoord.ledger.event import Decision, Event
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.stop import Stop
from tests.ledger.world import World
from tests.server.test_retrace import judged

ALICE, BOB, PERSON = Actor("alice"), Actor("bob"), Actor("ada", person=True)


def begin(world: World, actor: Actor = ALICE, key: str = "k") -> int:
    result = world.must("once", Once(actor, key)).result
    assert result["begun"] is True
    return int(str(result["token"]))


def test_a_repeat_gives_the_first_outcome() -> None:
    world = World()
    token = begin(world)
    assert world.refused("once", Once(BOB, "k")).code == UNDER_WAY
    assert world.refused("once", Once(ALICE, "k")).code == UNDER_WAY, "the same agent is another runner too"
    world.must("done", Done(ALICE, "k", token, 3))
    for actor in (ALICE, BOB):
        answer = world.must("once", Once(actor, "k"))
        assert not answer.events and (answer.result["begun"], answer.result["code"]) == (False, 3)
        assert (answer.result["agent"], answer.result["token"]) == ("alice", token)
    begin(world, BOB, "k/2")
    world.check_replay()


def test_a_key_stands_for_one_file_alone() -> None:
    keys = ["a", "a/b", "a%2Fb", "a.b", ".a", "-a", "a.lock", "a..b", "A", "a:b", "@a", "x" * 80, ":" * 80, "/" * 80]
    good = [key for key in keys if "%" not in key]
    files = [once_file(check_key(key)) for key in good]
    assert len(set(files)) == len(files)
    assert all(file.count("/") == 1 and file.startswith("once/") and len(file) < 250 for file in files)


@pytest.mark.parametrize("key", ["", "x" * 81, "a b", "a\nb", "\x1b[31m", "a%2Fb", "ü", "\u202e", "\ud800", "a\0"])
def test_keys_that_are_none(key: str) -> None:
    for kind, command in (
        ("once", Once(ALICE, key)),
        ("done", Done(ALICE, key, 1, 0)),
        ("forget", Forget(PERSON, key, "x")),
    ):
        with pytest.raises(UsageError):
            World().decide(kind, command)


def test_a_runner_that_is_gone_leaves_the_outcome_unknown() -> None:
    world = World()
    begin(world)
    record = once_record(world.state, "k")
    assert record is not None
    world.runners[record.nonce] = "gone"
    refusal = world.refused("once", Once(BOB, "k"))
    assert refusal.code == UNKNOWN and "--forget" in refusal.hints[1]
    world.runners[record.nonce] = "alive"
    assert world.refused("once", Once(BOB, "k")).code == UNDER_WAY


def test_elsewhere_heartbeats_and_sessions_tell() -> None:
    for end in ("silence", "stop", "kill"):
        world = World()
        begin(world)
        assert world.refused("once", Once(BOB, "k")).code == UNDER_WAY
        if end == "silence":
            world.host.ticks += 10_000_000
        elif end == "stop":
            world.must("stop", Stop(ALICE))
        else:
            world.must("kill", Kill(BOB._replace(person=True), "alice"))
        assert world.refused("once", Once(BOB, "k")).code == UNKNOWN, end


def test_the_end_is_recorded_whatever_became_of_the_session() -> None:
    world = World()
    token = begin(world)
    world.must("stop", Stop(ALICE))
    world.must("halt", Halt(BOB._replace(person=True), "x"))
    world.must("done", Done(ALICE, "k", token, 0))
    assert world.must("once", Once(BOB, "k")).result["code"] == 0, "a known outcome is told, also while halted"
    assert world.refused("once", Once(BOB, "other")).code == "halted"


def test_only_who_began_it_ends_it_and_only_once() -> None:
    world = World()
    token = begin(world)
    assert world.refused("done", Done(BOB, "k", token, 0)).code == "not-held"
    assert world.refused("done", Done(ALICE, "k", token - 1, 0)).code == "not-held"
    with pytest.raises(UsageError):
        world.decide("done", Done(ALICE, "k", token, 256))
    world.must("done", Done(ALICE, "k", token, 0))
    assert world.refused("done", Done(ALICE, "k", token, 1)).code == "not-held"


def test_what_could_not_be_started_did_not_happen() -> None:
    world = World()
    world.must("done", Done(ALICE, "k", begin(world), NOT_STARTED))
    begin(world, BOB)


def test_the_killed_leave_no_outcome() -> None:
    world = World()
    token = begin(world)
    world.must("kill", Kill(BOB._replace(person=True), "alice"))
    assert world.refused("done", Done(ALICE, "k", token, 0)).code == "killed"


def test_a_person_may_let_it_be_tried_again() -> None:
    world = World()
    token = begin(world)
    assert world.refused("forget", Forget(PERSON, "k", "x")).code == UNDER_WAY
    world.must("stop", Stop(ALICE))
    assert world.refused("forget", Forget(BOB, "k", "x")).code == "person"
    world.approvers = ["eve"]
    assert world.refused("forget", Forget(PERSON, "k", "x")).code == "person"
    world.approvers = []
    assert world.refused("forget", Forget(PERSON, "other", "x")).code == "unknown"
    world.must("forget", Forget(PERSON, "k", "it never arrived"))
    assert world.refused("done", Done(ALICE, "k", token, 0)).code == "not-held", "the late end is of another time"
    second = begin(world, BOB)
    assert world.refused("done", Done(ALICE, "k", second, 0)).code == "not-held"
    world.must("done", Done(BOB, "k", second, 1))
    world.must("forget", Forget(PERSON, "k", "it failed"))
    begin(world)


@pytest.mark.parametrize("reason", ["", " ", "a\nb", "\x1b[31m", "\u202e", "x" * 201, "\ud800", "x" * 10_000_000])
def test_reasons_that_are_none(reason: str) -> None:
    world = World()
    begin(world)
    world.must("stop", Stop(ALICE))
    with pytest.raises(UsageError):
        world.decide("forget", Forget(PERSON, "k", reason))


@pytest.mark.parametrize("seed", range(6))
def test_random_histories(seed: int) -> None:
    """Between two memories that a person took away, there is one beginning and at most one end; a server agrees."""
    world, chance = World(), random.Random(seed)
    tokens: dict[str, list[tuple[Actor, int]]] = {"k": [], "l": []}
    for _ in range(150):
        key, actor = chance.choice("kl"), chance.choice([ALICE, BOB])
        world.host.ticks += chance.choice([1000, 40_000])
        known = chance.choice(tokens[key]) if tokens[key] else (actor, 1)
        kind, command = chance.choice(_moves(actor, key, known, chance))
        answer = _judged(world, kind, command)
        if kind == "once" and isinstance(answer, Decision) and answer.events:
            tokens[key].append((actor, answer.events[-1].seq))
    world.check_replay()
    for key in "kl":
        _check(key, [event for event in world.events() if event.body.get("key") == key])


def _moves(actor: Actor, key: str, known: tuple[Actor, int], chance: random.Random) -> list[tuple[str, Any]]:
    code = chance.choice([0, 7, NOT_STARTED])
    return [
        ("once", Once(actor, key)), ("once", Once(actor, key)), ("done", Done(known[0], key, known[1], code)),
        ("done", Done(actor, key, known[1], 0)), ("forget", Forget(PERSON, key, "x")), ("stop", Stop(actor)),
        ("kill", Kill(PERSON, actor.agent)), ("revive", Revive(PERSON, actor.agent)),
    ]  # fmt: skip


def _judged(world: World, kind: str, command: Any) -> Decision | Refusal:
    if isinstance(command, Once):
        command = command._replace(nonce=world.host.random())
    answer = world.decide(kind, command)
    if isinstance(answer, Decision) and answer.events:
        found = judged(world, answer.events, person=command.actor.person)
        assert not isinstance(found, Refusal), (command, found)
    return world.do(kind, command)


def _check(key: str, events: list[Event]) -> None:
    began: tuple[str, int] | None = None
    over = False
    for event in events:
        if event.kind == "once":
            assert began is None, f"{key} began twice: event {event.seq}"
            began, over = (event.agent, event.seq), False
        elif event.kind == "done":
            assert began == (event.agent, event.body["token"]) and not over
            over = True
            began = None if event.body["code"] == NOT_STARTED else began
        else:
            began = None
