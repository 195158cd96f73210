"""A stopped command (SIGSTOP, Ctrl-Z) in a clone with a remote authority: others name its process, and go on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitcoord.git.locks.flock import is_locked
from tests.cli.support import Done
from tests.ledger.remote.support import Fleet, Machine
from tests.ledger.remote.test_batches import agents_waiting, waiting
from tests.races.support import long_timeout, running, wait_until

pytestmark = [pytest.mark.race, long_timeout]

ROOT = str(Path(__file__).parents[3])


class Stopped:
    """A command that is stopped, with or without its children, until it is continued."""

    def __init__(self, process: subprocess.Popen[str], *, group: bool) -> None:
        self._process = process
        self._send: Callable[[int, int], None] = os.killpg if group else os.kill
        self._send(process.pid, signal.SIGSTOP)
        wait_until("it is stopped", lambda: _state(process.pid) == "T")

    @property
    def pid(self) -> int:
        return self._process.pid

    def goes_on(self) -> Done:
        self._send(self.pid, signal.SIGCONT)
        out, err = self._process.communicate(timeout=60)
        return Done(self._process.returncode, out, err)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()


@contextlib.contextmanager
def in_its_push(fleet: Fleet, machine: Machine, *, group: bool) -> Iterator[tuple[Stopped, Callable[[], None]]]:
    """`alice` takes `a` and is stopped while the server judges her push; the function lets the server go on."""
    there, gate = fleet.place / "there", fleet.place / "go"
    os.mkfifo(gate)
    hook = fleet.hook("pre-receive", f"touch {there}; cat {gate}; exit 0\n")
    with running(machine.start("git-claim", "--json", "a", agent="alice")) as process:
        wait_until("the push is at the server", there.exists)
        hook.unlink()
        yield Stopped(process, group=group), lambda: _let_go(gate)


def _let_go(gate: Path) -> None:
    gate.write_text("go\n")


def says_behind_whom(answer: Done, pid: int) -> None:
    assert f"process {pid} " in answer.err and "is stopped" in answer.err, answer
    assert f"kill -CONT {pid}" in answer.err, answer


def test_a_push_whose_command_is_stopped(fleet: Fleet) -> None:
    """Its git goes on and lands. Other commands see that, and succeed without waiting for half a minute."""
    one, two = fleet.joined()
    with in_its_push(fleet, one, group=False) as (alice, let_go):
        let_go()
        wait_until("it has landed", lambda: bool(fleet.events("claim")))
        found = one.claim("list")
        assert found.code == 0 and "alice" in found.out, found
        says_behind_whom(found, alice.pid)
        refused = one.claim("a", agent="bob")
        assert refused.code == 1 and "alice" in refused.err, refused
        taken = one.claim("src/db.py", agent="bob")
        assert taken.code == 0, taken
        says_behind_whom(taken, alice.pid)
        told = alice.goes_on()
    assert told.code == 0 and told.json["claims"][0]["agent"] == "alice", told
    assert sorted(event["agent"] for event in fleet.events("claim")) == ["alice", "bob"]
    assert "bob" in two.claim("list").out
    fleet.assert_sound()


def test_a_push_that_is_stopped_as_a_whole(fleet: Fleet) -> None:
    """Its command is decided again when it continues, because others were granted meanwhile."""
    one, _ = fleet.joined()
    with in_its_push(fleet, one, group=True) as (alice, let_go):
        taken = one.claim("src/db.py", agent="bob")
        assert taken.code == 0, taken
        says_behind_whom(taken, alice.pid)
        found = one.claim("list")
        assert found.code == 0 and "bob" in found.out and "alice" not in found.out, found
        for words in (("task", "list"), ("status",)):
            found = one.coord(*words)
            assert found.code == 0, found
            says_behind_whom(found, alice.pid)
        os.killpg(alice.pid, signal.SIGCONT)
        let_go()
        told = alice.goes_on()
    assert told.code == 0 and told.json["claims"][0]["path"] == "a", told
    assert sorted(event["agent"] for event in fleet.events("claim")) == ["alice", "bob"]
    fleet.assert_sound()


def test_in_json_nobody_is_told_in_between(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    with in_its_push(fleet, one, group=True) as (alice, let_go):
        found = one.claim("--json", "src/db.py", agent="bob")
        assert found.json["ok"] and not found.err, found
        os.killpg(alice.pid, signal.SIGCONT)
        let_go()
        assert alice.goes_on().code == 0


@pytest.mark.parametrize("landed", [True, False], ids=["its git goes on", "all of it is stopped"])
def test_the_carrier_of_others_is_stopped(fleet: Fleet, landed: bool) -> None:
    """Processes whose requests are in its push get their answer, and no event twice."""
    one, _ = fleet.joined()
    there, gate = fleet.place / "there", fleet.place / "go"
    os.mkfifo(gate)
    hook = fleet.hook("pre-receive", f"touch {there}; cat {gate}; exit 0\n")
    with contextlib.ExitStack() as stack:
        with waiting(one):
            started = {
                agent: stack.enter_context(running(one.start("git-claim", "--json", f"file-{agent}", agent=agent)))
                for agent in ("alice", "bob", "carol")
            }
            wait_until("all have joined", lambda: len(agents_waiting(one)) == 3)
        wait_until("the push is at the server", there.exists)
        hook.unlink()
        carrier = next(agent for agent, process in started.items() if "receive-pack" in _below(process.pid))
        stopped = Stopped(started[carrier], group=not landed)
        if landed:
            _let_go(gate)
        answers = {
            agent: json.loads(process.communicate(timeout=60)[0])
            for agent, process in started.items()
            if agent != carrier
        }
        if not landed:
            os.killpg(stopped.pid, signal.SIGCONT)
            _let_go(gate)
        answers[carrier] = stopped.goes_on().json
    assert all(answer["ok"] for answer in answers.values()), answers
    grants = {event["agent"]: event["seq"] for event in fleet.events("claim")}
    assert grants == {agent: answer["token"] for agent, answer in answers.items()}
    assert len(fleet.events("claim")) == 3
    fleet.assert_sound()


def _below(pid: int) -> str:
    """The command lines of all processes that this one has started."""
    words = ""
    for child in _children(pid).split():
        with contextlib.suppress(OSError):
            words += Path(f"/proc/{child}/cmdline").read_text() + _below(int(child))
    return words


def _has_joined(machine: Machine, agent: str) -> bool:
    """Is its request in the batch, and has it left the writers' queue? Stopped before that, it would keep others from joining."""
    return agents_waiting(machine) == [agent] and not is_locked(f"{machine.git_dir}/gitcoord/queue.lock")


def test_one_that_waits_is_stopped(fleet: Fleet) -> None:
    """Another process pushes its request; it gets the answer when it continues."""
    one, _ = fleet.joined()
    with contextlib.ExitStack() as stack:
        with waiting(one):
            alice = stack.enter_context(running(one.start("git-claim", "--json", "src/app.py", agent="alice")))
            wait_until("alice has joined", lambda: _has_joined(one, "alice"))
            stopped = Stopped(alice, group=True)
            bob = stack.enter_context(running(one.start("git-claim", "--json", "src/db.py", agent="bob")))
            wait_until("bob has joined", lambda: agents_waiting(one) == ["alice", "bob"])
        assert json.loads(bob.communicate(timeout=60)[0])["ok"]
        assert one.claim("list").err == ""
        told = stopped.goes_on()
    assert told.json["ok"], told
    fleet.assert_sound()


def test_who_gives_up_behind_a_slow_push_is_not_granted_later(fleet: Fleet) -> None:
    """Its answer was that nothing was changed: its request does not go with the next push."""
    one, _ = fleet.joined()
    there, gate = fleet.place / "there", fleet.place / "go"
    os.mkfifo(gate)
    hook = fleet.hook("pre-receive", f"touch {there}; cat {gate}; exit 0\n")
    short = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "gitcoord.remoteTimeout", "GIT_CONFIG_VALUE_0": "1"}
    with running(one.start("git-claim", "--json", "a", agent="alice")) as alice:
        wait_until("the push is at the server", there.exists)
        hook.unlink()
        bob = one.run("git-claim", "src/db.py", agent="bob", env=short)
        assert bob.code == 3 and "nothing was changed" in bob.err and f"process {alice.pid} " in bob.err, bob
        _let_go(gate)
        assert json.loads(alice.communicate(timeout=60)[0])["ok"]
    assert one.claim("src/app.py", agent="carol").code == 0
    assert [event["agent"] for event in fleet.events("claim")] == ["alice", "carol"]
    fleet.assert_sound()


# Decides, and is stopped in the queue before its request joins the others, or before its batch takes off.
_STOPS = """
import os, signal, sys
sys.path.insert(0, {root!r})
from gitcoord.ledger.remote import {module} as module
from gitcoord.cli import entry as main
before = module.{name}
def stopping(*words):
    module.{name} = before
    os.kill(os.getpid(), signal.SIGSTOP)
    return before(*words)
module.{name} = stopping
main.leave(main.main("claim", sys.argv[1:]))
"""


@pytest.mark.parametrize(("module", "name"), [("transaction", "join"), ("push", "start_push")])
def test_stopped_in_the_queue(fleet: Fleet, module: str, name: str) -> None:
    one, _ = fleet.joined()
    script = _STOPS.format(root=ROOT, module=module, name=name)
    argv = (sys.executable, "-I", "-S", "-c", script, "--json", "a")
    with running(one.start(*argv, agent="alice")) as process:
        wait_until("it is stopped", lambda: _state(process.pid) == "T")
        alice = Stopped(process, group=True)
        taken = one.claim("src/db.py", agent="bob")
        assert taken.code == 0, taken
        says_behind_whom(taken, alice.pid)
        found = one.claim("list")
        assert found.code == 0 and "bob" in found.out, found
        assert one.claim("release", "src/db.py", agent="bob").code == 0
        told = alice.goes_on()
    assert told.json["ok"], told
    assert [event["agent"] for event in fleet.events("claim")] == ["bob", "alice"]
    fleet.assert_sound()
