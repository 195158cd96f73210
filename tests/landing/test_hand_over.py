"""How soon the next one in the queue knows of its turn: the end of a check, and the looks at a remote."""

from __future__ import annotations

import select
import subprocess
from contextlib import chdir
from types import SimpleNamespace
from typing import Any

import pytest

from gitcoord.base.errors import CouldNotJudge
from gitcoord.claims.cli_sleep import Rest
from gitcoord.claims.model import turn_item
from gitcoord.git.long_process import _watch_end
from gitcoord.landing.trunk import Trunk
from gitcoord.ledger.remote.fetch import fetch
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.world.open import environ, open_repository
from tests.ledger.remote.support import Fleet


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
    assert periods == [5.0, 1.0, 0.5, 0.1, 0.5, 1.0]


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
    assert slept == [0.1, 0.1, 3.0, 5.0]


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


def test_the_look_that_finds_the_turn_brings_trunk_too(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a landing asks a second time, and in a lane forecasts on a trunk that is older than what it knows of the others."""
    one, two = fleet.joined()
    with chdir(two.repo):
        ctx = open_repository(environ(), writing=True)
        try:
            trunk = Trunk(ctx, read_snapshot(ctx))
            trunk.fetch_along(on=True)
            one.commit({"new": "x\n"})
            one.git("push", "-q", "origin", "main")
            assert one.claim("a", agent="alice").code == 0
            fetch(ctx)
            with monkeypatch.context() as patch:
                patch.setattr("gitcoord.landing.trunk.fetch_sync", lambda *_: pytest.fail("asked a second time"))
                assert trunk.fetch(60_000) == one.git("rev-parse", "HEAD").strip()
            assert "alice" in two.claim("list").out
            fleet.git("update-ref", "-d", "refs/heads/main")
            fetch(ctx)  # the ledger is there all the same
            with pytest.raises(CouldNotJudge, match="has no branch 'main'"):
                trunk.fetch()
            fleet.git("update-ref", "refs/heads/main", two.git("rev-parse", "HEAD").strip())
            trunk.fetch_along(on=False)
            assert trunk.fetch() == two.git("rev-parse", "HEAD").strip()
        finally:
            ctx.store.close()
