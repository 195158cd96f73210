"""The journal as a rule: append-only, for the living, and nothing in it that harms a reader."""

from __future__ import annotations

import pytest

from gitcoord.base.codec import decode_file, encode_file
from gitcoord.base.errors import Refusal, UsageError
from gitcoord.claims.take import Take
from gitcoord.journal.events.journal import Write
from gitcoord.journal.service import Since, parse_since
from gitcoord.ledger.event import Decision, Illegal, apply
from gitcoord.ledger.nonces import day
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from tests.ledger.world import World, paths
from tests.server.test_retrace import judged

ALICE = Actor("alice")


def test_an_entry_is_a_file_and_opens_no_session() -> None:
    world = World()
    world.host.now = 1_900_000_000  # 2030-03-17T17:46:40Z
    answer = world.must("journal", Write(ALICE, "  one\r\ntwo  \n", ("src//a.py",), "t5"))
    file = f"journal/2030-03-17/17/46/{world.state.seq}-alice.md"
    assert answer.result["file"] == file and world.agent("alice") is None
    record = world.state.get(file)
    assert record is not None and record["text"] == "  one\ntwo\n"
    assert (record["paths"], record["task"]) == (["src/a.py"], "t5")
    assert decode_file(file, encode_file(file, record)) == record
    world.check_replay()


def test_it_beats() -> None:
    world = World()
    world.must("claim", Take(ALICE, paths("a")))
    world.host.advance(60)
    assert world.must("journal", Write(ALICE, "still here")).beats


def test_who_may_not() -> None:
    world = World()
    world.must("claim", Take(Actor("alice", "one"), paths("a")))
    assert world.refused("journal", Write(Actor("alice", "two"), "x")).code == "instance"
    world.must("kill", Kill(Actor("bob", person=True), "alice"))
    assert world.refused("journal", Write(ALICE, "x")).code == "killed"
    world.must("halt", Halt(Actor("bob", person=True), ""))
    assert world.refused("journal", Write(Actor("carol"), "x")).code == "halted"


@pytest.mark.parametrize(
    "text", ["", " \n\n", "\x1b[2J", "a\x00b", "\u202eevil", "\udcff", "x" * 70_000, "y" * 10_000_000]
)
def test_texts_that_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        World().decide("journal", Write(ALICE, text))
    assert error.value.message.isprintable() and len(error.value.message) < 200


@pytest.mark.parametrize(
    "text", ["---\nv: 1\n---\n", "Seq: 9\nKind: kill", "\n\nSeq: 9", "[x](http://e)", "tab\there", "é 🎉"]
)
def test_texts_that_only_look_dangerous_are_kept(text: str) -> None:
    world = World()
    answer = world.must("journal", Write(ALICE, text))
    record = world.state.get(str(answer.result["file"]))
    assert record is not None and record["text"].strip() == text.strip() and record["seq"] == world.state.seq
    file = str(answer.result["file"])
    assert decode_file(file, encode_file(file, record)) == record
    assert "\n" not in world.log[-1].split(b"\n\n")[0].decode()
    world.check_replay()


def test_an_entry_is_never_replaced() -> None:
    world = World()
    answer = world.decide("journal", Write(ALICE, "one"))
    assert isinstance(answer, Decision)
    (event,) = answer.events
    state = world.state.patched({str(answer.result["file"]): {"v": 1, "text": "before"}})
    with pytest.raises(Illegal):
        apply(state, event)
    for wrong in ({"text": ""}, {"text": "esc \x1b"}, {"paths": ["../x"]}, {"task": "no task"}):
        with pytest.raises(Illegal):
            apply(world.state, event._replace(body={**event.body, **wrong}))


def test_it_is_retraced() -> None:
    world = World()
    answer = world.decide("journal", Write(ALICE, "one", ("a",), "t1"))
    assert isinstance(answer, Decision) and not isinstance(judged(world, answer.events), Refusal)


@pytest.mark.parametrize(
    ("word", "since"),
    [
        ("", Since()), ("120", Since(seq=120)), ("2h", Since(at=1_000_000 - 7200)), ("1970-01-01", Since(at=0)),
        ("2000-02-29", Since(at=951_782_400)), ("2030-03-17T17:46", Since(at=1_899_999_960)), ("2030-03-17 17", Since(at=1_899_997_200)),
    ],
)  # fmt: skip
def test_since(word: str, since: Since) -> None:
    assert parse_since(word, 1_000_000) == since


@pytest.mark.parametrize("word", ["yesterday", "2001-02-29", "2030-13-01", "2030-01", "-5", "2030-01-01T25:00", "١٢"])
def test_no_point_in_the_story(word: str) -> None:
    with pytest.raises(UsageError):
        parse_since(word, 1_000_000)


def test_dates_and_days_agree() -> None:
    for at in range(0, 10**11, 86400 * 997):
        assert parse_since(day(at), 0).at == at
