"""How soon the next one in the queue knows of its turn: the end of a check, and the looks at a remote."""

from __future__ import annotations

import select
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from gitcoord.claims.cli_sleep import Rest
from gitcoord.claims.model import turn_item
from gitcoord.git.long_process import _watch_end


def _rest(monkeypatch: pytest.MonkeyPatch, *, eager: bool) -> tuple[Rest, list[float]]:
    clock = [100.0]
    monkeypatch.setattr("gitcoord.claims.cli_sleep.time.monotonic", lambda: clock[0])
    repo = SimpleNamespace(common_dir="/nowhere")
    call: Any = SimpleNamespace(ctx=SimpleNamespace(repo=repo, remote="origin", store=None))
    return Rest(call, (turn_item("main"),), "alice", eager=eager), clock


def test_the_first_in_the_queue_of_landings_looks_often_and_less_where_nothing_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rest, clock = _rest(monkeypatch, eager=True)
    periods = []
    for position, later in ((20, 0.0), (3, 0.0), (2, 0.0), (1, 0.0), (1, 5.0), (1, 600.0)):
        clock[0] += later
        rest.stands(position)
        periods.append(rest.period())
    assert periods == [5.0, 1.0, 0.5, 0.2, 0.5, 1.0]


def test_a_look_that_takes_long_is_repeated_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    rest, clock = _rest(monkeypatch, eager=True)
    slept = []

    def sleep(seconds: float) -> tuple[int, int]:
        slept.append(round(seconds, 3))
        clock[0] += seconds
        return 0, 0

    bell: Any = SimpleNamespace(wait=sleep)
    rest.stands(1)
    for took in (0.0, 0.1, 3.0, 60.0):
        clock[0] += took
        rest.stands(2)  # it has moved: as at first
        rest.stands(1)
        rest(bell, 100.0)
    assert slept == [0.2, 0.2, 3.0, 5.0]


def test_others_look_as_seldom_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    rest, _ = _rest(monkeypatch, eager=False)
    periods = []
    for position in (1, 2, 3):
        rest.stands(position)
        periods.append(rest.period())
    assert periods == [1.0, 1.0, 5.0]


def test_the_end_of_a_check_is_noticed_at_once() -> None:
    with subprocess.Popen(["true"]) as process:
        descriptor = _watch_end(process.pid)
        assert descriptor >= 0
        watch = select.poll()
        watch.register(descriptor, select.POLLIN)
        assert watch.poll(60_000), "no need to ask again and again"
