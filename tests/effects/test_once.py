"""`git coord once`: real commands with real effects, run by real processes that race, die and are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.races.support import wait_until
from tests.support import COORD


@contextmanager
def under_way(world: World, key: str, script: str, agent: str = "alice") -> Iterator[subprocess.Popen[bytes]]:
    """A run that has begun its command, which says so in the file `began`."""
    began = world.top / ".git/began"
    began.unlink(missing_ok=True)
    process = subprocess.Popen(
        [*COORD, "once", key, "--", "sh", "-c", f"echo >{began}; {script}"], cwd=world.top, env=world.environ(agent, {}),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        wait_until("the command runs", began.exists)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(file: Path) -> str:
    return f"while [ ! -e {file} ]; do sleep 0.01; done"


def test_the_first_outcome_is_everybodys(world: World) -> None:
    script = ("sh", "-c", "echo ran >>.git/effect; echo out; exit 3")
    first = world.coord("once", "mail/order:1", "--", *script)
    assert (first.code, first.out) == (3, "out\n")
    for agent in ("alice", "bob"):
        again = world.coord("once", "mail/order:1", "--", *script, agent=agent)
        assert (again.code, again.out) == (3, "") and "alice ran 'mail/order:1'" in again.err
    assert (world.top / ".git/effect").read_text() == "ran\n"
    assert world.coord("once", "mail", "--", "true").code == 0, "a key above is another key"
    row = world.coord("once", "mail/order:1", "--json", "--", "true")
    assert (row.json["begun"], row.json["code"], row.json["agent"], row.json["ok"]) == (False, 3, "alice", False)
    assert [r["key"] for r in world.coord("once", "--list", "--json").json["effects"]] == ["mail/order:1", "mail"]
    assert world.coord("fsck").code == 0


def test_json_keeps_the_commands_output_apart(world: World) -> None:
    done = world.coord("once", "k", "--json", "--", "sh", "-c", "echo from the command")
    assert done.json["begun"] is True and done.err == "from the command\n"


def test_the_command_knows_its_key(world: World) -> None:
    assert world.coord("once", "a/b", "--", "sh", "-c", 'echo "$GITCOORD_ONCE_KEY"').out == "a/b\n"


def test_one_under_way_is_refused_or_waited_for(world: World, tmp_path: Path) -> None:
    with under_way(world, "k", f"{wait_for(tmp_path / 'go')}; exit 7") as process:
        done = world.coord("once", "k", "--", "true", agent="bob")
        assert done.code == 3 and "alice is running 'k'" in done.err
        row = world.coord("once", "k", "--json", "--", "true")
        assert (row.code, row.json["error"]) == (3, "timeout"), "another process of the same agent"
        waiter = subprocess.Popen(
            [*COORD, "once", "k", "--wait", "60s", "--", "false"], cwd=world.top, env=world.environ("bob", {}),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert waiter.stderr is not None and b"waiting" in waiter.stderr.readline()
        (tmp_path / "go").touch()
        assert waiter.wait(60) == 7 and process.wait(60) == 7
        waiter.stderr.close()
    assert world.coord("once", "k", "--wait", "1s", "--", "true").code == 7


def test_a_waiter_may_be_stopped(world: World, tmp_path: Path) -> None:
    with under_way(world, "k", wait_for(tmp_path / "go")) as process:
        waiter = subprocess.Popen(
            [*COORD, "once", "k", "--wait", "60s", "--", "false"], cwd=world.top, env=world.environ("bob", {}),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert waiter.stderr is not None and b"waiting" in waiter.stderr.readline()
        waiter.send_signal(signal.SIGINT)
        assert waiter.wait(60) == 130
        waiter.stderr.close()
        (tmp_path / "go").touch()
        assert process.wait(60) == 0


def test_a_runner_that_died_leaves_an_unknown_outcome(world: World, tmp_path: Path) -> None:
    with under_way(world, "k", wait_for(tmp_path / "go")) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        (tmp_path / "go").touch()
    for words in (("--", "touch", "twice"), ("--wait", "60s", "--", "touch", "twice")):
        done = world.coord("once", "k", *words, agent="bob")
        assert done.code == 5 and "left no outcome" in done.err and "--forget" in done.err
    assert not (world.top / "twice").exists()
    assert world.coord("once", "--list", "--json").json["effects"][0]["state"] == "unknown"
    assert world.coord("once", "--forget", "k", "--reason", "x", agent="bob").code == 1, "an agent may not"
    assert world.person("once", "--forget", "k").code == 2, "a reason is needed"
    assert world.person("once", "--forget", "k", "--reason", "it never arrived").code == 0
    assert world.coord("once", "k", "--", "sh", "-c", "exit 0", agent="bob").code == 0
    assert world.coord("fsck").code == 0
    assert not list((world.top / ".git/gitcoord/once").iterdir()), "no notes of runners are left"


def test_a_signal_goes_to_the_command_and_the_end_is_on_record(world: World, tmp_path: Path) -> None:
    with under_way(world, "k", "trap 'exit 9' TERM; while :; do sleep 0.01; done") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 9
    assert world.coord("once", "k", "--", "true").code == 9


def test_what_cannot_be_started_did_not_happen(world: World) -> None:
    assert world.coord("once", "k", "--", "/nonexistent").code == 2
    assert world.coord("once", "k", "--", "sh", "-c", "exit 4").code == 4


def test_an_end_that_cannot_be_recorded_is_no_end(world: World, tmp_path: Path) -> None:
    """Its agent lives, but no process runs the effect: the outcome is unknown, not under way."""
    lock = world.top / ".git/refs/heads/gitcoord.lock"
    with under_way(world, "k", f"{wait_for(tmp_path / 'go')}; exit 6") as process:
        lock.touch()
        (tmp_path / "go").touch()
        assert process.wait(60) == 6
        assert process.stderr is not None and b"is not on record" in process.stderr.read()
    lock.unlink()
    world.take("x")
    assert world.coord("once", "k", "--", "true").code == 5


def test_a_live_run_is_not_forgotten(world: World, tmp_path: Path) -> None:
    with under_way(world, "k", wait_for(tmp_path / "go")) as process:
        done = world.person("once", "--forget", "k", "--reason", "x")
        assert done.code == 1 and "alice is running" in done.out
        (tmp_path / "go").touch()
        assert process.wait(60) == 0


def test_many_at_once_run_it_once(world: World) -> None:
    started = [
        subprocess.Popen(
            [*COORD, "once", "k", "--wait", "60s", "--", "sh", "-c", "echo ran >>.git/effect; exit 5"], cwd=world.top,
            env=world.environ(f"w{i % 4}", {}), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for i in range(8)
    ]  # fmt: skip
    assert [process.wait(120) for process in started] == [5] * 8
    assert (world.top / ".git/effect").read_text() == "ran\n"
    assert [event.split()[0] for event in world.events()].count("once") == 1
    assert not list((world.top / ".git/gitcoord/once").iterdir())


@pytest.mark.parametrize("key", ["", "a b", "x" * 81, "\x1b[31m", "a\nKind: x", "[x](y)", "\u202ex"])
def test_keys_that_make_no_sense(world: World, key: str) -> None:
    done = world.coord("once", key, "--", "touch", "ran")
    assert done.code == 2 and not (world.top / "ran").exists()


def test_no_command(world: World) -> None:
    assert world.coord("once", "k").code == 2
    assert world.coord("once").code == 2
