"""Claims of an ended session that may pass to another one, as client, server and fsck judge it."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal
from gitcoord.claims.take import Take
from gitcoord.ledger.event import Decision, Event, Illegal, apply
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.inherit import Inherit
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.stop import Stop
from tests.ledger.world import World, paths
from tests.server.test_retrace import judged

ALICE, BOB, ADA = Actor("alice"), Actor("bob"), Actor("ada", person=True)
WANTS = Inherit(BOB, (("src/a", "alice"),))


@pytest.fixture
def world() -> World:
    """Alice claimed two paths; her work is not committed."""
    world = World()
    world.must("claim", Take(ALICE, paths("src/a", "src/b"), reason="half done"))
    world.dirty = {"src/a", "src/b"}
    return world


def refused(world: World, command: Inherit = WANTS) -> str:
    answer = world.decide("inherit", command)
    assert isinstance(answer, Refusal), answer
    return answer.code


def test_an_ended_session_is_inherited_and_the_server_agrees(world: World) -> None:
    world.must("stop", Stop(ALICE, keep=True))
    answer = world.decide("inherit", WANTS)
    assert isinstance(answer, Decision)
    assert not isinstance(judged(world, answer.events), Refusal)
    old = {claim.path: claim for claim in world.claims("alice")}
    world.host.advance(60)
    world.must("inherit", WANTS)
    (mine,) = world.claims("bob")
    assert (mine.path, mine.at, mine.reason, mine.base) == ("src/a", old["src/a"].at, "half done", old["src/a"].base)
    assert mine.token > old["src/a"].token
    assert [claim.path for claim in world.claims("alice")] == ["src/b"]
    assert refused(world) == "inherit"  # it is gone from the one that had it


def test_an_open_session_keeps_what_it_has(world: World) -> None:
    assert refused(world) == "inherit"
    world.host.advance(10_000)  # silent, not ended
    assert refused(world) == "inherit"


def test_a_killed_agent_leaves_nothing(world: World) -> None:
    world.must("stop", Stop(ALICE, keep=True))
    world.must("kill", Kill(ADA, "alice", "wild"))
    assert refused(world) == "inherit"


def test_a_subagent_of_a_killed_agent_leaves_nothing(world: World) -> None:
    sub = Actor("alice.s1", parent="alice")
    world.must("claim", Take(sub, paths("src/c")))
    world.dirty = {"src/c"}
    world.must("stop", Stop(sub, keep=True))
    command = WANTS._replace(claims=(("src/c", "alice.s1"),))
    assert isinstance(world.decide("inherit", command), Decision)
    world.must("kill", Kill(ADA, "alice", "wild"))
    assert refused(world, command) == "inherit"


def test_nothing_passes_while_all_is_halted(world: World) -> None:
    world.must("stop", Stop(ALICE, keep=True))
    world.must("halt", Halt(ADA, "smoke"))
    assert refused(world) == "halted"


def test_what_was_not_left_cannot_be_asked_for(world: World) -> None:
    world.must("stop", Stop(ALICE, keep=True))
    assert refused(world, WANTS._replace(claims=(("src/c", "alice"),))) == "inherit"
    assert refused(world, WANTS._replace(claims=())) == "inherit"


def _forged(world: World, **body: Any) -> Event:
    world.must("claim", Take(BOB, paths("own")))
    row = {"space": "path", "path": "src/a", "agent": "alice", "token": world.claims("alice")[0].token, **body}
    return Event("inherit", world.state.seq + 1, "bob", world.host.wall(), "x", 0, {"session": 1, "claims": [row]})


def test_an_event_that_no_rule_made_is_illegal(world: World) -> None:
    event = _forged(world)
    with pytest.raises(Illegal, match="did not leave"):
        apply(world.state, event)
    assert isinstance(judged(world, [event]), Refusal)
    world.must("stop", Stop(ALICE, keep=True))
    apply(world.state, _forged(world))
    with pytest.raises(Illegal):
        apply(world.state, _forged(world, token=1000))
