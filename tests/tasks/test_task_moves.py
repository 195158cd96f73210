"""Tasks by their rules alone: tasks of lost owners, and the transitions between states."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal, UsageError
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.model import Grant
from gitcoord.claims.take import Take
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.start import Start
from gitcoord.tasks.events.assign import Assign
from gitcoord.tasks.events.finish import Finish
from gitcoord.tasks.events.lapse import Collect
from gitcoord.tasks.events.revise import Revise
from gitcoord.tasks.events.task import MAX_TASKS, New
from gitcoord.tasks.model import STATES, ready
from gitcoord.tasks.workers import Workers, cap_resources
from tests.ledger.world import paths
from tests.server.test_retrace import judged
from tests.tasks.test_task_rules import ADA, DONE, Queue, worker


def test_what_a_lost_one_had_claimed_is_free_with_its_task() -> None:
    """This holds where the asker takes another task: else a returning owner would keep the paths of a lost task."""
    world = Queue()
    id, urgent = world.add(New("a", paths=paths("src"), line="api"), New("b", priority="critical"))
    world.must("assign", Assign(worker("w1"), id))
    world.must("claim", Take(worker("w1"), paths("docs")))
    world.host.advance(95)
    answer = world.must("assign", Assign(worker("w2")))
    assert [event.kind for event in answer.events] == ["lapse", "expire", "start", "assign"]
    assert world.task(urgent).owner == "w2" and world.held() == {("docs", "w1", "write")}
    record = world.agent("w1")
    assert record is not None
    assert [(row["space"], row["path"]) for row in record["lost"]] == [
        ("task", id), ("path", "src"), ("resource", "line/api"),
    ]  # fmt: skip
    world.heartbeat("w1")
    assert world.next("w3") == id
    world.check()
    world.check_replay()


def test_a_plain_claim_of_a_lost_owners_path_leaves_the_task_to_the_next_who_looks_for_tasks() -> None:
    """A claim is about paths: it loads no rules of tasks. The owner is told of its loss, and keeps the task only if it comes back."""
    world = Queue()
    (id,) = world.add(New("a", paths=paths("src")))
    world.must("assign", Assign(worker("w1"), id))
    world.host.advance(95)
    answer = world.must("claim", Take(Actor("bob"), paths("src")))
    assert [event.kind for event in answer.events] == ["expire", "start", "claim"]
    record = world.agent("w1")
    assert record is not None and [row["path"] for row in record["lost"]] == ["src"]
    assert world.task(id).owner == "w1" and world.refused("claim", Take(worker("w1"), paths("src"))).code == "held"
    assert world.must("lapse", Collect(Actor("boss"))).result["lapsed"][0]["id"] == id
    assert world.task(id).state == "open" and world.held() == {("src", "bob", "write")}
    world.check()


def test_a_server_makes_the_same_of_the_lost() -> None:
    """The server agrees where another task is taken, where none is, and where the tasks are only collected."""
    for command in (Assign(worker("w2")), Collect(Actor("boss"))):
        for more in ((), ("b",)):
            world = Queue()
            (id, *_) = world.add(New("a", paths=paths("src"), limit=1), *more)
            world.must("assign", Assign(worker("w1"), id))
            world.host.advance(95)
            kind = "lapse" if isinstance(command, Collect) else "assign"
            answer = world.decide(kind, command)
            assert isinstance(answer, Decision) and [e.kind for e in answer.events][:2] == ["lapse", "expire"]
            assert not isinstance(judged(world, answer.events), Refusal), judged(world, answer.events)


def test_who_comes_back_does_not_claim_for_a_task_that_went_on() -> None:
    world = Queue()
    (id,) = world.add(New("a", paths=paths("src")))
    assert world.next("w1") == id
    grant = Grant("path", "src", 1, "write", 60, 0, "", id, "", 1)
    world.host.advance(95)
    world.must("expire", Sweep(Actor("boss")))
    answer = world.must("start", Start(worker("w1"), again=(grant, grant._replace(path="x", task=""))))
    assert answer.result["again"] == ["x"]
    world.check()


def test_as_many_as_may_be_are_added_at_once() -> None:
    world = Queue()
    ids = world.add(*(f"task {number}" for number in range(MAX_TASKS)))
    assert ready(world.state) == ids
    with pytest.raises(UsageError):
        world.add(*["one too many"] * (MAX_TASKS + 1))


def test_next_looks_at_the_whole_queue() -> None:
    """However many cannot be done now, the first that can is given."""
    world = Queue()
    world.must("claim", Take(Actor("holder"), paths("src")))
    rows = [New("r", role="docs", priority="high") for _ in range(300)] + [New("p", paths=paths("src/x"))] * 20
    (*_, mine) = world.add(*rows, "mine")
    assert world.next("w1") == mine
    answer = world.must("assign", Assign(worker("w2")))
    assert answer.result["task"] is None and len(answer.result["held_up"]) == 200


@pytest.mark.parametrize("caps", [{}, {"": 1}])
@pytest.mark.parametrize("needs", [(), ("src",)])
def test_unblocked_it_goes_on_only_with_what_it_needs(caps: dict[str, int], needs: tuple[str, ...]) -> None:
    """Its owner's claims, or its place under the cap, may have gone to others while it was blocked."""
    world = Queue()
    world.caps = caps
    world.resources.update(cap_resources(Workers(caps)))
    id = world.add(New("a", paths=paths(*needs)))[0]
    assert world.next("w1") == id
    world.move("w1", id, "blocked")
    world.move("w1", id, "unblock")
    assert world.task(id).state == "active"
    world.move("w1", id, "blocked")
    world.host.advance(95)
    world.must("expire", Sweep(Actor("boss")))
    world.heartbeat("w1")
    world.move("w1", id, "unblock")
    assert world.task(id).state == ("open" if caps or needs else "active")
    world.check()


def test_what_a_task_needs_does_not_change_while_somebody_has_it() -> None:
    world = Queue()
    id = world.add(New("a", paths=paths("src")))[0]
    assert world.next("w1") == id
    for state in ("active", "blocked"):
        world.move("w1", id, "blocked") if state == "blocked" else None
        assert world.refused("revise", Revise(worker("w1"), id, {"paths": [["path", "etc"]]})).code == "active"
    world.move("w1", id, "open")
    world.must("revise", Revise(Actor("boss"), id, {"paths": [["path", "etc"]]}))
    assert world.next("w2") == id and world.held() == {("etc", "w2", "write")}


def test_what_waits_for_a_person_is_not_handed_in() -> None:
    world = Queue()
    id = world.add("a")[0]
    assert world.next("w1") == id
    world.move("w1", id, "needs-human")
    for outcome, record in (("done", DONE), ("failed", {"reason": "no"})):
        assert world.refused("finish", Finish(worker("w1"), id, outcome, record)).code == "needs-human"
    world.must("revise", Revise(ADA, id, {}, "unblock"))
    world.finish("w1", id)
    assert world.task(id).state == "done"


def test_needs_are_named_by_id_or_key() -> None:
    world = Queue()
    a, b = world.add(New("a", key="first"), "b")
    world.must("revise", Revise(Actor("boss"), b, {"needs": ["first", a]}))
    assert world.task(b).needs == [a]
    assert world.refused("revise", Revise(Actor("boss"), b, {"needs": ["second"]})).code == "no-task"


# What each state may become, by every deed there is: written out, so that it does not share a mistake with the rules.
LEGAL = {
    "open": {"active", "assigned", "blocked", "needs-human", "abandoned"},
    "assigned": {"active", "open", "assigned", "blocked", "needs-human", "abandoned"},
    "active": {"open", "blocked", "needs-human", "abandoned", "done", "failed", "active"},
    "blocked": {"open", "active", "needs-human", "abandoned", "done", "failed"},
    "needs-human": {"open", "active", "blocked", "abandoned"},
    "review": {"open", "done", "abandoned"},
    "failed": {"open", "abandoned"},
    "abandoned": {"open"},
    "done": set(),
}  # fmt: skip


def in_state(world: Queue, state: str) -> str:
    """A task in this state, w1's where somebody has it."""
    id = world.add(New("a", review=state == "review", owner="w1" if state == "assigned" else ""))[0]
    if state not in ("open", "assigned"):
        assert world.next("w1") == id
    if state in ("blocked", "needs-human", "abandoned"):
        world.move("w1", id, state)
    elif state in ("done", "review", "failed"):
        world.finish("w1", id, "failed" if state == "failed" else "done")
    assert world.task(id).state == state
    return id


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_reached_and_left_as_it_may_be(state: str) -> None:
    """Moves by the owner, by the agent that added it, by another agent and by a person."""
    reached = set()
    deeds: list[tuple[str, Any]] = [("assign", Assign), *(("finish", outcome) for outcome in ("done", "failed"))]
    for actor in (worker("w1"), Actor("boss"), worker("w2"), ADA):
        for kind, what in [*deeds, *(("revise", move) for move in (*STATES, "unblock"))]:
            world = Queue()
            id = in_state(world, state)
            if kind == "assign":
                command: Any = Assign(actor, id)
            elif kind == "finish":
                command = Finish(actor, id, what, DONE if what == "done" else {"reason": "no"})
            else:
                command = Revise(actor, id, {}, what, "w2" if what == "assigned" else "", "so")
            answer = world.decide(kind, command)
            if isinstance(answer, Decision) and answer.events:
                world.commit(answer)
                world.check()
                reached.add(world.task(id).state)
    assert reached == LEGAL[state] - ({"active"} if state == "active" else set())
