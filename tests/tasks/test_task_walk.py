"""Long random histories of tasks: workers that take, finish, fail, block, expire, stop and are killed, under caps."""

from __future__ import annotations

from random import Random

import pytest

from gitcoord.base.errors import UsageError
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.requests import NEXT
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.close import Close
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.handoff.model import handoff_record, open_handoffs
from gitcoord.ledger.event import Decision, decode_event
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.stop import Stop
from gitcoord.tasks.events.assign import Assign, items_of
from gitcoord.tasks.events.finish import Finish
from gitcoord.tasks.events.lapse import Collect
from gitcoord.tasks.events.revise import Revise
from gitcoord.tasks.events.task import Add, New
from gitcoord.tasks.model import OVER, PRIORITIES, Task, all_tasks, tasks_of
from gitcoord.tasks.workers import Workers, cap_resources
from tests.ledger.test_stateful import SECTIONS as SAID
from tests.ledger.world import paths
from tests.races.support import soak
from tests.tasks.test_task_rules import ADA, DONE, Queue, worker

WORKERS = [f"w{n}" for n in range(5)]
PLACES = ("src", "src/a", "src/b", "docs", "@gpu")
MOVES = ("open", "blocked", "needs-human", "unblock", "abandoned", "done", "assigned", "")


class Walk:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = Queue()
        self.world.caps = self.random.choice([{}, {"": 2}, {"": 3}])
        self.world.resources.update(cap_resources(Workers(self.world.caps)))
        self.ids: list[str] = []
        self.finished: set[str] = set()
        self.handed = 0
        self.told = 0  # events that `owners` knows of
        self.owners: dict[str, str] = {}

    def step(self) -> None:
        act = self.random.choices(
            [
                self.add,
                self.take,
                self.finish,
                self.revise,
                self.wait,
                self.beat,
                self.stop,
                self.kill,
                self.collect,
                self.hand_over,
                self.stand_in_the_queue,
            ],
            [2, 6, 4, 2, 2, 6, 1, 0.3, 1, 4, 1],
        )[0]
        try:
            act()
        except UsageError:
            pass  # a move without a reason and the like: nothing happened
        self.check()

    def add(self) -> None:
        some = self.random.sample(self.ids, min(len(self.ids), self.random.choice([0, 0, 1, 2])))
        new = New(
            f"task {len(self.ids)}", priority=self.random.choice(PRIORITIES), needs=tuple(some),
            paths=paths(*self.random.sample(PLACES, self.random.choice([0, 0, 1, 2]))),
            line=self.random.choice(["", "", "api"]), review=self.random.random() < 0.2, limit=self.random.choice([1, 2, 5]),
            key=self.random.choice(["", f"k{len(self.ids)}"]), owner=self.random.choice(["", "", "", "w1"]),
        )  # fmt: skip
        self.ids += [row["id"] for row in self.world.must("task", Add(Actor("boss"), (new,))).result["tasks"]]

    def take(self) -> None:
        id = self.random.choice(["", "", self.random.choice(self.ids)]) if self.ids else ""
        command = Assign(self.actor(), id)
        answer = self.world.do("assign", command)
        if isinstance(answer, Decision) and answer.again:
            self.world.do("assign", command)

    def stand_in_the_queue(self) -> None:
        self.world.do("wait", Wait(self.actor(), (NEXT,), ttl=60))

    def finish(self) -> None:
        actor = self.actor()
        for task in tasks_of(self.world.state, actor.agent)[:1]:
            outcome = self.random.choice(["done", "done", "failed"])
            record = DONE if outcome == "done" else {"reason": "no"}
            self.world.do("finish", Finish(actor, task.id, outcome, record))

    def revise(self) -> None:
        if self.ids:
            move = self.random.choice(MOVES)
            content = {"needs": self.random.sample(self.ids, 1)} if not move else {}
            actor = self.random.choice([self.actor(), Actor("boss"), ADA])
            owner = self.random.choice(WORKERS) if move == "assigned" else ""
            self.world.do("revise", Revise(actor, self.random.choice(self.ids), content, move, owner, reason="so"))

    def hand_over(self) -> None:
        """A task is offered, declined, withdrawn or accepted: it always has one owner, who has its claims."""
        actor, waiting = self.actor(), open_handoffs(self.world.state)
        mine = [task.id for task in tasks_of(self.world.state, actor.agent)]
        if mine and (not waiting or self.random.random() < 0.5):
            self.world.do("handoff", Offer(actor, SAID, task=self.random.choice([*mine, ""])))
        elif waiting:
            row = self.random.choice(waiting)
            how = self.random.choice(["accept", "accept", "accept", "declined", "withdrawn"])
            if how != "accept":
                self.world.do("close", Close(actor, row.id, how, "so"))
            elif isinstance(self.world.do("accept", Accept(actor, row.id)), Decision) and row.task:
                task = self.world.task(row.task)
                assert (task.owner, task.token, task.handoff) == (actor.agent, self.world.state.seq, "")
                self.handed += 1

    def wait(self) -> None:
        self.world.host.advance(self.random.choice([5, 40, 100]))

    def beat(self) -> None:
        self.world.heartbeat(self.random.choice(WORKERS))

    def stop(self) -> None:
        self.world.do("stop", Stop(self.actor(), self.random.random() < 0.5))

    def kill(self) -> None:
        name = self.random.choice(WORKERS)
        self.world.do("kill", Kill(ADA, name, "x"))
        self.world.do("revive", Revive(ADA, name))

    def collect(self) -> None:
        if self.random.random() < 0.5:
            self.world.do("lapse", Collect(Actor("boss")))
        else:
            self.world.do("expire", Sweep(Actor("boss")))

    def actor(self) -> Actor:
        return worker(self.random.choice(WORKERS))

    def follow(self) -> None:
        """Follow the owners by the events alone: a task is given out only after its last owner lost it or gave it up."""
        for message in self.world.log[self.told :]:
            event = decode_event(message)
            body = event.body
            if event.kind == "assign":
                assert body["id"] not in self.owners, f"{body['id']} has two owners"
                self.owners[body["id"]] = event.agent
            elif event.kind == "accept" and body["task"]:
                kept = self.owners.get(body["task"], body["holder"])  # one that was only kept for somebody, and blocked
                assert kept == body["holder"], "passed on by another than its owner"
                self.owners[body["task"]] = event.agent
            elif event.kind == "finish":
                assert self.owners.pop(body["id"]) == event.agent, "finished by another than its owner"
            elif event.kind == "lapse":
                assert all(self.owners.pop(row["id"]) == row["agent"] for row in body["tasks"])
            elif event.kind == "close" and body["returned"]:
                record = handoff_record(self.world.state, body["handoff"])
                assert record is not None
                self.owners.pop(record.task, None)
            elif event.kind == "revise" and (
                body["counted"] or body["move"] in ("open", "assigned", "abandoned", "done")
            ):
                self.owners.pop(body["id"], None)
        self.told = len(self.world.log)

    def check(self) -> None:
        self.world.check()
        self.follow()
        tasks = all_tasks(self.world.state)
        held = {task.id: task.owner for task in tasks if task.owner and task.session}
        assert held == self.owners
        assert [task.id for task in tasks] == self.ids, "a task was lost"
        done = {task.id for task in tasks if task.state == "done"}
        assert self.finished <= done, "what is done stays done"
        self.finished = done
        claimed = self.world.claims()
        reserved = {c.token for c in claimed if c.path.startswith("task/")}
        for task in tasks:
            claims = [c for c in claimed if c.task == task.id and not c.path.startswith("workers/")]
            claims = [c for c in claims if c.token not in reserved]
            if task.state in ("open", "assigned", *OVER):
                live = [c for c in claims if [c.space, c.path] in task.paths and self._has(c.agent, task.id)]
                assert not live, f"claims outlive {task}"
        # What is offered to others is nobody's work for now.
        mine = [task for task in tasks if task.state == "active" and not task.handoff]
        at_work = {task.owner for task in mine if self._is_here(task)}
        held_now = {c.key for c in self.world.claims()}
        for task in mine:
            wanted = {(*item, task.owner) for item in items_of(task)}
            assert not self._is_here(task) or wanted <= held_now, f"at work on {task.id} without {wanted - held_now}"
        cap = self.world.caps.get("")
        holding = [c for c in self.world.claims() if c.path == "workers/all"]
        assert cap is None or len(holding) <= cap
        assert cap is None or at_work <= {c.agent for c in holding}, "at work beside the cap"

    def _is_here(self, task: Task) -> bool:
        record = self.world.agent(task.owner)
        return record is not None and record["state"] == "open" and record["session"] == task.session

    def _has(self, agent: str, id: str) -> bool:
        return any(task.id == id for task in tasks_of(self.world.state, agent))


def walk_tasks(seed: int, steps: int) -> Walk:
    walk = Walk(seed)
    for _ in range(steps):
        walk.step()
    walk.world.check_replay()
    return walk


def test_no_task_is_lost_or_has_two_owners_and_caps_hold() -> None:
    """The histories are useful: tasks are handed over in them, and reach every state."""
    walks = [walk_tasks(seed, 250) for seed in range(soak(6, 60))]
    assert sum(walk.handed for walk in walks) > 2
    seen = {task.state for walk in walks for task in all_tasks(walk.world.state)}
    assert seen >= {"open", "active", "blocked", "done", "failed", "abandoned"}


@pytest.mark.parametrize(
    "seed", [336, 256, 298], ids=["a task by its id", "an accepted handoff", "a handoff of two tasks"]
)
def test_nobody_is_at_work_without_the_claims_for_it(seed: int) -> None:
    """Histories in which an expired owner, or one with two tasks, lost the claims of a task and kept the task."""
    walk_tasks(seed, 300)


def test_a_decision_is_made_of_what_was_asked() -> None:
    """A chain's last event is the one that tells the command, as the server needs it."""
    world = Queue()
    (id,) = world.add(New("a", paths=paths("src")))
    answer = world.decide("assign", Assign(worker("w1")))
    assert isinstance(answer, Decision)
    assert [event.kind for event in answer.events] == ["start", "claim", "assign"] and answer.events[-1].body[
        "id"
    ] == id
