"""Retracing: the server accepts the events that the rules would have made, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.takeover import Takeover
from gitcoord.claims.model import Item
from gitcoord.claims.renew import Renew
from gitcoord.claims.renew import decide as decide_renew
from gitcoord.claims.take import Take
from gitcoord.ledger.event import Decision, Event
from gitcoord.ledger.sessions import Actor
from gitcoord.server.retrace import Retraced, chains, retrace
from gitcoord.sessions.events.kill import Kill
from tests.ledger.test_stateful import HANDING, walk
from tests.ledger.world import Outside, World, paths
from tests.races.support import soak
from tests.support import FakeHost
from tests.tasks.test_task_walk import walk_tasks


class Server(Retraced, Outside):
    """The server's view of a world in memory."""


def judged(world: World, events: list[Event], host: FakeHost | None = None, *, person: bool = False) -> Any:
    """The server's answer: a refusal, or the retraced decision."""
    return retrace(world.state, events, Actor(events[0].agent, person=person), Server(world, host or world.host))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each command in a world is judged by a server before it counts; gives the kinds that were."""
    count: list[str] = []
    plain = World.do

    def do(self: World, kind: str, command: Any, host: FakeHost | None = None) -> Decision | Refusal:
        answer = self.decide(kind, command, host)
        if isinstance(answer, Decision) and answer.events:
            assert chains(answer.events) == [answer.events]
            found = judged(self, answer.events, host, person=command.actor.person)
            assert not isinstance(found, Refusal), (command, found)
            assert [beat.agent for beat in found[1] if beat.judged or beat.killed] == [
                beat.agent for beat in answer.beats if beat.judged or beat.killed
            ]
            count.append(kind)
        return plain(self, kind, command, host)

    monkeypatch.setattr(World, "do", do)
    return count


@pytest.mark.parametrize("seed", range(soak(2, 8)))
def test_handoffs_are_retraced(seed: int, served: list[str]) -> None:
    walk(seed, 400, HANDING)
    assert "accept" in served and "handoff" in served


@pytest.mark.parametrize("seed", range(soak(3, 12)))
def test_whatever_the_rules_make_is_retraced(seed: int, served: list[str]) -> None:
    """Long random histories."""
    walk(seed, 400)
    assert len(served) > 50


@pytest.mark.parametrize("seed", range(soak(3, 12)))
def test_whatever_becomes_of_tasks_is_retraced(seed: int, served: list[str]) -> None:
    walk_tasks(seed, 300)
    assert {"task", "assign", "finish", "revise"} <= set(served)


@pytest.fixture
def world() -> World:
    """alice holds 'a', bob is there."""
    world = World()
    world.must("claim", Take(Actor("alice"), paths("a")))
    world.must("claim", Take(Actor("bob"), paths("b")))
    return world


def made(world: World, kind: str, command: Any, host: FakeHost | None = None) -> list[Event]:
    answer = world.decide(kind, command, host)
    assert isinstance(answer, Decision), answer
    return answer.events


def test_a_grant_of_what_another_holds(world: World) -> None:
    (event,) = made(world, "claim", Take(Actor("bob"), paths("c")))
    forged = event._replace(body={**event.body, "items": [["path", "a"]]})
    answer = judged(world, [forged])
    assert answer.code == "held" and "alice" in answer.message


def test_only_the_first_event_tells_what_was_refused_before(world: World) -> None:
    """The client alone knows that; on a later event it would be told twice."""
    world.host.advance(4 * 3600)
    events = made(world, "claim", Take(Actor("bob"), paths("a")))
    assert [event.kind for event in events] == ["expire", "claim"]
    row = {"path": "a", "holder": "alice", "count": 2}
    first, *rest = events
    assert not isinstance(judged(world, [first._replace(refused=(row,)), *rest]), Refusal)
    answer = judged(world, [*events[:-1], events[-1]._replace(refused=(row,))])
    assert isinstance(answer, Refusal) and answer.code == "differs"


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_grant_of_several_terms(keep: bool, fresh: bool) -> None:
    """Paths that are held keep their terms, new ones get the defaults: a chain of several claim events."""
    world, alice = World(), Actor("alice", "one")
    world.must("claim", Take(alice, paths("a", "b/x"), ttl=7200, expected=60, reason="why"))
    world.must("claim", Take(alice, paths("@gpu"), units=2))
    if fresh:  # a new process takes over the session: its claims are granted again before the command's own
        world.gone, alice = "one", Actor("alice", "two")
    command = Take(alice, paths("new", "@gpu", "a", "@db", "newer"), nonce="n" * keep)
    events = made(world, "claim", command)
    assert [event.kind for event in events][-4:] == ["claim"] * 4 and (len(events) > 4) == fresh
    assert not isinstance(judged(world, events), Refusal)
    wrong = events[-3]._replace(body={**events[-3].body, "ttl": 99})
    assert isinstance(judged(world, [*events[:-3], wrong, *events[-2:]]), Refusal)


def test_an_expiry_that_the_servers_clock_does_not_support(world: World) -> None:
    late = FakeHost(world.host.boot, world.host.now + 99999, world.host.ticks + 99999_000)
    events = made(world, "claim", Take(Actor("bob"), paths("a")), late)
    assert [event.kind for event in events] == ["expire", "claim"]
    assert judged(world, events).code == "held"
    assert not isinstance(judged(world, events, late), Refusal)
    swept = made(world, "expire", Sweep(Actor("carol")), late)
    assert judged(world, swept).code == "differs"


def test_a_client_may_see_less_silence_than_the_server(world: World) -> None:
    late = FakeHost(world.host.boot, world.host.now + 99999, world.host.ticks + 99999_000)
    (event,) = made(world, "expire", Sweep(Actor("carol")), late)
    assert len(event.body["claims"]) == 2
    part = event._replace(body={"claims": event.body["claims"][:1]})
    assert not isinstance(judged(world, [part], late), Refusal)


def test_of_several_units_a_client_may_free_fewer(world: World) -> None:
    """The client saw one expired holder, which was enough; the server sees two."""
    world.must("claim", Take(Actor("alice"), paths("@gpu"), units=1))
    world.must("claim", Take(Actor("bob"), paths("@gpu"), units=2))
    late = FakeHost(world.host.boot, world.host.now + 99999, world.host.ticks + 99999_000)
    events = made(world, "claim", Take(Actor("carol"), paths("@gpu"), units=1), late)
    assert len(events[0].body["claims"]) == 2
    part = events[0]._replace(body={"claims": events[0].body["claims"][:1]})
    assert not isinstance(judged(world, [part, *events[1:]], late), Refusal)


def test_a_release_that_tells_of_files_that_did_not_change(world: World) -> None:
    world.head, world.changed = "1" * 40, {"a": [["a/x", "100644", "b" * 40]]}
    (event,) = made(world, "release", Release(Actor("alice"), paths("a")))
    assert not isinstance(judged(world, [event]), Refusal)
    (entry,) = event.body["released"]
    for wrong in (
        {"files": [["a/x", "100644", "c" * 40]]},
        {"files": [*entry["files"], ["z", "100644", "c" * 40]]},
        {"landed": [["a/x", 1]]},
        {"token": 99},
    ):
        answer = judged(world, [event._replace(body={"released": [{**entry, **wrong}]})])
        assert isinstance(answer, Refusal) and answer.code == "differs", wrong


def test_from_where_work_is_judged_is_the_clients_word_as_far_as_the_work_contains_it(world: World) -> None:
    world.head, world.changed = "1" * 40, {"a": [["a", "100644", "b" * 40]]}
    world.within = {"1" * 40: {"2" * 40}}
    (event,) = made(world, "release", Release(Actor("alice"), paths("a")))
    (entry,) = event.body["released"]
    for base, fine in (("2" * 40, True), ("3" * 40, False), ("main", False)):
        answer = judged(world, [event._replace(body={"released": [{**entry, "base": base}]})])
        assert isinstance(answer, Refusal) is not fine, base


def test_a_release_may_leave_out_what_another_has_recorded_and_nothing_else(world: World) -> None:
    theirs, own = ["a/x", "100644", "b" * 40], ["a/y", "100644", "c" * 40]
    world.head, world.changed = "1" * 40, {"b": [["b", "100644", "d" * 40]], "a": [theirs, own]}
    world.must("release", Release(Actor("alice"), paths("a")))
    world.must("claim", Take(Actor("alice"), paths("a")))
    world.head, world.changed = "2" * 40, {"a": [theirs, own, ["a/z", "100644", "e" * 40]]}
    (event,) = made(world, "release", Release(Actor("alice"), paths("a")))
    (entry,) = event.body["released"]
    for left, fine in ((entry["files"], True), (entry["files"][2:], True), (entry["files"][:2], False)):
        answer = judged(world, [event._replace(body={"released": [{**entry, "files": left}]})])
        assert isinstance(answer, Refusal) is not fine, left


def test_what_has_not_landed_stays_on_record(world: World) -> None:
    """A release may drop the lineage of what landed, and of nothing else."""
    world.head, world.changed = "1" * 40, {"a": [["a", "100644", "b" * 40]]}
    world.must("release", Release(Actor("alice"), paths("a")))
    world.must("claim", Take(Actor("alice"), paths("a")))
    world.head, world.landed = "2" * 40, {"1" * 40}
    events = made(world, "release", Release(Actor("alice"), paths("a")))
    assert events[0].body["released"][0]["landed"]
    assert not isinstance(judged(world, events), Refusal)
    world.landed = set()
    assert judged(world, events).code == "differs"


def test_only_a_person_takes_over(world: World) -> None:
    command = Takeover(Actor("bob", person=True), Item("path", "a"), world.claims("alice")[0].token, "because")
    events = made(world, "takeover", command)
    assert judged(world, events).code == "person"
    assert not isinstance(judged(world, events, person=True), Refusal)


def test_a_kill_frees_all_and_leaves_a_tombstone(world: World) -> None:
    (event,) = made(world, "kill", Kill(Actor("bob", person=True), "alice"))
    assert judged(world, [event]).code == "person"
    state, beats = judged(world, [event], person=True)
    assert [beat.killed for beat in beats] == [event.seq] and not state.below("claims/path/a")
    forged = event._replace(body={**event.body, "freed": []})
    assert judged(world, [forged], person=True).code == "differs"


def test_the_killed_get_nothing(world: World) -> None:
    events = made(world, "claim", Take(Actor("alice"), paths("z")))
    world.must("kill", Kill(Actor("bob", person=True), "alice"))
    later = [event._replace(seq=world.state.seq + 1) for event in events]
    assert judged(world, later).code == "killed"


def test_a_renewal_is_known_again(world: World) -> None:
    answer = world.must("claim", Take(Actor("alice"), paths("c")))
    assert answer.events
    decision = decide_renew(world.state, Renew(Actor("alice"), (), 77), world.outside())
    assert (
        isinstance(decision, Decision)
        and len(decision.events) == 2
        and not isinstance(judged(world, decision.events), Refusal)
    )


def test_parts_without_their_beginning(world: World) -> None:
    events = made(world, "claim", Take(Actor("carol"), paths("c")))
    assert [event.kind for event in events] == ["start", "claim"]
    assert isinstance(chains(events[1:]), Refusal)
    assert isinstance(chains([events[0], events[1]._replace(agent="bob")]), Refusal)
    assert chains([*events, *events]) == [events, events]
