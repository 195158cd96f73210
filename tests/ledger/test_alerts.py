"""Alerts: the command of the local settings gets expiries and long waits; its result changes nothing."""

from __future__ import annotations

import fcntl
import json
import shlex
import signal
import subprocess
import time
from contextlib import ExitStack
from typing import Any

import pytest

from gitcoord.claims.cli_sleep import Overdue
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Screen
from gitcoord.world.open import environ, open_repository
from tests.claims.test_claim import _waits
from tests.cli.support import World
from tests.races.support import wait_until
from tests.support import CLAIM, COORD


@pytest.fixture
def world(world: World) -> World:
    world.git("config", "gitcoord.alert", "cat >>.git/alerts")
    return world


def alerts(world: World, count: int) -> list[dict[str, Any]]:
    """All that were raised, once there are so many."""
    file = world.top / ".git/alerts"

    def lines() -> list[str]:
        return file.read_text().splitlines() if file.exists() else []

    wait_until(f"{count} alerts", lambda: len(lines()) >= count)
    return [json.loads(line) for line in lines()]


def test_an_expiry_is_told_once_by_who_made_it(world: World) -> None:
    world.take("src/a.py", "docs")
    world.fall_silent("alice")
    token = world.take("src/a.py", agent="bob")
    world.take("src/a.py", agent="bob")
    assert world.coord("sweep", agent="carol").code == 0
    world.take("x", agent="carol")
    first, second = alerts(world, 2)
    assert (first["alert"], first["seq"], first["agent"], first["more"]) == ("expiry", token - 2, "bob", 0)
    assert [(claim["path"], claim["agent"]) for claim in first["claims"]] == [("src/a.py", "alice")]
    assert (second["agent"], [claim["path"] for claim in second["claims"]]) == ("carol", ["docs"])
    assert first["repository"] == str(world.top)


def test_a_task_that_goes_to_another(world: World) -> None:
    assert world.coord("task", "add", "paint it").code == 0
    task = world.coord("task", "next", "--json").json["task"]["id"]
    assert world.coord("task", "next", agent="bob").code != 0, "it has an owner"
    world.fall_silent("alice")
    assert world.coord("task", "next", agent="bob").code == 0
    (row,) = alerts(world, 1)
    assert (row["alert"], row["agent"], row["more"]) == ("reassigned", "bob", 0)
    assert [(t["id"], t["agent"], t["to"]) for t in row["tasks"]] == [(task, "alice", "open")]


def test_a_worker_that_ended_with_a_task_in_hand(world: World) -> None:
    assert world.coord("task", "add", "paint it", agent="boss").code == 0
    assert world.coord("run", "--as", "w1", "--", *COORD, "task", "next", "-q").code == 0
    (row,) = alerts(world, 1)
    assert (row["alert"], row["tasks"]) == (
        "reassigned", [{"id": "t2", "agent": "w1", "rule": "session over", "to": "open"}],
    )  # fmt: skip


def test_a_wait_of_more_than_twice_what_was_expected(world: World) -> None:
    world.take("src/a.py", "--expect", "1s", "-m", "fix")
    world.take("docs", "--expect", "1h")
    waits = {"bob": ("src/a.py", "docs"), "carol": ("src/a.py",), "erik": ("docs",)}
    with ExitStack() as stack:
        waiting = [
            stack.enter_context(world.started(*paths, "--wait", "3s", agent=agent)) for agent, paths in waits.items()
        ]
        assert [process.wait() for process in waiting] == [3, 3, 3]
    assert world.claim("src/a.py", "docs", "--wait", "3s", agent="bob").code == 3
    found = sorted(alerts(world, 2), key=lambda row: str(row["agent"]))
    assert [(row["alert"], row["agent"], row["holder"], row["path"]) for row in found] == [
        ("long-wait", "bob", "alice", "src/a.py"), ("long-wait", "carol", "alice", "src/a.py"),
    ]  # fmt: skip
    assert found[0]["expected_seconds"] == 1 and found[0]["waited_seconds"] >= 2 and found[0]["reason"] == "fix"


def test_a_deadlock_is_told_once_for_an_agent(world: World) -> None:
    world.take("a")
    world.take("b", agent="bob")
    with world.started("--wait", "60s", "b") as waiter:
        _waits(waiter)
        for _ in range(2):
            done = world.claim("--wait", "60s", "a", agent="bob")
            assert done.code == 1 and "alice" in done.err
        waiter.send_signal(signal.SIGINT)
        waiter.communicate(timeout=30)
    world.take("c", agent="carol")
    world.fall_silent("carol")
    world.take("c", agent="bob")
    found = sorted(alerts(world, 2), key=lambda row: str(row["alert"]))
    assert [(row["alert"], row["agent"]) for row in found] == [("deadlock", "bob"), ("expiry", "bob")]
    assert "alice" in found[0]["message"] and "bob" in found[0]["message"]


def test_a_missed_reservation_is_told_as_such(world: World) -> None:
    world.commit({".gitcoord/config": "[queue]\n\treserveQueued = 1s\n"})
    world.take("a")
    assert world.claim("--queue", "a", agent="bob").code == 3
    world.free()
    assert world.claim("a", agent="carol").code == 1  # sees the grant
    wait_until("the end of the reservation", lambda: world.claim("a", agent="carol").code == 0 or bool(_missed(world)))
    (row,) = alerts(world, 1)
    assert (row["alert"], row["agent"]) == ("missed-reservation", "carol")
    assert [(claim["path"], claim["agent"], claim["rule"]) for claim in row["claims"]] == [("a", "bob", "unconfirmed")]


def _missed(world: World) -> list[str]:
    return [subject for subject in world.events() if subject.startswith("expire a of bob")]


def test_who_asks_again_has_waited_since_its_ticket(world: World) -> None:
    """An agent whose tool ends each command after a while waits in parts."""
    world.take("a", "--expect", "1s")
    assert world.claim("--queue", "a", agent="bob").code == 3
    wait_until("two seconds", lambda: time.time() > int(world.claim("list", "--json").json["waits"][0]["since"]) + 3)
    with world.started("--wait", "60s", "a", agent="bob") as waiter:
        (row,) = alerts(world, 1)
        waiter.send_signal(signal.SIGINT)
        waiter.communicate(timeout=30)
    assert (row["alert"], row["agent"]) == ("long-wait", "bob") and row["waited_seconds"] >= 3


def _late(world: World) -> World:
    """bob, of whom no process is left, waits longer than twice what alice expects; so does dave, in another clone."""
    world.take("a", "--expect", "1s", "-m", "fix")
    for agent in ("bob", "dave"):
        assert world.claim("--queue", "a", agent=agent).code == 3
    for note in (world.top / ".git/gitcoord/waiting").glob("dave@*"):
        note.unlink()
    row = world.claim("list", "--json", agent="erik").json["waits"][1]
    wait_until("two seconds", lambda: time.time() > int(row["since"]) + 3)
    return world


def test_a_wait_without_a_process_is_told_of_by_what_looks_at_the_ledger_once(world: World) -> None:
    file = _late(world).top / ".git/alerts"
    assert world.claim("list").code == 0 and not file.exists()
    with (world.top / ".git/gitcoord/alerts.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert world.coord("sweep", agent="carol").code == 0
    assert not (world.top / ".git/gitcoord/alerts").exists(), "another process is about to tell"
    assert world.coord("sweep", agent="carol").code == 0
    (row,) = alerts(world, 1)
    assert (row["alert"], row["agent"], row["holder"], row["path"]) == ("long-wait", "bob", "alice", "a")
    assert row["waited_seconds"] >= 3 and row["expected_seconds"] == 1
    assert world.coord("status", agent="carol").code == 0 and world.coord("sweep").code == 0
    assert (world.top / ".git/gitcoord/alerts").read_text().count("bob") == 1


def test_the_overview_tells_of_a_late_wait(world: World) -> None:
    assert _late(world).coord("status", agent="carol").code == 0
    assert [row["agent"] for row in alerts(world, 1)] == ["bob"]


def test_a_supervisor_tells_of_the_late_wait_of_its_agent_alone(world: World) -> None:
    """The agent has asked with `--queue`, and does something else."""
    world.take("a", "--expect", "1s")
    assert world.claim("--queue", "a", agent="erik").code == 3
    claim = shlex.join(CLAIM)
    asks = f"{claim} b --ttl 3s && {claim} --queue a; cat"
    argv = [*COORD, "run", "--as", "bob", "--", "sh", "-c", asks]
    with subprocess.Popen(argv, cwd=world.top, env=world.environ("", {}), stdin=subprocess.PIPE) as run:
        assert [row["agent"] for row in alerts(world, 1)] == ["bob"]
        run.communicate(timeout=30)
    assert world.coord("sweep").code == 0
    assert [row["agent"] for row in alerts(world, 2)] == ["bob", "erik"], "erik is as late, and has no supervisor"


def test_who_expected_nothing_is_taken_at_its_ttl(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    monkeypatch.chdir(world.top)
    ctx = open_repository(environ(), writing=True)
    overdue = Overdue(Call(ctx, Screen(environ()), environ()))
    told: list[int] = []
    monkeypatch.setattr(overdue, "_alert", lambda claim, waited: told.append(waited))
    claim: dict[str, object] = {"expected_seconds": 0, "ttl_seconds": 5}
    assert overdue.check([claim], 8.0) == pytest.approx(2.1) and not told
    overdue.check([claim], 11.0)
    ctx.store.close()
    assert told == [11]


@pytest.mark.parametrize(
    "command", ["exit 1", "/nonexistent", "kill -9 $$", "exec 2>&1; echo noise; sleep 600 & exit", "(", "exec <&-"]
)
def test_a_command_that_fails_changes_nothing(world: World, command: str) -> None:
    world.git("config", "gitcoord.alert", command)
    world.take("src/a.py")
    world.fall_silent("alice")
    done = world.claim("src/a.py", agent="bob")
    assert (done.code, done.err) == (0, "") and done.out.startswith("claimed")


def test_the_projects_policy_sets_no_command(world: World) -> None:
    """Others can write the policy: a pull must not run their commands."""
    world.git("config", "--unset", "gitcoord.alert")
    world.commit({".gitcoord/config": "[gitcoord]\n\talert = cat >>.git/alerts\n"})
    world.take("src/a.py")
    world.fall_silent("alice")
    world.take("src/a.py", agent="bob")
    assert not (world.top / ".git/alerts").exists()
    done = world.coord("policy", "check")
    assert "gitcoord.alert is not known" in done.out
    world.git("config", "gitcoord.alert", "cat >>.git/alerts")
    world.fall_silent("bob")
    world.take("src/a.py")
    assert len(alerts(world, 1)) == 1, "the same by one's own settings"


def test_hostile_words_are_data(world: World) -> None:
    name = "$(touch .git/pwned);`touch .git/pwned`'\"\n"
    world.take("-m", "$(touch .git/pwned)", "--", name)
    world.fall_silent("alice")
    world.take("--", name, agent="bob")
    (row,) = alerts(world, 1)
    assert row["claims"][0]["path"] == name.rstrip("\n") + "\n" and not (world.top / ".git/pwned").exists()
