"""Scenes from the lock tests of two databases, told again with claims and waits, on the rules alone.

A scene is a list of steps "<agent> <verb> <items>: <answer>", where the answer is followed by the agents that the step's own event grants.
Each step is made again by a server before it counts.

PostgreSQL, `src/test/isolation/specs/deadlock-*.spec`:

| there | here |
| --- | --- |
| simple | `two upgrades` |
| hard | `test_eight_in_a_circle` in test_deadlock_rules.py |
| soft | `readers pass writers that cannot go`, and `... that may not be passed any more` |
| soft-2 | `past two at once`, and `not past those that may not be passed` |
| parallel | no meaning: workers of one group share its locks there; here a subagent is an agent of its own, and works under its parent's claim without one (the gates know families) |

CockroachDB, `pkg/kv/kvserver/concurrency/testdata`, `concurrency_manager/`:

| there | here |
| --- | --- |
| deadlocks: lock ordering | `three in a circle`, `three in a circle and one beside it` |
| deadlocks: three of request ordering | `half of a request is free`, `two requests share their free halves`: a request holds nothing while it waits, so there is no circle |
| priority | `priority takes nothing away` |
| wait_policy_error, lock_timeout, queue_length_exceeded | `not waiting is no place`, test_queue.py (`--wait` that is over); a queue has no longest length |
| wait_policy_skip, shared_locks_wait_policy_skip_locked | tests/tasks/test_task_queue_rules.py: who waits for any task passes those whose paths are held |
| wait_self, wait_elsewhere | `asking twice`; there is no memory of locks that could be cleared |
| clear_abandoned_intents, discovered_lock, resolve_pushed_intents | `the holder's session ends`, `the waiter's session ends` |
| shared_locks | below, `lock_table/shared_locks` |
| barrier, latches, poison, uncertainty, optimistic, refresh, update, isolation_level, replicated, range_state_listener, virtual resolution | no meaning: no latches, timestamps, replicas or ranges |

`lock_table/`:

| there | here |
| --- | --- |
| basic, non_active_waiter | `several items, freed one by one` |
| shared_locks | `readers share, a writer waits for all`, `readers go together`, `a writer first, then readers`, `the head leaves`; a reader may pass a waiting writer three times, where there it never may |
| lock_promotion | `an upgrade goes before all who wait`, `an upgrade waits for two other readers`, `two upgrades` |
| dup_access, acquire_idempotency, lock_changes | `asking twice`, `taken again`, `only one's own` |
| non_txn_write | `a plain claim is last` |
| child_txn | no meaning, as PostgreSQL's parallel |
| skip_locked, queue_length_exceeded | as above |
| query | test_queue.py (`git claim list`) |
| add_discovered, clear, disable, lock_dropped, size_limit_exceeded, read_committed, ... | no meaning: the ledger is all there is, and it is never dropped |
"""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import Refusal
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.take import Take
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.stop import Stop
from tests.ledger.world import World, paths
from tests.server.test_retrace import served

__all__ = ["served"]

_PASSED = ["p reads {0}: gets", "p frees {0}: done"] * 3  # somebody reads it three times, past those who wait


def _passed(item: str) -> list[str]:
    return [line.format(item) for line in _PASSED]


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
    # --- upgrades
    "an upgrade goes before all who wait": [
        "t1 reads a: gets", "t2 waits a: waits", "t1 takes a: gets", "t3 waits-to-read a: waits", "t1 frees: done t2",
    ],
    "an upgrade waits for two other readers": [
        "t1 reads a: gets", "t2 reads a: gets", "t3 reads a: gets", "t1 waits a: waits", "t2 frees: done",
        "t3 frees: done t1",
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
}  # fmt: skip


def _command(agent: str, verb: str, items: tuple[Any, ...]) -> tuple[str, Any]:
    actor = Actor(agent)
    commands: dict[str, tuple[str, Any]] = {
        "takes": ("claim", Take(actor, items)),
        "tries": ("claim", Take(actor, items)),
        "reads": ("claim", Take(actor, items, mode="read")),
        "waits": ("wait", Wait(actor, items)),
        "waits-to-read": ("wait", Wait(actor, items, mode="read")),
        "waits-high": ("wait", Wait(actor, items, priority="high")),
        "frees": ("release", Release(actor, items)),
        "leaves": ("leave", Leave(actor)),
        "ends": ("stop", Stop(actor)),
        "dies": ("kill", Kill(Actor("ada", person=True), agent, "it is over")),
    }
    return commands[verb]


def _play(world: World, line: str) -> str:
    """One step; its answer and the agents that its event grants, in order."""
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
        line, _, expected = step.partition(": ")
        assert _play(world, line) == expected, f"step {number}: {step}"
