"""Agents and their subagents, on the rules alone: what a parent's claim covers, and who gets what a family lets go when it ends."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal, Refused
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.events.wait import decide as decide_wait
from gitcoord.claims.family import decide_below
from gitcoord.claims.take import Take
from gitcoord.claims.take import decide as decide_take
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.start import Start
from gitcoord.sessions.events.stop import Stop
from gitcoord.sessions.events.unhalt import Unhalt
from tests.claims.test_queue_rules import ADA, holders, release, take, wait, waiting
from tests.ledger.world import World, paths
from tests.server.test_retrace import served
from tests.support import FakeHost

__all__ = ["served"]

KID = Actor("kim.x", parent="kim")


@pytest.fixture
def world(served: list[str], monkeypatch: pytest.MonkeyPatch) -> World:
    """kim holds 'src'. Each command is made again by a server before it counts; a subagent asks as `git claim` does."""
    plain = World.decide

    def decide(self: World, kind: str, command: Any, host: FakeHost | None = None) -> Decision | Refusal:
        rule: Any = {"claim": decide_take, "wait": decide_wait}.get(kind)
        try:
            nonce = f"{self.host.random()}"
            below = decide_below(self.state, command, self.outside(host, nonce), rule) if rule is not None else None
        except Refused as error:
            return error.refusal
        return plain(self, kind, command, host) if below is None else below

    monkeypatch.setattr(World, "decide", decide)
    world = World()
    take(world, "kim", "src")
    return world


@pytest.mark.parametrize("ask", [Take, Wait])
def test_what_a_parent_holds_is_not_claimed_once_more(world: World, ask: type[Take | Wait]) -> None:
    kind = "wait" if ask is Wait else "claim"
    result = world.must(kind, ask(KID, paths("src/a", "src"))).result
    assert result["claims"] == [] and waiting(world) == [] and holders(world) == {("src", "kim")}
    assert result["covered"] == [{"path": name, "agent": "kim", "held": "src"} for name in ("src/a", "src")]
    result = world.must(kind, ask(KID, paths("src/a", "docs"))).result
    assert [claim["path"] for claim in result["claims"]] == ["docs"] and len(result["covered"]) == 1
    assert holders(world) == {("src", "kim"), ("docs", "kim.x")}


def test_only_a_live_write_claim_above_covers(world: World) -> None:
    assert world.refused("claim", Take(KID, paths("."))).code == "held", "more than kim holds"
    assert world.refused("claim", Take(Actor("kimx"), paths("src/a"))).code == "held"
    take(world, "kim", "lib", mode="read")
    assert world.refused("claim", Take(KID, paths("lib"))).code == "held"
    world.host.advance(11000)
    world.must("claim", Take(KID, paths("src/a")))
    assert ("src/a", "kim.x") in holders(world), "kim's claim had expired"


def test_a_subagent_is_in_no_circle_with_its_parent(world: World) -> None:
    take(world, "bob", "docs")
    wait(world, "kim", "docs")
    result = world.must("wait", Wait(KID, paths("src/a"))).result
    assert "covered" in result and "waiting" not in result


def test_a_subagent_waits_for_the_rest(world: World) -> None:
    take(world, "bob", "docs")
    result = world.must("wait", Wait(KID, paths("src/a", "docs"))).result
    assert result["waiting"] and result["paths"] == ["docs"] and result["covered"]
    event = release(world, "bob", "docs")
    assert [row["items"] for row in event.granted] == [[["path", "docs"]]]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_a_family_lets_go_is_granted_when_all_of_it_has_ended(world: World, how: str) -> None:
    """The child's session ends with its parent's: nothing is granted to it in between, and the next in the queue goes."""
    world.must("start", Start(KID))
    world.must("wait", Wait(KID, paths(".")))
    wait(world, "bob", "src")
    events = world.must(how, Kill(ADA, "kim", "over") if how == "kill" else Stop(Actor("kim"))).events
    assert [row["agent"] for event in events for row in event.granted] == ["bob"]
    assert [event.kind for event in events][-1] == "stop" and events[-1].granted
    assert holders(world) == {("src", "bob")} and waiting(world) == []


def test_a_subagent_does_not_wait_for_what_its_parent_got_meanwhile(world: World) -> None:
    take(world, "alice", "a")
    world.must("wait", Wait(KID, paths("a")))
    wait(world, "kim", "a", priority="high")
    release(world, "alice", "a")
    wait(world, "bob", "a")
    assert world.must("wait", Wait(KID, paths("a"))).result["covered"] and waiting(world) == ["bob"]
    assert [row["agent"] for row in release(world, "kim", "a").granted] == ["bob"]


@pytest.mark.parametrize("kind", ["claim", "wait"])
def test_a_killed_subagent_is_told_so(world: World, kind: str) -> None:
    command = {"claim": Take(KID, paths("src/a")), "wait": Wait(KID, paths("src/a"))}[kind]
    world.must("halt", Halt(ADA, "stop"))
    assert world.refused(kind, command).code == "halted"
    world.must("unhalt", Unhalt(ADA))
    take(world, "kim.x", "docs")
    world.must("kill", Kill(ADA, "kim.x", "over"))
    assert world.refused(kind, command).code == "killed"


def test_a_nonce_stands_for_all_that_was_asked_for(world: World) -> None:
    assert world.refused("claim", Take(KID, paths("src/a", "docs"), nonce="n1")).code == "held"
