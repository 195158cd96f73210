"""Waiting for tasks, on the rules alone: one order for all, nobody waits behind an agent that cannot be served, none is lost."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitcoord.base.errors import Refused, UsageError
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.queue import Queue as Requests
from gitcoord.claims.requests import NEXT, all_requests
from gitcoord.claims.take import Take
from gitcoord.ledger.event import Decision, Event, Illegal
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.world import Resource
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.stop import Stop
from gitcoord.sessions.events.unhalt import Unhalt
from gitcoord.tasks.events.assign import Assign
from gitcoord.tasks.events.task import New
from gitcoord.tasks.model import all_tasks
from gitcoord.tasks.waiters import take_or_wait
from tests.ledger.world import paths
from tests.server.test_retrace import served
from tests.tasks.test_task_rules import Queue, worker

__all__ = ["served"]


class Line(Queue):
    def wait(self, *names: str) -> list[int]:
        """These agents wait for any task; gives their tickets."""
        rows = [self.must("wait", Wait(worker(name), (NEXT,), ttl=60)).result for name in names]
        return [row["ticket"] for row in rows]

    def waiting(self) -> list[str]:
        return [request.agent for request in all_requests(self.state)]

    def granted(self) -> list[tuple[str, list[str]]]:
        """The grants of the last command: whose, and what."""
        events = self.events()
        rows = [row for event in events if event.nonce == events[-1].nonce for row in event.granted]
        return [(row["agent"], [name for _, name in row["items"]]) for row in rows]

    def take(self, name: str, *items: str) -> None:
        self.must("claim", Take(Actor(name), paths(*items)))

    def again(self, command: Any) -> Any:
        """As a transaction does it: decided again where the first answer says so."""
        answer = self.must("assign", command)
        return self.must("assign", command) if answer.again else answer


@pytest.fixture
def line(served: list[str]) -> Line:
    """Each command is made again by a server before it counts."""
    return Line()


def test_a_new_task_goes_to_the_first_that_waits(line: Line) -> None:
    line.wait("w1", "w2")
    first, second = line.add("a", "b")
    assert line.granted() == [("w1", [f"task/{first}"]), ("w2", [f"task/{second}"])]
    assert line.next("w3") == "", "both are reserved"
    assert (line.next("w2"), line.next("w1")) == (second, first), "whoever comes first, each gets its own"
    assert not line.waiting() and not line.claims(), "nothing is left of the reservation"


def test_the_paths_and_the_place_of_the_task_are_reserved_with_it(line: Line) -> None:
    line.caps = {"": 1}
    line.wait("w1")
    (id,) = line.add(New("a", paths=paths("src")))
    assert line.granted() == [("w1", [f"task/{id}", "src", "workers/all"])]
    assert line.refused("claim", Take(Actor("eve"), paths("src/a"))).code == "held"
    before = len(line.log)
    assert line.next("w1") == id
    assert [event.kind for event in line.events()[before:]] == ["release", "assign"], "the claims are there already"
    assert {(path, agent) for path, agent, _ in line.held()} == {("src", "w1"), ("workers/all", "w1")}


def test_who_cannot_be_served_is_not_waited_for(line: Line) -> None:
    """A waiter counts as earlier only where there is a task that it could take."""
    line.take("eve", "src")
    (busy,) = line.add(New("a", paths=paths("src")))
    line.wait("w1", "w2")
    (id,) = line.add(New("b"))
    assert line.granted() == [("w1", [f"task/{id}"])]
    (kept,) = line.add(New("c", owner="w9"))
    assert not line.granted(), "kept for another"
    line.must("release", Release(Actor("eve")))
    assert line.granted() == [("w2", [f"task/{busy}", "src"])]
    assert kept != busy


def test_a_place_under_a_cap_goes_in_order(line: Line) -> None:
    line.caps = {"": 1}
    first, second, third = line.add("a", "b", "c")
    assert line.next("w0") == first
    line.wait("w1", "w2")
    assert line.refused("assign", Assign(worker("w3"))).code == "cap"
    line.finish("w0", first)
    assert line.refused("assign", Assign(worker("w3"))).code == "cap"
    assert line.next("w1") == second and line.waiting() == ["w2"]
    line.finish("w1", second)
    assert line.next("w2") == third


def test_what_a_waiter_holds_already_is_not_lost_with_a_missed_reservation(line: Line) -> None:
    line.caps = {"": 2}
    (first,) = line.add(New("a", paths=paths("src")))
    assert line.next("w1") == first
    line.wait("w1")
    (second,) = line.add(New("b", paths=paths("src/b", "doc")))
    assert line.granted() == [("w1", [f"task/{second}", "src/b", "doc"])]
    line.next("w2")
    line.host.advance(16)
    line.heartbeat("w1")
    line.must("expire", Sweep(worker("w2")))
    assert {(path, agent) for path, agent, _ in line.held()} >= {("src", "w1"), ("workers/all", "w1")}


def test_who_waits_for_a_path_is_overtaken_at_most_three_times_by_tasks(line: Line) -> None:
    line.take("eve", "b")
    line.must("wait", Wait(Actor("bob"), paths("a", "b")))
    for _ in range(3):
        line.wait("w1")
        (id,) = line.add(New("x", paths=paths("a")))
        assert line.next("w1") == id
        line.finish("w1", id)
    assert all_requests(line.state)[0].overtaken == 3
    line.wait("w1")
    (id,) = line.add(New("x", paths=paths("a")))
    assert line.waiting() == ["bob", "w1"] and line.next("w2") == ""
    line.must("release", Release(Actor("eve")))
    assert line.waiting() == ["w1"]


def test_a_waiter_that_died_costs_the_others_its_reservation(line: Line) -> None:
    line.wait("w1", "w2")
    (id,) = line.add("a")
    assert line.granted() == [("w1", [f"task/{id}"])]
    assert line.next("w2") == ""
    line.host.advance(16)
    assert line.again(Assign(worker("w2"))).result["task"]["id"] == id
    assert line.waiting() == ["w1"], "at the end of the queue, with a new ticket"
    (other,) = line.add("b")
    line.next("w3")
    line.host.advance(16)
    assert line.again(Assign(worker("w3"))).result["task"]["id"] == other
    assert not line.waiting(), "the second time it is dropped"


def test_the_same_wait_is_the_same_ticket_and_ends_with_leave_or_the_session(line: Line) -> None:
    (first,) = line.wait("w1")
    assert line.wait("w1") == [first]
    line.wait("w2")
    line.must("leave", Leave(worker("w1"), (NEXT,)))
    line.must("stop", Stop(worker("w2")))
    assert not line.waiting()
    line.add("a")
    assert not line.granted()


def _take_or_wait(line: Line, name: str, id: str = "") -> dict[str, Any]:
    answer = take_or_wait(line.state, Assign(Actor(name), id), line.outside(nonce=line.host.random()))
    line.commit(answer)
    return dict(answer.result)


def test_a_task_by_its_id_is_waited_for_in_the_queue_of_its_paths_and_caps(line: Line) -> None:
    line.caps = {"": 1}
    first, second = line.add("a", New("b", paths=paths("src")))
    assert line.next("w0") == first
    line.take("eve", "src")
    place = _take_or_wait(line, "w1", second)
    assert (
        place["ticket"]
        and "places" in place["why"]
        and {row["path"] for row in place["held"]} == {"src", "@workers/all"}
    )
    line.must("release", Release(Actor("eve")))
    line.finish("w0", first)
    assert line.granted() == [("w1", ["src", "workers/all"])]
    assert _take_or_wait(line, "w1", second)["task"]["id"] == second


def test_a_deadlock_over_a_task_is_refused(line: Line) -> None:
    (id,) = line.add(New("a", paths=paths("src")))
    line.take("eve", "src")
    line.take("w1", "docs")
    assert _take_or_wait(line, "w1", id)["ticket"]
    refusal = line.refused("wait", Wait(Actor("eve"), paths("docs")))
    assert refusal.code == "deadlock"
    assert refusal.message == "nobody could go on: eve waits for docs, w1 holds docs; w1 waits for src, eve holds src"
    assert any("git claim release src" in hint for hint in refusal.hints)
    line.must("release", Release(Actor("eve")))
    assert _take_or_wait(line, "w1", id)["task"]["id"] == id


def test_a_wait_for_a_task_that_would_close_a_circle_is_refused(line: Line) -> None:
    """Also over a cap: who waits for the task waits for its paths and its place."""
    line.caps = {"": 1}
    first, second = line.add("a", New("b", paths=paths("src")))
    assert line.next("w0") == first
    line.take("w1", "docs")
    line.must("wait", Wait(Actor("w0"), paths("docs")))
    with pytest.raises(Refused) as error:
        _take_or_wait(line, "w1", second)
    assert error.value.code == "deadlock"
    assert error.value.message == (
        "nobody could go on: w1 waits for src, @workers/all, w0 holds @workers/all; w0 waits for docs, w1 holds docs"
    )
    line.finish("w0", first)
    assert _take_or_wait(line, "w1", second)["task"]["id"] == second


def test_a_halt_grants_nothing_and_its_end_does(line: Line) -> None:
    ada = Actor("ada", person=True)
    line.wait("w1")
    line.must("halt", Halt(ada, "stop"))
    line.must("unhalt", Unhalt(ada))
    (id,) = line.add("a")
    assert line.granted()[0][1] == [f"task/{id}"]


def test_a_task_cannot_be_waited_for_like_a_path(line: Line) -> None:
    for items in (paths("@task/t1"), paths("@tasks/next", "a")):
        with pytest.raises(UsageError):
            line.decide("wait", Wait(Actor("bob"), items))


@pytest.mark.parametrize("items", [["task/t3"], ["task/t2", "b"], ["task/t2"], ["a", "task/t2"], ["task/t2", "a", "x"]])
def test_a_forged_grant_is_illegal(items: list[str]) -> None:
    line = Line()
    line.wait("w1")
    line.take("eve", "a")
    line.add(New("x", paths=paths("a")))
    row: dict[str, Any] = {
        "ticket": all_requests(line.state)[0].ticket, "agent": "w1", "past": [], "capacity": {},
        "items": [["resource" if name.startswith("task/") else "path", name] for name in items],
    }  # fmt: skip
    body = {"released": [{**dict.fromkeys(("commit", "base"), ""), "space": "path", "path": "a", "files": [], "landed": [],
                          "token": line.claims("eve")[0].token}]}  # fmt: skip
    event = Event("release", line.state.seq + 1, "eve", line.host.wall(), "n", 0, body, granted=(row,))
    with pytest.raises(Illegal):
        line.commit(Decision([event], [], {}))


@given(seed=st.integers(0, 10**9))
@settings(max_examples=25, deadline=None)
def test_any_walk(seed: int) -> None:
    chance, line = Random(seed), Line()
    line.caps = chance.choice(({}, {"": 2}))
    line.resources["workers/all"] = Resource(capacity=2)  # for the check
    agents = ("w1", "w2", "w3", "w4")
    for _ in range(30):
        name = chance.choice(agents)
        step = chance.randint(0, 9)
        if step < 3:
            line.do("wait", Wait(worker(name), (NEXT,), ttl=60))
        elif step < 5:
            where = chance.choice(((), paths("a"), paths("a", "b")))
            line.add(New("x", paths=where))
        elif step < 7:
            answer = line.do("assign", Assign(worker(name)))
            if isinstance(answer, Decision) and answer.again:
                line.do("assign", Assign(worker(name)))
        elif step < 8:
            for held in [task for task in all_tasks(line.state) if task.owner == name and task.state == "active"]:
                line.finish(name, held.id)
        elif step < 9:
            line.do("claim", Take(worker(name), paths(chance.choice(("a", "b", "c")))))
        else:
            line.host.advance(chance.choice((1, 20, 100)))
            line.do("expire", Sweep(worker(name)))
        line.check()
        could = Requests(line.state, line.outside()).grants(all_requests(line.state))
        assert not could, "somebody could go and was not told"
    line.check_replay()
