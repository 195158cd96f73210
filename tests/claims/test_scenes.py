"""Scenes from the lock tests of two databases, told again with claims and waits, on the rules alone.

A scene is a list of steps "<agent> <verb> <items>: <answer>", where the answer is followed by the agents that the step's own event grants;
"+<seconds>" moves the clock. Each step is made again by a server before it counts.

PostgreSQL, `src/test/isolation/specs/deadlock-*.spec`:

| there | here |
| --- | --- |
| simple | `two upgrades` |
| hard | `test_eight_in_a_circle` in test_deadlock_rules.py |
| soft | `readers pass writers that cannot go`, and `... that may not be passed any more` |
| soft-2 | `past two at once`, `not past those that may not be passed`, `past two that may not be passed` |
| parallel | no meaning: workers of one group share its locks there; here a subagent is an agent of its own, and works under its parent's claim without one (the gates know families) |

CockroachDB, `pkg/kv/kvserver/concurrency/testdata`, `concurrency_manager/`:

| there | here |
| --- | --- |
| deadlocks: lock ordering | `three in a circle`, `three in a circle and one beside it`, `the circle is broken by another's end` |
| deadlocks: three of request ordering | `half of a request is free`, `two requests share their free halves`: a request holds nothing while it waits, so there is no circle; `half of a request is kept, ...`, `two that may not be passed` |
| priority | `priority takes nothing away`, `the classes`, `a reservation is not taken away` |
| wait_policy_error, lock_timeout, queue_length_exceeded | `not waiting is no place`, test_queue.py (`--wait` that is over); a queue has no longest length |
| wait_policy_skip, shared_locks_wait_policy_skip_locked | tests/tasks/test_task_queue_rules.py: who waits for any task passes those whose paths are held |
| wait_self, wait_elsewhere | `asking twice`; there is no memory of locks that could be cleared |
| clear_abandoned_intents, discovered_lock, resolve_pushed_intents | `the holder's session ends`, `the waiter's session ends`, `holders die one by one`, `a directory waits for all below it`, `found expired by a later one` |
| shared_locks | `each reads what the other wants to write`, `each writes what the other wants to read`, `one of two readers waits for the writer`, `test_a_waiter_is_told_who_is_left`; below, `lock_table/shared_locks` |
| barrier, latches, poison, uncertainty, optimistic, refresh, update, isolation_level, replicated, range_state_listener, virtual resolution | no meaning: no latches, timestamps, replicas or ranges |

`lock_table/`:

| there | here |
| --- | --- |
| basic, non_active_waiter | `several items, freed one by one`, `a later request for one of the items`, `a wait that is granted at once ...` |
| shared_locks | `readers share, a writer waits for all`, `readers go together`, `a writer first, then readers`, `the head leaves`, `from writing to reading`, `two readers behind a writer that leaves`, `a granted writer does not come`, `two granted readers do not come`, `a writer asks as a reader`; a reader may pass a waiting writer three times, where there it never may |
| lock_promotion | `an upgrade goes before all who wait`, `an upgrade waits for two other readers`, `two upgrades`, `... that do not block`, `readers granted together want to write`, `an upgrade beside half a request`, `an upgrade past one that may not be passed`, `... before an earlier reader`, `each has what the other wants too` |
| dup_access, acquire_idempotency, lock_changes | `asking twice`, `taken again`, `only one's own`, `overlapping pairs, ...` |
| non_txn_write | `a plain claim is last` |
| child_txn | no meaning, as PostgreSQL's parallel |
| skip_locked, queue_length_exceeded | as above |
| query | test_queue.py (`git claim list`) |
| clear_finalized_txn_locks | as clear_abandoned_intents |
| add_discovered, clear, disable, lock_dropped, size_limit_exceeded, read_committed, ... | no meaning: the ledger is all there is, and it is never dropped |
"""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.take import Take
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.stop import Stop
from tests.claims.test_queue_rules import release, take, wait
from tests.ledger.world import World, paths
from tests.server.test_retrace import served

__all__ = ["served"]


def _passed(item: str, *, verb: str = "reads") -> list[str]:
    """Somebody has it three times, past those who wait."""
    return [f"p {verb} {item}: gets", f"p frees {item}: done"] * 3


SCENES: dict[str, list[str]] = {
    # --- circles
    "two upgrades": [
        "s1 reads a: gets", "s2 reads a: gets", "s1 waits a: waits", "s2 waits a: deadlock", "s2 frees a: done s1",
    ],
    "three in a circle": [
        "t1 takes a: gets", "t2 takes b: gets", "t3 takes c: gets",
        "t1 waits-to-read b: waits", "t2 waits-to-read c: waits", "t3 waits-to-read a: deadlock",
        "t3 frees: done t2", "t2 frees: done t1", "t1 frees: done",
    ],
    "three in a circle and one beside it": [
        "t1 takes a: gets", "t2 takes b: gets", "t3 takes c: gets", "t4 waits a: waits",
        "t1 waits b: waits", "t2 waits c: waits", "t3 waits a: deadlock",
        "t3 frees: done t2", "t2 frees: done t1", "t1 frees: done t4", "t3 tries a: held",
    ],
    "half of a request is free": [
        "t1 takes a: gets", "t2 takes b: gets", "t3 takes c: gets", "t4 waits b c: waits", "t2 frees: done",
        "t1 waits b: gets", "t3 waits a: waits", "t1 frees: done t3", "t3 frees: done t4",
    ],
    "two requests share their free halves": [
        "t1 takes a: gets", "t2 takes b: gets", "t3 takes c: gets", "t5 waits b c: waits", "t4 waits a b: waits",
        "t1 frees: done", "t2 frees: done t4", "t3 waits a: waits", "t4 frees: done t3", "t3 frees: done t5",
    ],
    "the circle is broken by another's end": [
        "t1 takes a: gets", "t2 takes b: gets", "t3 takes c: gets", "t4 waits a: waits", "t1 waits b: waits",
        "t2 waits c: waits", "t3 waits a: deadlock", "t1 dies: done t4", "t3 waits a: waits", "t4 frees: done t3",
        "t3 frees: done t2",
    ],
    "each reads what the other wants to write": [
        "t1 reads a: gets", "t2 reads b: gets", "t1 waits b: waits", "t2 waits a: deadlock", "t1 ends: done",
        "t2 waits a: gets",
    ],
    "each writes what the other wants to read": [
        "t1 takes a: gets", "t2 takes b: gets", "t1 waits-to-read b: waits", "t2 waits-to-read a: deadlock",
        "t2 frees: done t1",
    ],
    "one of two readers waits for the writer": [
        "t1 reads a: gets", "t2 reads a: gets", "t3 takes b: gets", "t2 waits-to-read b: waits", "t3 waits a: deadlock",
        "t1 frees: done", "t3 waits a: deadlock", "t2 dies: done", "t3 waits a: gets",
    ],
    "the writer waits for one of two readers": [
        "t1 reads a: gets", "t2 reads a: gets", "t3 takes b: gets", "t3 waits a: waits", "t2 waits-to-read b: deadlock",
        "t1 frees: done", "t2 frees: done t3",
    ],
    # --- circles that the order would make
    "readers pass writers that cannot go": [
        "d1 reads a: gets", "d2 reads b: gets", "e1 waits a: waits", "e2 waits b: waits",
        "d1 waits-to-read b: gets", "d2 waits-to-read a: gets", "d1 frees: done", "d2 frees: done e1 e2",
    ],
    "readers pass writers that may not be passed any more": [
        "d1 reads a: gets", "d2 reads b: gets", "e1 waits a: waits", "e2 waits b: waits", *_passed("a"), *_passed("b"),
        "d1 waits-to-read b: waits", "d2 waits-to-read a: waits d1", "d1 frees: done e1", "e1 frees: done d2",
        "d2 frees: done e2",
    ],
    "past two at once": [
        "s1 takes a: gets", "s2 reads b: gets", "s2 waits a: waits", "s3 waits b: waits", "s4 waits b: waits",
        "s1 waits-to-read b: gets", "s1 frees: done s2", "s2 frees: done s3", "s3 frees: done s4",
    ],
    "not past those that may not be passed": [
        "s1 takes a: gets", "s2 reads b: gets", "s2 waits a: waits", "s3 waits b: waits", *_passed("b"),
        "s1 waits-to-read b: kept", "s1 frees: done s2", "s2 frees: done s3",
    ],
    "past two that may not be passed": [
        "s1 takes a: gets", "s9 takes c: gets", "s2 reads b: gets", "s2 waits a: waits", "s1 waits-to-read b c: waits",
        "s3 waits b: waits", "s4 waits b: waits", *_passed("b"), "s9 frees: done s1", "s1 frees: done s2",
        "s2 frees: done s3", "s3 frees: done s4",
    ],
    "half of a request is kept, and another's wait closes the circle": [
        "t1 takes a: gets", "t2 takes b: gets", "t3 takes c: gets", "t4 waits b c: waits", "t2 frees: done",
        *_passed("b", verb="takes"), "t1 waits b: waits", "t3 waits a: waits t1", "t1 frees: done t3", "t3 frees: done t4",
    ],
    "half of a request is kept, and who is kept off closes the circle": [
        "t1 takes a: gets", "t3 takes c: gets", "t4 waits b c: waits", *_passed("b", verb="takes"), "t3 waits a: waits",
        "t1 waits b: kept", "t1 frees: done t3", "t3 frees: done t4",
    ],
    "two that may not be passed": [
        "t3 takes c: gets", "t5 waits b c: waits", *_passed("b", verb="takes"), "t4 waits a b: waits",
        *_passed("a", verb="takes"), "t3 waits a: waits t4", "t4 frees: done t3", "t3 frees: done t5",
    ],
    "held back until the circle is gone": [
        "carol takes x y: gets", "alice takes d: gets", "alice waits a y: waits", "bob waits d x: waits",
        "bob queues a: waits", "alice frees d: done bob",
    ],
    # --- readers and writers
    "readers share, a writer waits for all": [
        "t1 reads a: gets", "t2 reads a: gets", "t3 reads a: gets", "t4 waits a: waits", "t2 reads a: gets",
        "t1 frees: done", "t2 frees: done", "t3 frees: done t4",
    ],
    "readers go together": [
        "t5 takes a: gets", "t1 waits-to-read a: waits", "t2 waits-to-read a: waits", "t3 waits a: waits",
        "t4 waits-to-read a: waits", "t5 frees: done t1 t2 t4", "t1 frees: done", "t4 frees: done", "t2 frees: done t3",
    ],
    "a writer first, then readers": [
        "t5 takes a: gets", "t1 waits a: waits", "t2 waits-to-read a: waits", "t3 waits-to-read a: waits",
        "t4 waits a: waits", "t5 frees: done t1", "t1 frees: done t2 t3", "t2 frees: done", "t3 frees: done t4",
    ],
    "the head leaves": [
        "t5 takes a: gets", "t1 waits a: waits", "t2 waits-to-read a: waits", "t5 frees: done t1", "t3 waits a: waits",
        "t1 frees: done t2", "t4 waits a: waits", "t3 leaves: done", "t2 frees: done t4",
    ],
    "a reader waits behind a writer at the head": [
        "t1 reads a: gets", "t2 waits a: waits", *_passed("a"), "t3 waits-to-read a: waits", "t2 leaves: done t3",
    ],
    "from writing to reading": [
        "t5 takes a: gets", "t2 waits a: waits", "t1 waits-to-read a: waits", "t5 reads a: gets t1", "t5 frees: done",
        "t1 frees: done t2",
    ],
    "two readers behind a writer that leaves": [
        "t1 reads a: gets", "t2 waits a: waits", *_passed("a"), "t3 waits-to-read a: waits", "t4 waits-to-read a: waits",
        "t2 leaves: done t3 t4",
    ],
    "intents go with readers": [
        "t5 takes a: gets", "t1 waits-to-read a: waits", "t2 waits-to-intend a: waits", "t3 waits a: waits",
        "t5 frees: done t1 t2", "t2 takes a: held", "t1 frees: done", "t2 takes a: gets", "t2 frees: done t3",
    ],
    # --- upgrades
    "an upgrade goes before all who wait": [
        "t1 reads a: gets", "t2 waits a: waits", "t1 takes a: gets", "t3 waits-to-read a: waits", "t1 frees: done t2",
    ],
    "an upgrade waits for two other readers": [
        "t1 reads a: gets", "t2 reads a: gets", "t3 reads a: gets", "t1 waits a: waits", "t2 frees: done",
        "t3 frees: done t1",
    ],
    "readers granted together want to write": [
        "t3 takes a: gets", "t1 waits-to-read a: waits", "t2 waits-to-read a: waits", "t3 frees: done t1 t2",
        "t1 waits a: waits", "t2 waits a: deadlock", "t2 frees: done t1",
    ],
    "an upgrade beside half a request": [
        "t3 takes a b: gets", "t1 waits-to-read a: waits", "t2 waits-to-read a b: waits", "t3 frees a: done t1",
        "t1 takes a: gets", "t3 frees b: done", "t1 frees a: done t2",
    ],
    "an upgrade past one that may not be passed": [
        "t1 reads a: gets", "t3 reads a: gets", "t2 waits a: waits", *_passed("a"), "t1 waits a: waits",
        "t3 frees: done t1", "t1 frees: done t2",
    ],
    "two upgrades that do not block": [
        "t1 reads a: gets", "t2 reads a: gets", "t1 queues a: waits", "t2 queues a: waits", "t1 frees a: done t2",
        "t2 frees: done t1",
    ],
    "each has what the other wants too": [
        "t1 takes b: gets", "t2 takes a: gets", "t1 waits a b: waits", "t2 waits a b: deadlock", "t2 frees a: done t1",
        "t2 waits a b: waits", "t1 frees: done t2",
    ],
    "each has what the other wants too, and neither blocks": [
        "t1 takes b: gets", "t2 takes a: gets", "t1 queues a b: waits", "t2 queues a b: waits", "t1 frees b: done t2",
        "t2 frees: done t1",
    ],
    "an upgrade goes before an earlier reader": [
        "t1 reads a: gets", "t2 reads a: gets", "t2 takes z: gets", "t3 waits-to-read a z: waits", "t1 waits a: waits",
        "t2 frees: done t1", "t1 frees: done t3",
    ],
    # --- the same agent again
    "asking twice": [
        "t1 takes a: gets", "t2 waits a: waits", "t3 waits a: waits", "t2 waits a: waits", "t1 frees: done t2",
        "t2 waits a: gets", "t2 frees: done t3",
    ],
    "taken again": ["t1 takes a: gets", "t2 waits a: waits", "t1 takes a: gets", "t1 reads a: gets", "t1 frees: done t2"],
    "only one's own": ["t1 takes a: gets", "t2 frees a: not-held", "t2 waits a: waits", "t2 frees a: not-held"],
    "several items, freed one by one": [
        "t1 takes a: gets", "t1 takes b: gets", "t1 takes c: gets", "t2 waits a b c: waits", "t1 frees a: done",
        "t3 tries a: gets", "t1 frees c: done", "t1 frees b: done", "t3 frees: done t2",
    ],
    "overlapping pairs, the first is free first": [
        "t1 takes a b c: gets", "t2 waits a b: waits", "t3 waits b c: waits", "t1 frees b: done", "t1 frees a: done t2",
        "t1 frees c: done", "t2 frees: done t3",
    ],
    "overlapping pairs, the second is free first": [
        "t1 takes a b c: gets", "t2 waits a b: waits", "t3 waits b c: waits", "t1 frees b: done", "t1 frees c: done t3",
        "t1 frees a: done", "t3 frees: done t2",
    ],
    "a later request for one of the items": [
        "t1 takes c d: gets", "t2 waits c d: waits", "t2 waits d: waits", "t3 waits c: waits", "t1 frees c: done t3",
        "t1 frees d: done t2",
    ],
    "a reservation is not taken away": [
        "t1 takes c d: gets", "t2 waits-high c d: waits", "t3 waits d: waits", "t1 frees d: done t3",
        "t1 frees c: done", "t2 tries d: held", "t3 frees: done t2",
    ],
    "a directory waits for all below it": [
        "t2 takes d/1 d/2: gets", "t3 takes d/3: gets", "t1 waits d: waits", "t4 waits-to-read d/1: waits",
        "t2 dies: done t4", "t3 ends: done", "t4 frees: done t1",
    ],
    "the classes": [
        "t1 takes a: gets", "l1 waits-low a: waits", "n1 waits a: waits", "h1 waits-high a: waits", "l2 waits-low a: waits",
        "h2 waits-high a: waits", "t1 frees: done h1", "h1 frees: done h2", "h2 frees: done n1", "n1 frees: done l1",
        "l1 frees: done l2",
    ],
    "a wait that is granted at once replaces the earlier one for the same item": [
        "t2 takes g: gets", "t1 waits a g: waits", "t1 waits a: gets", "t2 waits a: waits",
    ],
    "a wait that is granted at once is where the agent blocked last": [
        "t2 takes g: gets", "t1 waits g: waits", "t1 waits x: gets", "t2 waits x: waits",
    ],
    "a writer asks as a reader": [
        "t1 reads a: gets", "t2 waits a: waits", *["p reads a: gets", "p frees a: done"] * 3,
        "t4 waits-to-read a: waits", "t2 waits-to-read a: gets t4",
    ],
    # --- plain claims, priorities, ends
    "not waiting is no place": [
        "t1 takes a: gets", "t2 tries a: held", "t3 waits a: waits", "t2 tries a: held", "t1 frees: done t3",
        "t3 frees: done",
    ],
    "a plain claim is last": [
        "t1 takes a b c: gets", "t2 waits a: waits", "t4 waits a b c: waits", "t5 waits c: waits", "t6 tries a: held",
        "t1 frees: done t2 t5", "t6 tries b: gets", "t2 frees: done", "t5 frees: done", "t6 frees: done t4",
    ],
    "priority takes nothing away": [
        "low takes a: gets", "t1 waits a: waits", "t2 waits-high a: waits", "low takes a: gets", "low frees: done t2",
        "t2 frees: done t1",
    ],
    "the holder's session ends": [
        "t1 takes a b: gets", "t2 waits a: waits", "t3 waits b: waits", "t1 ends: done t2 t3",
    ],
    "the holder is killed": ["t1 takes a: gets", "t2 waits a: waits", "t1 dies: done t2"],
    "the waiter's session ends": [
        "t1 takes a: gets", "t2 waits a: waits", "t3 waits a: waits", "t2 ends: done", "t1 frees: done t3",
    ],
    "holders die one by one": [
        "t3 takes a c d: gets", "t4 takes b: gets", "t5 takes e: gets", "t1 waits c d e: waits",
        "t2 waits-to-read a b d: waits", "t3 dies: done", "t4 dies: done t2", "t5 dies: done", "t2 frees: done t1",
    ],
    "found expired by a later one": [
        "t2 takes a: gets", "t1 waits a: waits", "t3 waits a: waits", "+11000", "t3 waits a: waits t1", "t1 frees: done t3",
    ],
    "a granted writer does not come": [
        "t5 takes a: gets", "t1 waits a: waits", "t2 waits-to-read a: waits", "t3 waits-to-read a: waits",
        "t4 waits a: waits", "t5 frees: done t1", "z sweeps: done", "+16", "z sweeps: done t2 t3",
        "t2 waits-to-read a: gets", "t3 waits-to-read a: gets", "t2 frees: done", "t3 frees: done t4", "t4 frees: done t1",
    ],
    "two granted readers do not come": [
        "t5 takes a: gets", "t2 waits-to-read a: waits", "t3 waits-to-read a: waits", "t4 waits a: waits",
        "t5 frees: done t2 t3", "z sweeps: done", "+16", "z sweeps: done t4",
    ],
}  # fmt: skip


def _command(agent: str, verb: str, items: tuple[Any, ...]) -> tuple[str, Any]:
    actor = Actor(agent)
    commands: dict[str, tuple[str, Any]] = {
        "takes": ("claim", Take(actor, items)),
        "tries": ("claim", Take(actor, items)),
        "reads": ("claim", Take(actor, items, mode="read")),
        "waits": ("wait", Wait(actor, items)),
        "waits-to-read": ("wait", Wait(actor, items, mode="read")),
        "waits-to-intend": ("wait", Wait(actor, items, mode="intent")),
        "waits-high": ("wait", Wait(actor, items, priority="high")),
        "waits-low": ("wait", Wait(actor, items, priority="low")),
        "queues": ("wait", Wait(actor, items, blocking=False)),
        "frees": ("release", Release(actor, items)),
        "leaves": ("leave", Leave(actor)),
        "ends": ("stop", Stop(actor)),
        "dies": ("kill", Kill(Actor("ada", person=True), agent, "it is over")),
        "sweeps": ("expire", Sweep(actor)),
    }
    return commands[verb]


def _play(world: World, line: str) -> str:
    """One step; its answer and the agents that its events grant, in order."""
    agent, verb, *names = line.split()
    kind, command = _command(agent, verb, paths(*names))
    answer = world.do(kind, command)
    if isinstance(answer, Refusal):
        return answer.code
    word = "done" if kind not in ("claim", "wait") else "waits" if "waiting" in answer.result else "gets"
    granted = [row["agent"] for event in answer.events for row in event.granted]
    world.check()
    return " ".join([word, *(name for name in granted if name != agent)])


@pytest.mark.parametrize("name", SCENES)
def test_scene(served: list[str], name: str) -> None:
    world = World()
    for number, step in enumerate(SCENES[name]):
        if step.startswith("+"):
            world.host.advance(int(step))
            continue
        line, _, expected = step.partition(": ")
        assert _play(world, line) == expected, f"step {number}: {step}"


def test_a_waiter_is_told_who_is_left(served: list[str]) -> None:
    """Four readers go one by one, not in the order in which they came."""
    world = World()
    for agent in ("t1", "t2", "t3", "t4"):
        take(world, agent, "a", mode="read")
    for left in (["t1", "t2", "t3", "t4"], ["t1", "t2", "t4"], ["t2", "t4"], ["t2"]):
        assert [row["agent"] for row in wait(world, "t5", "a")["held"]] == left
        gone = next(agent for agent in ("t3", "t1", "t4", "t2") if agent in left)
        event = release(world, gone, "a")
    assert [row["agent"] for row in event.granted] == ["t5"]
