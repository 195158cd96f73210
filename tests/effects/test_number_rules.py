"""Numbers of a sequence: never the same twice, and never one that is in use."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.base.errors import CouldNotJudge, Refusal, UsageError
from gitcoord.effects.events.number import LAST, MOST, Number
from gitcoord.effects.sequences import Sequence, number_in, sequences, wrong_pattern
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.start import Start
from tests.ledger.world import World
from tests.server.test_retrace import judged, made

ALICE, BOB = Actor("alice"), Actor("bob")


def given_numbers(world: World, command: Number) -> list[int]:
    answer = world.must("number", command)
    first = answer.result["first"]
    assert isinstance(first, int)
    return list(range(first, first + command.amount))


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(1, 5), st.integers(0, 40), st.sampled_from(["alice", "bob"])),
        max_size=30,
    )
)
def test_no_number_is_given_twice(asked: list[tuple[str, int, int, str]]) -> None:
    world = World()
    seen: dict[str, set[int]] = {"a": set(), "b": set()}
    for sequence, amount, floor, agent in asked:
        numbers = given_numbers(world, Number(Actor(agent), sequence, amount, floor))
        assert seen[sequence].isdisjoint(numbers) and min(numbers) > floor
        assert not seen[sequence] or min(numbers) > max(seen[sequence])
        seen[sequence].update(numbers)
    world.check_replay()


def test_a_server_makes_the_same_number_again() -> None:
    world, chance = World(), random.Random(1)
    for _ in range(30):
        command = Number(Actor(chance.choice(["alice", "bob"])), "m", chance.randint(1, 3), chance.randint(0, 90))
        events = made(world, "number", command)
        assert not isinstance(judged(world, events), Refusal)
        forged = events[0]._replace(body={**events[0].body, "first": events[0].body["first"] - 1})
        assert isinstance(judged(world, [forged]), Refusal)
        world.commit(Decision(events, [], {}))


def test_a_server_makes_the_same_number_with_its_claim_again() -> None:
    world = World()
    for agent in ("alice", "bob", "alice"):
        command = Number(Actor(agent), "m", file="m/{n}_x", width=3, base="1" * 40)
        events = made(world, "number", command)
        assert [event.kind for event in events][-2:] == ["claim", "number"]
        assert not isinstance(judged(world, events), Refusal)
        other = events[-1]._replace(body={**events[-1].body, "first": 9})
        assert isinstance(judged(world, [*events[:-1], other]), Refusal)
        world.commit(Decision(events, [], {}))


def test_nobody_needs_a_session_and_whoever_has_one_beats() -> None:
    world = World()
    world.must("number", Number(ALICE, "m"))
    assert world.agent("alice") is None and not world.beats
    world.must("start", Start(ALICE))
    before = world.beats["alice"]
    world.host.ticks += 60_000
    world.must("number", Number(ALICE, "m"))
    assert world.beats["alice"].mono > before.mono


def test_who_may_not() -> None:
    world = World()
    world.must("start", Start(ALICE._replace(instance="one")))
    assert world.refused("number", Number(ALICE._replace(instance="two"), "m")).code == "instance"
    assert world.refused("number", Number(ALICE._replace(session=9), "m")).code == "session-over"
    world.must("kill", Kill(BOB._replace(person=True), "alice"))
    assert world.refused("number", Number(ALICE, "m")).code == "killed"
    world.must("halt", Halt(BOB._replace(person=True), "x"))
    assert world.refused("number", Number(BOB, "m")).code == "halted"


def test_the_last_number_is_the_last() -> None:
    world = World()
    assert given_numbers(world, Number(ALICE, "m", 1, LAST - 1)) == [LAST]
    assert world.refused("number", Number(ALICE, "m")).code == "exhausted"
    assert given_numbers(world, Number(ALICE, "other")) == [1]


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "\x1b[31m", "x" * 65, "-x", ".x", "\ud800", "a\nSeq: 9"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UsageError):
        World().decide("number", Number(ALICE, name))


@pytest.mark.parametrize("amount", [0, -1, MOST + 1])
def test_amounts_that_are_none(amount: int) -> None:
    with pytest.raises(UsageError):
        World().decide("number", Number(ALICE, "m", amount))


# --- the settings --------------------------------------------------------------------------------------------------


def test_what_the_settings_say() -> None:
    pairs = [("sequence.m.pattern", "m/*.sql"), ("sequence.m.pattern", "n/*.sql"), ("sequence.m.start", "100")]
    pairs += [("sequence.m.width", "4"), ("sequence.Port.start", "8000"), ("resource.m.capacity", "2")]
    found = sequences(pairs)
    assert found["m"] == Sequence("m", ("m/*.sql", "n/*.sql"), 100, 4, True) and found["Port"].start == 8000
    assert (found["m"].written(7), found["m"].written(12345), found["Port"].written(7)) == ("0007", "12345", "7")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("start", "0"), ("start", "-1"), ("start", "x"), ("start", "9" * 16), ("width", "16"), ("width", "٣")],
)
def test_settings_that_make_no_sense(setting: str, value: str) -> None:
    with pytest.raises(CouldNotJudge, match="sequence"):
        sequences([(f"sequence.m.{setting}", value)])


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/m/*",
        "../m/*",
        "m/../*",
        "m//x",
        ":(exclude)m",
        "m/",
        "m/[0-9*.sql",
        "m/[",
        "m/[]",
        "m/[!",
        "m/x\\",
        "m/\x1b",
    ],
)
def test_patterns_that_match_nothing_are_named(pattern: str) -> None:
    assert wrong_pattern(pattern)
    with pytest.raises(CouldNotJudge, match="pattern"):
        sequences([("sequence.m.pattern", pattern)])


@pytest.mark.parametrize("pattern", ["m/[0-9]*_*.sql", "**/*.md", "m/[]x]*", "m/[!a]*", "m/\\[x", "m/[a]b]*"])
def test_patterns_that_are_fine(pattern: str) -> None:
    assert wrong_pattern(pattern) == ""


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("m/0042_x.sql", 42), ("m9/x.sql", 0), ("m/x12y34.sql", 12), ("20240101120000_add.rb", 20240101120000),
        ("0" * 30 + "7.sql", 7), ("9" * 15, 10**15 - 1), ("9" * 16 + ".sql", 0), ("m/٣.sql", 0), ("m/000.sql", 0),
    ],
)  # fmt: skip
def test_the_number_in_a_name(path: str, number: int) -> None:
    assert number_in(path) == number
