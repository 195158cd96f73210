"""A process that lives long swaps in one connection of its own, without a git push for each claim."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gitcoord.store.connection import Connection
from gitcoord.store.far import LANDED, LOST, Move
from gitcoord.store.wire import Wire
from tests.race.support import Project, wait_until
from tests.remote.support import Fleet

ROOT = Path(__file__).parents[2]

# Reads lines "<take|release> <path>" and does them; one process for all of them.
_CLIENT = """
import sys
sys.path.insert(0, {root!r})
from gitcoord.app import claims
from gitcoord.core.asking import Take
from gitcoord.core.claims import Item
from gitcoord.core.sessions import Actor
from gitcoord.errors import GitcoordError
from gitcoord.hot.open import environ, open_repository

ctx = open_repository(environ(), writing=True, stays=True)
actor = Actor({agent!r})
for line in sys.stdin:
    verb, path = line.split()
    try:
        items = (Item("path", path),)
        claims.take(ctx, Take(actor, items)) if verb == "take" else claims.release(ctx, actor, items)
        print("ok", flush=True)
    except GitcoordError as error:
        print(error.code, error.message.replace(chr(10), " "), flush=True)
"""


class Client:
    def __init__(self, machine: Project, agent: str, env: "dict[str, str] | None" = None) -> None:
        argv = [sys.executable, "-c", _CLIENT.format(root=str(ROOT), agent=agent)]
        self.process = machine.start(*argv, env=env, stdin=subprocess.PIPE)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, verb: str, path: str) -> str:
        self.say(verb, path)
        return self.hear()

    def say(self, verb: str, path: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{verb} {path}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def watched(fleet: Fleet) -> "dict[str, str]":
    """A PATH on which `git push` leaves a trace."""
    shim = fleet.place / "shim"
    shim.mkdir()
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    trace = f'case " $* " in *" push "*) echo push >>{fleet.place}/pushes ;; esac'
    (shim / "git").write_text(f'#!/bin/sh\n{trace}\nexec {real} "$@"\n')
    (shim / "git").chmod(0o755)
    return {"PATH": f"{shim}:{fleet.env['PATH']}"}


def test_what_was_told_ahead_may_be_old(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """It connected, then another of its machine landed, on whose work its own stands: that is no lost race."""
    one, _ = fleet.joined()
    ref = "refs/gitcoord/sessions/zoe"
    beats = [subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], input=text, cwd=one.repo, capture_output=True, text=True, check=True
    ).stdout.strip() for text in ("1", "2")]  # fmt: skip
    told = Event()
    update = Connection._update

    def noting(self: Connection, there: dict[Any, Any]) -> dict[Any, Any]:
        told.set()
        return update(self, there)

    monkeypatch.setattr(Connection, "_update", noting)
    env = {**one.env, "GIT_DIR": str(one.git_dir)}
    wire = Wire({os.fsencode(key): os.fsencode(value) for key, value in env.items()}, "origin")
    wire.wrote(beats[1], "blob", b"2")
    wire.connect()
    assert told.wait(60)
    one.git("push", "-q", "origin", f"{beats[0]}:{ref}")
    assert wire.push([Move(ref, beats[0], beats[1])]).kind == LANDED
    assert fleet.refs()[ref] == beats[1]
    assert wire.push([Move(ref, beats[0], None)]).kind == LOST, "and this is one"


def test_swaps_without_a_git_push(fleet: Fleet) -> None:
    one, two = fleet.joined()
    with Client(one, "alice", watched(fleet)) as alice:
        for name in ("a", "b", "c"):
            assert alice.ask("take", name) == "ok"
            assert alice.ask("release", name) == "ok"
        assert alice.ask("take", "a") == "ok"
        assert two.claim("--json", "a", agent="bob").json["held"][0]["agent"] == "alice"
        assert two.claim("b", agent="bob").code == 0
        assert alice.ask("take", "b").startswith("held ")
        assert alice.ask("take", "c") == "ok"
    assert not os.path.exists(fleet.place / "pushes")
    fleet.assert_sound()


def test_what_the_host_says_is_heard(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
        hook = fleet.hook("pre-receive", "echo 'closed for today'; exit 1\n")
        before = fleet.refs()
        assert alice.ask("take", "b").startswith("host ") and fleet.refs() == before
        hook.unlink()
        assert alice.ask("take", "b") == "ok"
        fleet.bare.rename(fleet.place / "away")
        assert alice.ask("take", "c").startswith("unreachable ")
        (fleet.place / "away").rename(fleet.bare)
        fleet.hook("post-receive", "kill -9 $PPID\n")
        assert alice.ask("take", "c") == "ok"
    assert len(fleet.events("claim")) == 3
    fleet.assert_sound()


def test_an_answer_does_not_wait_for_the_servers_last_hook(fleet: Fleet) -> None:
    """Once the server has reported, the refs have moved."""
    one, _ = fleet.joined()
    os.mkfifo(fleet.place / "gate")
    gate = os.open(fleet.place / "gate", os.O_RDWR)  # both ends: the hook waits, and nobody waits for it
    with Client(one, "alice") as alice:
        fleet.hook("post-receive", f"read -r _ <{fleet.place}/gate\n")
        try:
            assert alice.ask("take", "a") == "ok"
            assert [event["agent"] for event in fleet.events("claim")] == ["alice"]
        finally:
            os.write(gate, b"go\n")
    os.close(gate)
    fleet.assert_sound()


def test_a_connection_that_is_not_needed_is_closed(fleet: Fleet) -> None:
    """It is opened while the request is decided; a refused one has nothing to send."""
    one, two = fleet.joined()
    assert two.claim("a", agent="bob").code == 0
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a").startswith("held ")
        wait_until("no receive-pack is left", lambda: not receiving(alice.process.pid))
    fleet.assert_sound()


def receiving(pid: int) -> list[str]:
    """The receive-packs that a process has started and that still run."""
    lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    found = [Path(f"/proc/{child}/cmdline") for text in lists for child in text.split()]
    return [line for path in found if path.exists() and "receive-pack" in (line := path.read_text())]


# --- staying connected ----------------------------------------------------------------------------------------------


class Door:
    """A PATH on which each `git receive-pack` is noted, and none is let in any more while the door is shut."""

    def __init__(self, fleet: Fleet) -> None:
        self.log, self.bar = fleet.place / "door.log", fleet.place / "shut"
        shim = fleet.place / "door"
        shim.mkdir()
        real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
        self.log.touch()
        (shim / "git").write_text(
            f'#!/bin/sh\ncase " $* " in *" receive-pack "*|*" push "*)\n'
            f'  [ ! -e {self.bar} ] || {{ echo fatal: unable to access it >&2; exit 128; }}; echo $$ >>{self.log} ;; esac\nexec {real} "$@"\n'
        )
        (shim / "git").chmod(0o755)
        self.env = {"PATH": f"{shim}:{fleet.env['PATH']}"}

    def shut(self, yes: bool = True) -> None:
        self.bar.touch() if yes else self.bar.unlink()

    def entered(self) -> list[int]:
        return [int(word) for word in self.log.read_text().split()]

    def inside(self) -> list[int]:
        return [pid for pid in self.entered() if Path(f"/proc/{pid}").exists()]


def calm(client: Client, door: Door) -> None:
    """So many landed without meeting anybody that it stays connected."""
    for name in ("a", "b"):
        assert client.ask("take", name) == "ok"
    wait_until("it is connected for the next one", lambda: len(door.entered()) == 3 and len(door.inside()) == 1)


def test_it_stays_connected(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    door = Door(fleet)
    with Client(one, "alice", door.env) as alice:
        calm(alice, door)
        door.shut()
        assert alice.ask("take", "c") == "ok", "through the connection that was open"
        assert alice.ask("take", "d").startswith("unreachable ")
        door.shut(False)
        assert alice.ask("take", "d") == "ok"
    wait_until("all have gone", lambda: not door.inside())
    fleet.assert_sound()


def test_what_it_saw_meanwhile_may_be_old(fleet: Fleet) -> None:
    """Others have landed: it asks again, and does not stay connected while they are about."""
    one, two = fleet.joined()
    door = Door(fleet)
    with Client(one, "alice", door.env) as alice:
        calm(alice, door)
        assert two.claim("c", agent="bob").code == 0
        assert alice.ask("take", "c").startswith("held ")
        assert alice.ask("take", "d") == "ok"
        wait_until("nobody waits for the next one", lambda: not door.inside())
    fleet.assert_sound()


@pytest.mark.parametrize("seconds", ["0", "1"])
def test_for_how_long(fleet: Fleet, seconds: str) -> None:
    one, _ = fleet.joined()
    one.git("config", "gitcoord.stayConnected", seconds)
    door = Door(fleet)
    with Client(one, "alice", door.env) as alice:
        for name in ("a", "b"):
            assert alice.ask("take", name) == "ok"
        came = 2 if seconds == "0" else 3
        wait_until("all have come and gone", lambda: len(door.entered()) >= came and not door.inside())
        assert len(door.entered()) == came
        assert alice.ask("take", "c") == "ok"
    fleet.assert_sound()


def test_one_that_was_cut_meanwhile(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    door = Door(fleet)
    with Client(one, "alice", door.env) as alice:
        calm(alice, door)
        for pid in door.inside():
            os.kill(pid, signal.SIGKILL)
        assert alice.ask("take", "c") == "ok"
    assert len(fleet.events("claim")) == 3
    fleet.assert_sound()
