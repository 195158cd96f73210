"""Tasks by their rules alone: one owner, nothing lost, order, caps, lines of work, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gitcoord.base.errors import UsageError
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.model import Item
from gitcoord.ledger.event import Illegal
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.stop import Stop
from gitcoord.tasks.events.assign import Assign
from gitcoord.tasks.events.finish import Finish
from gitcoord.tasks.events.revise import Revise
from gitcoord.tasks.events.task import Add, New
from gitcoord.tasks.model import STATES, Task, all_tasks, held_by, ready, task_record, unmet
from gitcoord.tasks.workers import Workers, cap_resources
from tests.ledger.world import World, advance, paths

if TYPE_CHECKING:
    from gitcoord.base.codec import Record

ADA = Actor("ada", person=True)
DONE = {"summary": "done", "not_done": []}


def worker(name: str) -> Actor:
    return Actor(name, f"run:{name}")


class Queue(World):
    def add(self, *titles: str | New, by: str = "boss") -> list[str]:
        rows = tuple(New(title) if isinstance(title, str) else title for title in titles)
        return [row["id"] for row in self.must("task", Add(Actor(by), rows)).result["tasks"]]

    def next(self, name: str, **more: Any) -> str:
        row: Any = self.must("assign", Assign(worker(name), **more)).result["task"]
        return row["id"] if row else ""

    def finish(self, name: str, id: str, outcome: str = "done", record: Record | None = None) -> None:
        given = record or (DONE if outcome == "done" else {"reason": "no"})
        self.must("finish", Finish(worker(name), id, outcome, given))

    def move(self, name: str, id: str, move: str, **more: Any) -> None:
        self.must("revise", Revise(worker(name), id, {}, move, reason="because", **more))

    def task(self, id: str) -> Task:
        found = task_record(self.state, id)
        assert found is not None
        return found

    def check(self) -> None:
        super().check()
        self.check_index()

    def check_index(self) -> None:
        """The small files say what the tasks say, worked out anew from all of them."""
        wanted = set()
        for task in all_tasks(self.state):
            id = task.id
            assert task.state in STATES
            assert bool(task.owner) or task.state not in ("active", "assigned"), task
            if task.owner:
                wanted.add(f"work/of/{task.owner}/@{id}")
            if task.state == "open":
                waits = [n for n in task.needs if self.task(n).state != "done"]
                wanted |= {f"work/waits/{need}/@{id}" for need in waits}
                if not waits:
                    rank = ("critical", "high", "normal", "low").index(task.priority)
                    wanted.add(f"work/ready/{rank}-{int(id[1:]):015d}")
            if task.key:
                wanted.add(f"work/keys/{task.key}")
        assert set(self.state.below("work")) == wanted


def test_order_and_one_owner() -> None:
    world = Queue()
    low, normal, high, second = world.add(New("low", priority="low"), "normal", New("high", priority="high"), "second")
    assert [world.next("w1"), world.next("w2"), world.next("w3"), world.next("w4")] == [high, normal, second, low]
    assert world.next("w5") == ""
    assert world.task(high).owner == "w1" and held_by(world.state, "w1")[0].id == high
    world.check()


def test_what_waits_is_skipped_until_it_is_done() -> None:
    world = Queue()
    first = world.add("first")[0]
    then, last = world.add(New("then", needs=(first,), priority="critical"), New("last", needs=(first,)))
    end = world.add(New("end", needs=(then, last)))[0]
    assert ready(world.state) == [first] and world.next("w1") == first and world.next("w2") == ""
    assert world.refused("assign", Assign(worker("w2"), then)).code == "not-ready"
    world.finish("w1", first)
    assert ready(world.state) == [then, last]
    assert (world.next("w1"), world.next("w2")) == (then, last)
    world.finish("w1", then)
    assert world.next("w1") == ""
    world.finish("w2", last)
    assert world.next("w1") == end
    world.check()


def test_a_failed_need_leaves_the_rest_waiting() -> None:
    world = Queue()
    first = world.add("first")[0]
    then = world.add(New("then", needs=(first,)))[0]
    assert world.next("w1") == first
    world.finish("w1", first, "failed")
    assert world.next("w1") == "" and unmet(world.state, world.task(then)) == [first]
    world.must("revise", Revise(Actor("boss"), first, {}, "open"))
    assert world.next("w1") == first
    world.check()


def test_circles_are_refused() -> None:
    world = Queue()
    a, b = world.add("a", "b")
    c = world.add(New("c", needs=(b,)))[0]
    world.must("revise", Revise(Actor("boss"), b, {"needs": [a]}))
    for wrong in (a, b, c):
        assert world.refused("revise", Revise(Actor("boss"), a, {"needs": [wrong]})).code == "circle"
    assert world.refused("revise", Revise(Actor("boss"), a, {"needs": ["t999"]})).code == "no-task"
    world.check()


def test_paths_come_with_the_task_or_not_at_all() -> None:
    world = Queue()
    one, two = world.add(New("one", paths=paths("src/a", "@gpu")), New("two", paths=paths("src")))
    assert world.next("w1") == one
    assert world.held() == {("src/a", "w1", "write"), ("gpu", "w1", "write")}
    assert world.next("w2") == "", "what needs paths that others hold is skipped"
    refusal = world.refused("assign", Assign(worker("w2"), two))
    assert refusal.code == "held" and refusal.blocking_claims[0]["agent"] == "w1"
    free = world.add("free")[0]
    assert world.next("w2") == free
    world.finish("w1", one)
    assert not world.claims("w1") and world.next("w3") == two
    world.check()


def test_a_line_of_work_has_one_mover() -> None:
    world = Queue()
    one, two, other = world.add(New("one", line="api"), New("two", line="api"), New("other", line="web"))
    assert (world.next("w1"), world.next("w2"), world.next("w3")) == (one, other, "")
    world.finish("w1", one)
    assert world.next("w3") == two
    world.check()


def test_caps() -> None:
    world = Queue()
    world.caps = {"": 2}
    world.resources.update(cap_resources(Workers(world.caps)))
    ids = world.add("a", "b", "c", "d")
    assert [world.next("w1"), world.next("w2")] == ids[:2]
    refusal = world.refused("assign", Assign(worker("w3")))
    assert refusal.code == "cap" and {row["agent"] for row in refusal.blocking_claims} == {"w1", "w2"}
    assert world.next("w1") == ids[2], "one who is at work may take more: a worker counts once"
    world.finish("w1", ids[0])
    assert world.refused("assign", Assign(worker("w3"))).code == "cap", "it is still at work"
    world.finish("w1", ids[2])
    assert world.next("w3") == ids[3]
    world.check()


def test_a_silent_worker_loses_task_and_claims() -> None:
    world = Queue()
    id = world.add(New("a", paths=paths("src")))[0]
    assert world.next("w1") == id and world.task(id).ttl == 60
    world.host.advance(95)
    assert world.next("w2") == id
    assert world.task(id).owner == "w2" and world.task(id).attempts == 1 and world.held() == {("src", "w2", "write")}
    assert world.refused("finish", Finish(worker("w1"), id, "done", DONE)).code == "not-yours"
    world.check()


def test_a_heard_worker_keeps_it() -> None:
    world = Queue()
    id = world.add("a")[0]
    assert world.next("w1") == id
    for _ in range(20):
        world.host.advance(40)
        world.heartbeat("w1")
        assert world.next("w2") == ""
    world.check()


def test_attempts_end_with_a_person() -> None:
    world = Queue()
    id = world.add(New("a", limit=2))[0]
    assert world.next("w1") == id
    world.host.advance(95)
    assert world.next("w2") == id
    world.host.advance(95)
    assert world.next("w3") == "" and world.task(id).state == "needs-human"
    assert world.refused("revise", Revise(Actor("boss"), id, {}, "open", reason="x")).code == "person"
    world.must("revise", Revise(ADA, id, {}, "open", reason="seen"))
    assert world.next("w3") == id
    world.check()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_task_of_a_session_that_is_over_goes_on(how: str) -> None:
    world = Queue()
    id = world.add("a")[0]
    assert world.next("w1") == id
    world.must("stop", Stop(worker("w1"), True)) if how == "stop" else world.must("kill", Kill(ADA, "w1", "x"))
    assert world.next("w2") == id and world.task(id).attempts == 1
    world.check()


def test_stop_refuses_while_a_task_would_be_stranded() -> None:
    world = Queue()
    id = world.add("a")[0]
    assert world.next("w1") == id
    refusal = world.refused("stop", Stop(worker("w1")))
    assert refusal.code == "task" and any("git handoff" in hint for hint in refusal.hints)
    world.move("w1", id, "open")
    world.must("stop", Stop(worker("w1")))
    world.check()


def test_kept_for_somebody() -> None:
    world = Queue()
    id = world.add(New("a", owner="w7"))[0]
    assert world.task(id).state == "assigned" and world.next("w1") == ""
    world.host.advance(100_000)
    assert world.next("w1") == "", "it waits for the one it is kept for"
    assert world.next("w7") == id
    world.check()


def test_review_is_by_another() -> None:
    world = Queue()
    id = world.add(New("a", review=True))[0]
    then = world.add(New("then", needs=(id,)))[0]
    assert world.next("w1") == id
    world.finish("w1", id)
    assert world.task(id).state == "review" and world.next("w2") == ""
    assert world.refused("revise", Revise(worker("w1"), id, {}, "done")).code == "own-work"
    world.move("w2", id, "open")
    assert world.next("w1") == id
    world.finish("w1", id)
    world.move("w2", id, "done")
    assert world.next("w2") == then
    world.check()


def test_blocked_and_back() -> None:
    world = Queue()
    id = world.add("a")[0]
    assert world.next("w1") == id
    with pytest.raises(UsageError):
        world.decide("revise", Revise(worker("w1"), id, {}, "blocked"))
    world.move("w1", id, "blocked")
    assert world.task(id).reason == "because"
    world.host.advance(1000)
    assert world.next("w2") == "", "what is blocked is not given to the next"
    world.heartbeat("w1")
    world.move("w1", id, "unblock")
    assert world.task(id).state == "active"
    world.move("w1", id, "blocked")
    world.must("stop", Stop(worker("w1"), True))
    world.move("boss", id, "unblock")
    assert world.task(id).state == "open" and world.next("w2") == id
    world.check()


def test_whose_it_is_to_move() -> None:
    world = Queue()
    id = world.add("a")[0]
    assert world.next("w1") == id
    for move in ("open", "abandoned", "blocked"):
        assert world.refused("revise", Revise(worker("w2"), id, {}, move, reason="x")).code == "not-yours"
    assert world.refused("revise", Revise(worker("w2"), id, {"title": "b"})).code == "not-yours"
    assert world.refused("revise", Revise(Actor("boss"), id, {}, "open", reason="x")).code == "not-yours"
    assert world.refused("revise", Revise(worker("w1"), id, {"paths": [["path", "x"]]})).code == "active"
    world.must("revise", Revise(Actor("boss"), id, {"title": "b", "priority": "high"}))
    world.must("revise", Revise(ADA, id, {}, "open", reason="x"))
    assert world.refused("finish", Finish(worker("w1"), id, "done", DONE)).code == "not-yours"
    world.check()


def test_repeats_are_harmless() -> None:
    world = Queue()
    id = world.add(New("a", key="k"))[0]
    assert world.add(New("another title", key="k")) == [id]
    assert world.next("w1", nonce="n") == id
    world.add("b")
    assert world.next("w1", nonce="n") == id
    done = Finish(worker("w1"), id, "done", DONE, nonce="m")
    world.must("finish", done)
    seq = world.state.seq
    assert world.must("finish", done).result["repeated"] and world.state.seq == seq
    assert world.refused("finish", done._replace(record={"summary": "x", "not_done": []})).code == "nonce"
    assert world.refused("assign", Assign(worker("w1"), nonce="n")).code == "gone"
    world.check()


WRONG = {
    "no title": New(""),
    "a title of two lines": New("a\nb"),
    "escape codes": New("\x1b[2J"),
    "a body of 10 MB": New("a", "x" * 10_000_000),
    "a bidi mark": New("a", "x\u202ey"),
    "a priority": New("a", priority="urgent"),
    "a need": New("a", needs=("t99",)),
    "a path out of the tree": New("a", paths=(Item("path", "../x"),)),
    "git's own": New("a", paths=(Item("path", ".git/config"),)),
    "a space": New("a", paths=(Item("elsewhere", "x"),)),
    "a key": New("a", key="../../x"),
    "an owner": New("a", owner="No One"),
    "a line": New("a", line="../x"),
    "a role": New("a", role="a b"),
    "attempts": New("a", limit=-1),
    "time": New("a", expected=-1),
}


@pytest.mark.parametrize("new", WRONG.values(), ids=WRONG)
def test_bad_tasks_change_nothing(new: New) -> None:
    world = Queue()
    with pytest.raises(UsageError):
        world.decide("task", Add(Actor("boss"), (New("good"), new)))


RESULTS: dict[str, Any] = {
    "nothing": {},
    "no object": [],
    "what was not done is not said": {"summary": "x"},
    "no list": {"summary": "x", "not_done": "nothing"},
    "an empty summary": {"summary": " ", "not_done": []},
    "an unknown key": {"summary": "x", "not_done": [], "extra": 1},
    "another type": {"type": "failed", "summary": "x", "not_done": []},
    "a later version": {"v": 2, "summary": "x", "not_done": []},
    "no commit": {"summary": "x", "not_done": [], "commits": ["HEAD"]},
    "numbers": {"summary": "x", "not_done": [1]},
    "escape codes": {"summary": "\x1b]0;x\x07", "not_done": []},
    "10 MB": {"summary": "x" * 10_000_000, "not_done": []},
    "too many rows": {"summary": "x", "not_done": ["y"] * 1000},
}


@pytest.mark.parametrize("record", RESULTS.values(), ids=RESULTS)
def test_results_are_checked(record: Any) -> None:
    world = Queue()
    id = world.add("a")[0]
    assert world.next("w1") == id
    with pytest.raises(UsageError):
        world.decide("finish", Finish(worker("w1"), id, "done", record))


def test_events_by_another_hand_are_refused() -> None:
    """`apply` refuses these events, whoever wrote them."""
    world = Queue()
    id, other = world.add("a", New("b", needs=("t2",)))
    assert world.next("w1") == id
    last = world.events()[-1]
    bad = [
        last._replace(kind="assign", body={"id": other, "session": 1, "ttl": 60}),
        last._replace(kind="assign", body={"id": id, "session": 1, "ttl": 60}),
        last._replace(kind="assign", agent="w9", body={"id": other, "session": 1, "ttl": 60}),
        last._replace(kind="finish", agent="w2", body={"id": id, "outcome": "done", "result": {}}),
        last._replace(kind="finish", body={"id": id, "outcome": "done", "result": {"summary": "x"}}),
        last._replace(kind="finish", body={"id": id, "outcome": "open", "result": {}}),
        last._replace(kind="lapse", body={"tasks": [
            {"id": other, "agent": "w1", "session": 1, "beat": "", "rule": "", "to": "open"}]}),
        last._replace(kind="lapse", body={"tasks": [
            {"id": id, "agent": "w1", "session": 1, "beat": "", "rule": "", "to": "needs-human"}]}),
    ]  # fmt: skip
    for move, content in (("done", {}), ("", {"owner": "w2"}), ("", {"safe": 5}), ("", {"title": ""}), ("active", {})):
        body = {"id": id, "set": content, "move": move, "owner": "", "reason": "", "counted": False}
        bad.append(last._replace(kind="revise", body=body))
    for event in bad:
        with pytest.raises(Illegal):
            advance(world.state, event._replace(seq=world.state.seq + 1))
    world.check()


def test_a_sweep_takes_task_and_place_together() -> None:
    """A task without its place under the cap would exceed the cap, so both end together."""
    world = Queue()
    world.caps = {"": 1}
    world.resources.update(cap_resources(Workers(world.caps)))
    id, other = world.add(New("a", paths=paths("src")), "b")
    assert world.next("w1") == id
    world.host.advance(95)
    answer = world.must("expire", Sweep(Actor("boss")))
    assert [event.kind for event in answer.events] == ["lapse", "expire"] and answer.result["lapsed"] == [id]
    assert world.task(id).state == "open" and not world.claims()
    assert world.next("w2") == id and world.refused("assign", Assign(worker("w3"), other)).code == "cap"
    world.check()


@pytest.mark.parametrize("named", [True, False], ids=["by its id", "the next one"])
def test_a_task_that_needs_what_a_lost_owner_holds_opens_the_owners_task_again(named: bool) -> None:
    """Else the owner, when it comes back, has a task without the claims for it."""
    world = Queue()
    first, _, second = world.add(
        New("a", paths=paths("src")), "elsewhere", New("b", paths=paths("src/a"), priority="high")
    )
    world.must("assign", Assign(worker("w1"), first))
    world.host.advance(3 * 3600)
    assert world.next("w2", id=second if named else "") == second
    assert (world.task(first).state, world.task(first).owner) == ("open", "") and not world.claims("w1")
    world.check()
