"""A remote that takes connections and says nothing, or answers late: every command ends by its bound, and says so."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.guard.protocol import Said, Speaker, understood
from tests.ledger.remote.support import Fleet, Machine
from tests.ledger.remote.test_batches import age_beats
from tests.races.support import long_timeout, running, wait_until

pytestmark = [pytest.mark.race, long_timeout]

NO_ANSWER = "no answer within 1 seconds"


class Silent:
    """A server that takes every connection and never says a word."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self._socket.accept()[0])

    def asked(self) -> int:
        """The number of connections since the last call."""
        count = len(self.taken)
        for connection in self.taken[:count]:
            connection.close()
        del self.taken[:count]
        return count

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.asked()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()


@pytest.fixture
def one(fleet: Fleet, silent: Silent) -> Machine:
    """A clone that has seen alice's claim, and whose remote does not answer from now on."""
    machine = fleet.joined()[0]
    assert machine.claim("a", agent="alice").code == 0
    age_beats(machine, fleet)  # so that each command of alice would send one
    machine.git("config", "gitcoord.remoteTimeout", "1")
    machine.git("remote", "set-url", "origin", f"git://127.0.0.1:{silent.port}/server.git")
    return machine


def back(machine: Machine, fleet: Fleet) -> None:
    """The remote answers again."""
    machine.git("config", "gitcoord.remoteTimeout", "60")
    machine.git("remote", "set-url", "origin", str(fleet.bare))


def test_looking(fleet: Fleet, silent: Silent, one: Machine) -> None:
    """It shows the last known state, and says so. The next look does not ask again; a change does."""
    found = one.claim("list")
    assert found.code == 0 and "alice" in found.out, found
    assert NO_ANSWER in found.err and "what follows is as it was" in found.err, found
    assert silent.asked() == 1
    found = one.claim("list", "--json")
    assert found.json["claims"][0]["agent"] == "alice" and found.json["as_of_seconds"] is not None
    assert "gave no answer" in found.json["offline"] and "is asked again in" in found.json["offline"]
    assert silent.asked() == 0, "it has just failed"
    taken = one.claim("--json", "src/db.py", agent="bob")
    assert taken.code == 5 and NO_ANSWER in taken.json["message"], taken
    assert silent.asked() > 0, "a change always asks"
    back(one, fleet)
    assert one.claim("src/db.py", agent="bob").code == 0
    assert "offline" not in one.claim("list", "--json").json, "it has answered since"
    fleet.assert_sound()


@pytest.mark.parametrize("words", ["git-claim check a", "git-coord status", "git-coord task list"])
def test_other_looks(silent: Silent, one: Machine, words: str) -> None:
    found = one.run(*words.split(), "--json", agent="alice", env={**_setting("gitcoord.maxAge", "0")})
    assert found.code == 0 and NO_ANSWER in found.json["offline"], found
    assert silent.asked() == 1, "its heartbeat does not ask again"


def test_a_start_shows_what_is_known(fleet: Fleet, silent: Silent, one: Machine) -> None:
    """It wants to write, and says that nobody knows whether it did."""
    before = one.state()
    for words in ([], ["--brief"]):
        done = one.run("git-coord", "start", *words, agent="carol")
        assert done.code == 5 and NO_ANSWER in done.out and "as of " in done.out, done
        assert "whether the session of carol was opened" in done.out and "alice" in done.out, done
        assert 0 < silent.asked() <= 2
    row = one.run("git-coord", "start", "--json", agent="alice").json
    assert (row["ok"], row["opened"], [claim["path"] for claim in row["claims"]]) == (False, False, ["a"]), row
    assert NO_ANSWER in row["offline"] and row["as_of_seconds"] >= 0
    assert one.state() == before
    back(one, fleet)
    assert one.run("git-coord", "start", "--json", agent="carol").json["opened"]
    fleet.assert_sound()


def test_a_start_of_the_killed_or_halted_is_refused_by_what_is_known(
    fleet: Fleet, silent: Silent, one: Machine
) -> None:
    back(one, fleet)
    assert one.person("kill", "alice").code == 0
    one.git("remote", "set-url", "origin", f"git://127.0.0.1:{silent.port}/server.git")
    one.git("config", "gitcoord.remoteTimeout", "1")
    done = one.run("git-coord", "start", "--json", agent="alice")
    assert done.code == 1 and done.json["error"] == "killed", done


def _setting(key: str, value: str) -> dict[str, str]:
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": value}


@pytest.mark.parametrize("words", ["git-claim src/db.py", "git-claim release a", "git-coord stop"])
def test_changing(fleet: Fleet, silent: Silent, one: Machine, words: str) -> None:
    """One deadline holds for all tries together; an unknown outcome is reported as unknown."""
    agent = "alice" if words in ("git-claim release a", "git-coord stop") else "carol"
    done = one.run(*words.split(), "--json", agent=agent)
    assert done.json["error"] in ("unreachable", "unknown-outcome"), done
    assert done.code == 5 and NO_ANSWER in done.json["message"], done
    assert silent.asked() <= 2
    before = len(fleet.events())
    back(one, fleet)
    again = one.run(*words.split(), "--json", agent=agent)
    assert again.code == 0 and len(fleet.events()) > before, again
    fleet.assert_sound()


def test_the_projects_own_bound(fleet: Fleet, silent: Silent, one: Machine) -> None:
    one.git("config", "--unset", "gitcoord.remoteTimeout")
    one.commit({".gitcoord/config": "[remote]\n\ttimeout = 1s\n"})
    assert NO_ANSWER in one.claim("list", "--json").json["offline"]


def test_a_word_while_it_waits(silent: Silent, one: Machine) -> None:
    one.git("config", "gitcoord.remoteTimeout", "3")
    found = one.claim("list")
    assert "waiting for 'origin'" in found.err and "no answer within 3 seconds" in found.err, found
    taken = one.claim("--json", "src/db.py", agent="bob")
    assert taken.code == 5 and not taken.err, "nothing but the answer"


def test_joining(fleet: Fleet, silent: Silent) -> None:
    two = fleet.machines[1]
    two.git("config", "gitcoord.remoteTimeout", "1")
    two.git("remote", "set-url", "origin", f"http://127.0.0.1:{silent.port}/server.git")
    done = two.coord("init", "--remote", "origin", "--json")
    assert done.code == 5 and NO_ANSWER in done.json["message"], done


def test_a_push_past_the_gate(fleet: Fleet, silent: Silent, one: Machine) -> None:
    """The gate that has to look there does not wait for ever, and does not guess."""
    one.commit({"notes": "more\n"})
    assert one.coord("install-hooks").code == 0
    fleet.git("branch", "elsewhere", "main")
    one.git("remote", "add", "backup", str(fleet.bare))
    done = one.run("git", "push", "-q", "backup", "HEAD:elsewhere", agent="alice")
    assert done.code == 1 and NO_ANSWER in done.err and "could not be judged" in done.err, done


def test_the_guard_of_an_agents_tool(silent: Silent, one: Machine) -> None:
    """It has less time than the deadline; a heartbeat that cannot be sent is no reason to deny."""
    one.git("config", "--unset", "gitcoord.remoteTimeout")
    one.git("config", "gitcoord.guardSeconds", "4")
    who = Speaker("claude", "c1", str(one.repo))
    for asks in (True, False):
        with running(one.start("git-coord", "guard", agent="alice", stdin=subprocess.PIPE)) as process:
            out, err = process.communicate(json.dumps(who.write(str(one.repo / "src/db.py"))), timeout=60)
        assert understood("claude", Said(out.encode(), err.encode(), process.returncode)) == "allow", (out, err)
        assert bool(silent.asked()) == asks


_BEAT = """
import sys
sys.path.insert(0, {root!r})
from gitcoord.sessions.service import start, beat
from gitcoord.ledger.sessions import Actor
from gitcoord.base.errors import GitcoordError
from gitcoord.world.open import environ, open_repository
ctx = open_repository(environ(), writing=True)
ctx.host.mono = lambda now=ctx.host.mono: now() + 60_000
try:
    beat(ctx, Actor("alice"), patient=False)
except GitcoordError as error:
    print(error.code, error.message)
"""


def test_a_heartbeat(silent: Silent, one: Machine) -> None:
    found = one.run(sys.executable, "-c", _BEAT.format(root=str(Path(__file__).parents[3])))
    assert found.out.startswith("unreachable "), found


# An ssh that hears nothing, wants nothing and does not go when it is asked to.
_DEAF = """#!/bin/sh
trap '' TERM
echo $$ >>{log}
cat {fifo}
"""


@pytest.mark.parametrize("words", [("list",), ("src/db.py",)], ids=["looking", "changing"])
def test_whatever_git_has_started_ends_too(fleet: Fleet, words: tuple[str, ...]) -> None:
    one, _ = fleet.joined()
    log, fifo, ssh = (fleet.place / name for name in ("pids", "fifo", "ssh"))
    os.mkfifo(fifo)
    ssh.write_text(_DEAF.format(log=log, fifo=fifo))
    ssh.chmod(0o755)
    one.git("config", "gitcoord.remoteTimeout", "1")
    one.git("config", "core.sshCommand", str(ssh))
    one.git("remote", "set-url", "origin", "ssh://host.invalid/server.git")
    found = one.claim(*words, "--json", agent="bob")
    assert NO_ANSWER in found.out, found
    started = [int(pid) for pid in log.read_text().split()]
    assert started
    try:
        wait_until("all have ended", lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), 10)
    finally:
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_an_answer_that_comes_late(fleet: Fleet) -> None:
    """The command prints what it waits for; then the answer counts."""
    one, two = fleet.joined()
    assert two.claim("a", agent="alice").code == 0
    there, gate = fleet.place / "there", fleet.place / "go"
    os.mkfifo(gate)
    _wrapped(fleet, f'touch {there}; cat {gate} >/dev/null; exec git upload-pack "$@"')
    with running(one.start("git-claim", "list")) as process:
        assert process.stderr is not None
        assert "waiting for 'origin'" in process.stderr.readline()
        assert there.exists()
        gate.write_text("go\n")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "alice" in out and not err, (out, err)


def _wrapped(fleet: Fleet, body: str) -> None:
    (fleet.place / "count-upload-pack").write_text(f"#!/bin/sh\n{body}\n")


# Hands on what it reads in small pieces, each after a while, as a thin line does.
_THIN = """
import os, select, sys
while data := os.read(0, 5000):
    os.write(1, data)
    select.select([], [], [], 0.4)
"""


def test_much_over_a_thin_line(fleet: Fleet) -> None:
    """A slow transfer may take longer than the deadline, as long as bytes arrive."""
    one, two = fleet.joined()
    for number in range(16):  # what cannot be compressed: about 40 kB in all
        words = os.urandom(480).hex()
        assert two.claim(f"file{number}", "-m", words, agent="bob").code == 0
    one.git("config", "gitcoord.remoteTimeout", "2")
    thin = fleet.place / "thin.py"
    thin.write_text(_THIN)
    _wrapped(fleet, f'git upload-pack "$@" | {sys.executable} -IS {thin}')
    found = one.claim("list", "--json")
    assert "offline" not in found.json and len(found.json["claims"]) == 16, found


def test_a_git_that_is_stopped_in_its_push(fleet: Fleet) -> None:
    """Its time is over: it is ended, what came of it is looked for, and the push is made again."""
    one, _ = fleet.joined()
    one.git("config", "gitcoord.remoteTimeout", "6")
    there, gate = fleet.place / "there", fleet.place / "go"
    os.mkfifo(gate)
    hook = fleet.hook("pre-receive", f"touch {there}; cat {gate}; exit 0\n")
    with running(one.start("git-claim", "--json", "a", agent="alice")) as process:
        wait_until("the push is at the server", there.exists)
        hook.unlink()
        (push,) = (pid for pid in _children(process.pid) if b"\0push\0" in _words(pid))
        os.kill(push, signal.SIGSTOP)
        done = Done(0, *process.communicate(timeout=60))
        with contextlib.suppress(OSError):
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
    assert done.json["ok"], done
    assert not Path(f"/proc/{push}").exists()
    assert len(fleet.events("claim")) == 1
    fleet.assert_sound()


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _words(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
