"""Acknowledgements of the rules: which agent has read which version."""

from __future__ import annotations

import pytest

from gitcoord.base.errors import CouldNotJudge, Refusal, UsageError
from gitcoord.gates.events.ack import Ack
from gitcoord.gates.model import has_read, reader
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.parse import parse_policy
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.start import Start
from tests.ledger.world import World
from tests.server.test_retrace import judged, made

ALICE = Actor("alice")


def oid(number: int) -> str:
    return f"{number:040x}"


def versions(world: World) -> list[str]:
    return [row.version for row in reader(world.state, "alice").read]


def test_the_last_few_versions_count() -> None:
    world = World()
    assert world.must("ack", Ack(ALICE, oid(1))).result["changed"] is True
    assert not world.must("ack", Ack(ALICE, oid(1))).events
    for number in range(2, 12):
        world.must("ack", Ack(ALICE, oid(number)))
    assert versions(world) == [oid(number) for number in range(4, 12)]
    world.must("ack", Ack(ALICE, oid(5)))
    assert versions(world)[-1] == oid(5) and len(versions(world)) == 8
    assert has_read(world.state, "alice.sub.1", oid(5)) and not has_read(world.state, "alicesub", oid(5))
    assert not has_read(world.state, "alice", oid(1)) and not has_read(world.state, "alice", oid(12))
    world.check_replay()


def test_a_server_agrees_and_the_killed_have_no_say() -> None:
    world = World()
    events = made(world, "ack", Ack(ALICE, oid(1)))
    assert not isinstance(judged(world, events), Refusal)
    world.must("start", Start(ALICE))
    world.must("kill", Kill(Actor("bob", person=True), "alice"))
    assert world.refused("ack", Ack(ALICE, oid(1))).code == "killed"
    assert judged(world, [events[0]._replace(seq=world.state.seq + 1)]).code == "killed"
    with pytest.raises(UsageError):
        world.decide("ack", Ack(ALICE, "\x1b[31m"))


def test_a_setting_that_means_nothing() -> None:
    with pytest.raises(CouldNotJudge, match=r"rules\.ack"):
        parse_policy([("rules.ack", "perhaps")])
