"""A client from before the queue overtakes nobody at a server. `tests/ledger/test_newer_version.py` has what older clients are told."""

from __future__ import annotations

from gitcoord.base.errors import Refusal
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.release import decide as decide_release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.take import Take
from gitcoord.claims.take import decide as decide_take
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from tests.ledger.world import World, paths
from tests.server.test_retrace import judged

ALICE, BOB, OLD = Actor("alice"), Actor("bob"), Actor("old")


def _without_requests(state: State) -> State:
    """The state as a client sees it that knows of no requests."""
    return State({key: record for key, record in state.files.items() if not key.startswith("waits/")}, seq=state.seq)


def test_at_a_server_it_overtakes_nobody() -> None:
    """It has decided on what it knows, and its push comes after somebody's wait."""
    world = World()
    for actor, name in ((ALICE, "a"), (Actor("carol"), "c")):
        world.must("claim", Take(actor, paths(name)))
    world.must("wait", Wait(BOB, paths("a", "b")))
    seen, outside = _without_requests(world.state), world.outside()
    answers = {
        "passes bob and does not count it": decide_take(seen, Take(OLD, paths("b")), outside),
        "frees and does not grant": decide_release(seen, Release(ALICE, paths("a")), outside),
    }
    for what, answer in answers.items():
        assert isinstance(answer, Decision) and not any(event.granted or event.past for event in answer.events)
        refusal = judged(world, answer.events)
        assert isinstance(refusal, Refusal), what
        assert any("upgrade gitcoord on this side" in hint for hint in refusal.hints), (what, refusal)
    world.must("release", Release(ALICE, paths("a")))
    assert {claim.path for claim in world.claims("bob")} == {"a", "b"}
