"""Handing over a task: it passes with its claims and its place under a cap, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal
from gitcoord.claims.take import Take
from gitcoord.gates.events.role import SetRole
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.close import Close
from gitcoord.handoff.events.handoff import New as Handoff
from gitcoord.ledger.event import Decision, Illegal, apply
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.stop import Stop
from gitcoord.tasks.events.assign import Assign
from gitcoord.tasks.events.task import New
from gitcoord.tasks.workers import Workers, cap_resources
from tests.handoff.test_handoff_rules import SAID
from tests.ledger.world import paths
from tests.server.test_retrace import judged
from tests.tasks.test_task_rules import ADA, Queue, worker


@pytest.fixture
def world() -> Queue:
    """alice has t of the line 'api', with its paths; bob is there."""
    world = Queue()
    world.add(New("build it", paths=paths("src"), line="api"), New("test it"))
    world.next("alice")
    world.must("claim", Take(worker("bob"), paths("docs")))
    return world


def the_task(world: Queue) -> str:
    return next(str(task) for task in (f"t{n}" for n in range(world.state.seq)) if world.state.get(f"tasks/{task}.md"))


def offered(world: Queue, **more: Any) -> str:
    return str(world.must("handoff", Handoff(worker("alice"), SAID, task=the_task(world), **more)).result["id"])


def accepted(world: Queue, id: str, name: str = "bob") -> Decision:
    answer = world.decide("accept", Accept(worker(name), id))
    assert isinstance(answer, Decision), answer
    assert not isinstance(judged(world, answer.events), Refusal), judged(world, answer.events)
    world.commit(answer)
    world.check()
    world.check_replay()
    return answer


def test_the_task_passes_with_what_it_needs(world: Queue) -> None:
    id, task = offered(world), the_task(world)
    assert world.task(task).handoff == id and world.task(task).owner == "alice"
    accepted(world, id)
    now = world.task(task)
    assert (now.owner, now.state, now.token, now.handoff) == ("bob", "active", world.state.seq, "")
    assert {(p, w) for p, w, _ in world.held()} == {("src", "bob"), ("line/api", "bob"), ("docs", "bob")}
    world.finish("bob", task)
    world.check()


@pytest.mark.parametrize(
    ("said", "launched", "lives"), [(60, False, 1800), (7200, False, 7200), (7200, True, 60), (60, True, 60)]
)
def test_the_task_lives_as_long_as_its_new_owner_can_be_silent(said: int, launched: bool, lives: int) -> None:
    """A worker's minute is no measure for an agent for which no launcher beats, nor the other way round."""
    world = Queue()
    (id,) = world.add(New("a", paths=paths("src")))
    world.must("assign", Assign(worker("alice"), id, said))
    world.must("claim", Take(worker("alice"), paths("docs"), ttl=300))
    offer = str(world.must("handoff", Handoff(worker("alice"), SAID, task=id)).result["id"])
    answer = world.decide("accept", Accept(worker("bob") if launched else Actor("bob"), offer))
    assert isinstance(answer, Decision)
    assert not isinstance(judged(world, answer.events), Refusal), judged(world, answer.events)
    world.commit(answer)
    assert world.task(id).ttl == lives
    assert {c.path: c.ttl for c in world.claims()} == {"src": lives, "docs": 300}


def test_the_line_goes_along_whatever_paths_are_named(world: Queue) -> None:
    world.must("claim", Take(worker("alice"), paths("etc")))
    accepted(world, offered(world, items=paths("etc")))
    assert {w for p, w, _ in world.held() if p in ("src", "line/api", "etc")} == {"bob"}


def test_what_belongs_to_a_task_that_stays_stays(world: Queue) -> None:
    world.must("claim", Take(worker("alice"), paths("etc")))
    answer = world.must("handoff", Handoff(worker("alice"), SAID))
    assert answer.result["claims"] == ["etc"]
    accepted(world, str(answer.result["id"]))
    assert world.task(the_task(world)).owner == "alice" and ("src", "alice", "write") in world.held()


def test_silence_gives_it_to_nobody_else(world: Queue) -> None:
    id, task = offered(world), the_task(world)
    world.must("stop", Stop(worker("alice")))
    world.host.advance(100_000)
    assert world.next("carol") != task and world.next("dave") == ""
    assert world.task(task).owner == "alice"
    accepted(world, id)
    assert world.task(task).owner == "bob"


def test_a_killed_owners_task_can_be_accepted(world: Queue) -> None:
    id = offered(world)
    world.must("kill", Kill(worker("bob")._replace(person=True)._replace(person=True), "alice"))
    accepted(world, id)
    assert world.task(the_task(world)).owner == "bob"


def test_what_was_only_kept_for_somebody_is_not_passed_on(world: Queue) -> None:
    """A receiver would work on it without its claims, whatever it still waits for."""
    (id,) = world.add(New("later", owner="alice", needs=(the_task(world),), paths=paths("etc")))
    world.move("boss", id, "blocked")
    assert world.refused("handoff", Handoff(worker("alice"), SAID, task=id)).code == "not-yours"


def test_what_two_tasks_need_stays_with_the_last_of_them(world: Queue) -> None:
    """A line of work has one mover, also where that one finishes one of its two tasks."""
    task = the_task(world)
    (other,) = world.add(New("more", paths=paths("src", "etc"), line="api"))
    world.must("assign", Assign(worker("alice"), other))
    assert world.refused("handoff", Handoff(worker("alice"), SAID, task=task)).code == "needed"
    world.finish("alice", other)
    assert {(p, w) for p, w, _ in world.held()} >= {("src", "alice"), ("line/api", "alice")}
    assert "etc" not in {p for p, _, _ in world.held()}
    world.finish("alice", task)
    assert not {"src", "line/api"} & {p for p, _, _ in world.held()}


def test_a_task_does_not_go_without_what_it_needs(world: Queue) -> None:
    """Blocked, it outlived its owner's session, and its claims did not."""
    task = the_task(world)
    world.move("alice", task, "blocked")
    world.must("stop", Stop(worker("alice")))
    assert world.refused("handoff", Handoff(worker("alice"), SAID, task=task)).code == "not-held"


def test_what_is_offered_is_not_had_for_another_task(world: Queue) -> None:
    """It may pass to another agent at any moment, and the work on the other task would be fenced."""
    id, task = offered(world), the_task(world)
    (other, line) = world.add(New("more", paths=paths("src/deep")), New("and more", line="api"))
    for each in (other, line):
        assert world.refused("assign", Assign(worker("alice"), each)).code == "handed-over"
    world.must("close", Close(worker("alice"), id, "withdrawn"))
    world.must("assign", Assign(worker("alice"), other))
    assert world.task(task).owner == "alice"
    world.check()


def test_declined_it_is_the_owners_again(world: Queue) -> None:
    id, task = offered(world, to="bob"), the_task(world)
    assert world.refused("handoff", Handoff(worker("alice"), SAID, task=task, items=paths("src"))).code == "handed-over"
    world.must("close", Close(worker("bob"), id, "declined", "no"))
    assert world.task(task).handoff == "" and world.task(task).owner == "alice"
    world.check()
    assert world.refused("stop", Stop(worker("alice"))).code == "task"


def test_what_was_finished_meanwhile_is_not_accepted(world: Queue) -> None:
    id = offered(world)
    world.finish("alice", the_task(world))
    refusal = world.refused("accept", Accept(worker("bob"), id))
    assert refusal.code == "task-gone" and "done" in refusal.message
    world.must("close", Close(worker("alice"), id, "withdrawn"))
    world.check_replay()


def test_whose_it_is_not(world: Queue) -> None:
    assert world.refused("handoff", Handoff(worker("bob"), SAID, task=the_task(world))).code == "not-yours"
    assert world.refused("handoff", Handoff(worker("bob"), SAID, task="t999")).code == "no-task"
    world.move("alice", the_task(world), "needs-human")
    assert world.refused("handoff", Handoff(worker("alice"), SAID, task=the_task(world))).code == "not-yours"


def test_a_task_for_a_role_goes_to_that_role() -> None:
    world = Queue()
    world.must("role", SetRole(ADA, "alice", "code"))
    world.add(New("build", role="code"))
    world.next("alice")
    id = offered(world)
    assert world.refused("accept", Accept(worker("bob"), id)).code == "role"
    world.must("role", SetRole(ADA, "bob", "code"))
    accepted(world, id)


def test_caps_hold() -> None:
    world = Queue()
    world.caps = {"": 2}
    world.resources.update(cap_resources(Workers(world.caps)))
    world.add("one", "two", "three")
    assert world.next("alice") and world.next("bob")
    id = offered(world)
    # alice's place goes with her last task; carol gets it.
    answer = accepted(world, id, "carol")
    places = sorted((c.agent, c.units) for c in world.claims() if c.path == "workers/all")
    assert places == [("bob", 1), ("carol", 1)]
    (event,) = [event for event in answer.events if event.kind == "accept"]
    # Who has a place already needs no second one.
    other = str(world.must("handoff", Handoff(worker("carol"), SAID, task=the_task(world))).result["id"])
    accepted(world, other)
    assert [(c.agent, c.units) for c in world.claims() if c.path == "workers/all"] == [("bob", 1)]
    # With all places taken by others nothing passes.
    assert world.next("dave")
    third = str(world.must("handoff", Handoff(worker("bob"), SAID, task=the_task(world))).result["id"])
    refusal = world.refused("accept", Accept(worker("erin"), third))
    assert refusal.code == "held" and {row["agent"] for row in refusal.blocking_claims} == {"bob", "dave"}
    forged = event._replace(seq=world.state.seq + 1)
    with pytest.raises(Illegal):
        apply(world.state, forged)
