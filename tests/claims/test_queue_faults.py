"""Waiters that are stopped, killed or cut off, clocks that are wrong: the others go on, and the waiter learns where it stands."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gitcoord.claims.cli_sleep import Rest
from gitcoord.claims.requests import NEXT
from tests.claims.test_claim import _waits
from tests.claims.test_queue import _queue
from tests.cli.support import World
from tests.ledger.world import paths
from tests.server.clocks import LIBRARY, Clock
from tests.support import CLAIM, ROOT

pytestmark = pytest.mark.faults


def _set_clock(world: World, seconds: int) -> None:
    """Let all grants have been made so much earlier."""
    for note in (world.top / ".git/gitcoord/grants").iterdir():
        boot, mono = note.read_text().split()
        note.write_text(f"{boot}\n{int(mono) - 1000 * seconds}")


def _waiters(world: World) -> dict[str, int]:
    return {row["agent"]: row["ticket"] for row in world.claim("list", "--json").json.get("waits", [])}


def test_the_others_go_on_when_the_first_is_stopped_and_it_is_told_when_it_wakes(world: World) -> None:
    world.commit({".gitcoord/config": "[queue]\n\treserve = 1s\n"})
    world.take("src")
    with world.started("--wait", "60s", "src", agent="bob") as bob:
        _waits(bob)
        with world.started("--wait", "60s", "src", agent="carol") as carol:
            _waits(carol)
            bob.send_signal(signal.SIGSTOP)
            world.free()
            assert carol.communicate(timeout=30)[0].startswith(b"claimed src")
        bob.send_signal(signal.SIGCONT)
        assert _waits(bob) == "waiting: 1st of 1; carol holds it\n"
        world.free("carol")
        assert bob.communicate(timeout=30)[0].startswith(b"claimed src")


def test_a_waiter_whose_tool_kills_it_keeps_its_ticket(world: World) -> None:
    world.take("src")
    tickets = set()
    for _ in range(3):
        with world.started("--wait", "60s", "src", agent="bob") as waiter:
            _waits(waiter)
            tickets.add(_waiters(world)["bob"])
            waiter.kill()
    _queue(world, "carol")
    assert len(tickets) == 1 and list(_waiters(world)) == ["bob", "carol"]
    world.free()
    assert world.claim("--wait", "60s", "src", agent="bob").out.startswith("claimed src"), "its turn, and in time"


def test_a_killed_waiter_that_misses_its_turn_stands_last_and_the_second_time_not_at_all(world: World) -> None:
    world.take("src")
    with world.started("--wait", "60s", "src", agent="bob") as waiter:
        _waits(waiter)
        waiter.kill()
    ticket = _waiters(world)["bob"]
    _queue(world, "carol")
    world.free()
    _set_clock(world, 16)
    assert world.claim("--queue", "src", agent="carol").code == 0, "carol waits no longer than a reservation"
    assert _waiters(world)["bob"] > ticket
    _queue(world, "dave")
    world.free("carol")
    _set_clock(world, 16)
    assert world.claim("--queue", "src", agent="dave").code == 0
    assert _waiters(world) == {}, "missed twice"
    assert _queue(world, "bob")["position"] == 1, "who asks again stands in the queue again"


def test_an_upgrade_that_is_missed_twice_leaves_the_weaker_claim_with_its_ref(world: World) -> None:
    for agent in ("alice", "bob"):
        assert world.claim("--mode", "intent", "src", agent=agent).code == 0
    _queue(world, "bob")
    world.free("alice")
    for _ in range(2):
        _set_clock(world, 121)
        assert world.coord("sweep", agent="carol").code == 0
    (claim,) = world.claim("list", "--json").json["claims"]
    assert (claim["agent"], claim["mode"]) == ("bob", "intent") and world.claims() == ["path/src/@bob"]
    assert _waiters(world) == {} and world.coord("fsck").code == 0
    assert world.claim("release", "src", agent="bob").code == 0 and world.claims() == []


def test_a_grant_between_the_last_look_and_ctrl_c_is_given_back(world: World) -> None:
    """A stopped waiter gets the grant and the signal before it can look."""
    world.take("src")
    with world.started("--wait", "60s", "src", agent="bob") as waiter:
        _waits(waiter)
        waiter.send_signal(signal.SIGSTOP)
        world.free()
        assert world.claims() == ["path/src/@bob"]
        waiter.send_signal(signal.SIGINT)
        waiter.send_signal(signal.SIGCONT)
        waiter.communicate(timeout=30)
    # Where it looked first, the claim is its own, and told so.
    assert (waiter.returncode, world.claims()) in [(130, []), (0, ["path/src/@bob"])]


def _call(common: Path) -> Any:
    """A command in a repository that decides for itself."""
    return SimpleNamespace(ctx=SimpleNamespace(repo=SimpleNamespace(common_dir=str(common)), remote="", store=None))


_RUNG = """
import os, sys
sys.path.insert(0, sys.argv[1])
from gitcoord.claims.cli_sleep import Bell
bell = Bell(os.curdir)
if not bell._fds:
    sys.exit("no notifications")
open("tip.lock", "w").close()
os.unlink("tip.lock")  # as for a ref that is only verified
print(bell.wait(0.0)[0] != 0)
open("tip.lock", "w").write("1")
os.rename("tip.lock", "tip")
print(bell.wait(5.0)[0] != 0, bell.wait(0.0)[0] != 0)
"""


def test_a_ref_that_moves_rings_once_and_one_that_is_verified_does_not(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _RUNG, str(ROOT)], cwd=tmp_path, capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode:
        assert "no notifications" in done.stderr, done
        pytest.skip("no directory notifications here")
    assert done.stdout.split() == ["False", "True", "False"], done


class _Rings:
    """A bell that rings so often; before each ring something happens."""

    def __init__(self, *happens: Callable[[], object]) -> None:
        self._happens = list(happens)
        self.asked: list[float] = []

    def wait(self, seconds: float, *_: int) -> tuple[int, int]:
        self.asked.append(seconds)
        if not self._happens:
            return 0, 0
        self._happens.pop(0)()
        return 1, 0


@pytest.mark.parametrize("items", [("src",), ("held", "src")], ids=["one item", "beside one that is held"])
@pytest.mark.parametrize("held", [False, True], ids=["nothing held", "a weaker claim held"])
def test_a_waiter_is_woken_by_its_own_grant(tmp_path: Path, held: bool, items: tuple[str, ...]) -> None:
    own = tmp_path / "refs/claims/path/src/@bob"
    own.parent.mkdir(parents=True)
    if held:
        own.write_text("1" * 40)
    call = _call(tmp_path)
    rest = Rest(call, paths(*items), "bob")
    rest.patience = 3.0
    bell: Any = _Rings(lambda: None, lambda: own.write_text("2" * 40), lambda: None)
    rest(bell, 100.0)
    assert len(bell.asked) == 2 and bell.asked[0] > 99 and bell.asked[1] <= 3.0, "another event lets it look soon"
    bell = _Rings()
    rest(bell, 100.0)
    assert len(bell.asked) == 1, "what it has seen does not wake it again"


def test_who_waits_for_any_task_is_woken_by_the_one_that_is_reserved_for_it(tmp_path: Path) -> None:
    tasks = tmp_path / "refs/claims/resource/task"

    def reserve(id: str, agent: str) -> None:
        (tasks / id).mkdir(parents=True)
        (tasks / id / f"@{agent}").write_text("1" * 40)

    call = _call(tmp_path)
    rest = Rest(call, (NEXT,), "bob")
    rest.patience = 3.0
    bell: Any = _Rings(lambda: reserve("t1", "carol"), lambda: reserve("t2", "bob"), lambda: None)
    rest(bell, 100.0)
    assert len(bell.asked) == 2


@pytest.mark.skipif(not LIBRARY, reason="libfaketime is not installed")
@pytest.mark.parametrize("ahead", [600, -600])
def test_a_clock_that_is_wrong_by_ten_minutes_changes_no_order(world: World, ahead: int) -> None:
    """The order is that of the ledger, and the time of a reservation is counted by a clock that nobody sets."""
    clock = Clock(world.top.parent / "clock", ahead).env | {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    claim = ["env", *(f"{key}={value}" for key, value in clock.items()), *CLAIM]

    def ask(agent: str) -> int:
        return world.run(claim, ("--queue", "src"), agent).code

    world.take("src")
    assert ask("bob") == 3
    _queue(world, "carol")
    assert ask("dave") == 3
    times = [int(time) for time in world.git("log", "-3", "--format=%at", "gitcoord", "--").split()]
    assert abs(times[0] - times[2] - ahead) < 300, "its clock is wrong indeed, however slow this machine is"
    assert list(_waiters(world)) == ["bob", "carol", "dave"]
    world.free()
    assert ask("carol") == 3, "bob's reservation has begun just now"
    assert ask("bob") == 0
    world.free("bob")
    _set_clock(world, 121)
    assert ask("dave") == 0, "carol has missed it"
    assert world.coord("fsck").code == 0
