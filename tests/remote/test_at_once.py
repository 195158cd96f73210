"""What a process that lives long pushes while nobody of its machine waits: sent first, written here while the server works."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitcoord.app import claims
from gitcoord.app.context import Context
from gitcoord.core.asking import Take
from gitcoord.core.claims import Item
from gitcoord.core.sessions import Actor
from gitcoord.errors import GitcoordError, StoreError
from gitcoord.hot.open import open_repository
from gitcoord.store.far import UNREACHABLE, Report
from gitcoord.store.plumbing import PlumbingStore
from gitcoord.store.wire import Wire
from tests.race.support import wait_until
from tests.remote.support import LEDGER, Fleet, Machine
from tests.remote.test_wire import Client, watched


@contextmanager
def held_up(fleet: Fleet, verdict: str = "exit 0") -> Iterator[Path]:
    """The server has got the next push, and thinks about it until this ends."""
    gate, there = fleet.place / "gate", fleet.place / "there"
    os.mkfifo(gate)
    fd = os.open(gate, os.O_RDWR)  # both ends: the hook waits, and nobody waits for it
    hook = fleet.hook(
        "pre-receive", f"touch {there}; read -r _ <{gate}; rm {fleet.bare}/hooks/pre-receive; {verdict}\n"
    )
    try:
        yield there
    finally:
        os.write(fd, b"go\n")
        wait_until("the server has gone on", lambda: not hook.exists())
        os.close(fd)


def children(client: Client, word: str) -> list[str]:
    lists = [path.read_text() for path in Path(f"/proc/{client.process.pid}/task").glob("*/children")]
    found = [Path(f"/proc/{child}/cmdline") for text in lists for child in text.split()]
    return [line for path in found if path.exists() and word in (line := path.read_text().replace("\0", " "))]


def test_the_next_one_builds_on_what_is_under_way(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    flying = one.git_dir / "gitcoord/batch/flying"
    with Client(one, "alice", watched(fleet)) as alice:
        assert alice.ask("take", "a") == "ok"
        with held_up(fleet) as there:
            alice.say("take", "b")
            wait_until("it is known here", lambda: there.exists() and flying.exists())
            bob = one.start("git-claim", "src/app.py", agent="bob")
            wait_until("he has decided", (one.git_dir / "gitcoord/batch/open").exists)
        assert alice.hear() == "ok"
        words = bob.communicate()
        assert bob.returncode == 0, words
    assert [(e["agent"], e["items"][0][1]) for e in fleet.events("claim")] == [
        ("alice", "a"), ("alice", "b"), ("bob", "src/app.py"),
    ]  # fmt: skip
    fleet.assert_sound()


def test_this_clones_git_is_ready_and_holds_nothing(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
        with held_up(fleet) as there:
            alice.say("take", "b")
            wait_until("it is under way", there.exists)
            wait_until("its copies can follow", lambda: len(children(alice, "update-ref")) == 1)
            before = one.state()
            one.git("update-ref", LEDGER, before[LEDGER], before[LEDGER])
            assert not list((one.git_dir / "refs").rglob("*.lock"))
        assert alice.hear() == "ok"
        assert one.state()[LEDGER] == one.state()["refs/gitcoord/tip"] == fleet.refs()[LEDGER] != before[LEDGER]
        assert one.state()["refs/claims/path/b/@alice"] == fleet.refs()["refs/claims/path/b/@alice"]
        assert not (one.git_dir / "gitcoord/outcomes").exists(), "nobody else asks"
    fleet.assert_sound()


def test_what_the_server_refuses_did_not_happen_here(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
        before = one.state()
        with held_up(fleet, "exit 1") as there:
            alice.say("take", "b")
            wait_until("it is under way", there.exists)
        assert alice.hear().startswith("host ") and one.state() == before
        assert not (one.git_dir / "gitcoord/batch/flying").exists()
        assert alice.ask("take", "b") == "ok"
    fleet.assert_sound()


def test_who_dies_before_it_is_written_here(fleet: Fleet) -> None:
    """Then the push is like that of another machine: it counts, and the next one finds it."""
    one, _ = fleet.joined()
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
        with held_up(fleet) as there:
            alice.say("take", "src")
            wait_until("it is under way", there.exists)
            alice.process.kill()
            alice.process.wait()
            (one.git_dir / "gitcoord/batch/flying").unlink(missing_ok=True)
        wait_until("it has landed", lambda: len(fleet.events("claim")) == 2)
    assert one.claim("--json", "src/app.py", agent="bob").json["held"][0]["agent"] == "alice"
    fleet.assert_sound()


# --- where this clone cannot keep it ------------------------------------------------------------------------------------


def opened(machine: Machine) -> Context:
    env = {**machine.env, "GIT_DIR": str(machine.git_dir), "GIT_WORK_TREE": str(machine.repo)}
    return open_repository(
        {os.fsencode(key): os.fsencode(value) for key, value in env.items()}, writing=True, stays=True
    )


def full(*_: object) -> str:
    raise StoreError("cannot write an object: No space left on device")


def test_a_full_disk_here_is_made_up_for_by_a_look(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = fleet.joined()
    ctx = opened(one)
    claims.take(ctx, Take(Actor("alice"), (Item("path", "a"),)))
    with monkeypatch.context() as patch:
        patch.setattr(PlumbingStore, "write", full)
        claims.take(ctx, Take(Actor("alice"), (Item("path", "b"),)))
    assert one.state()["refs/claims/path/b/@alice"] == fleet.refs()["refs/claims/path/b/@alice"]
    claims.take(ctx, Take(Actor("alice"), (Item("path", "c"),)))
    assert len(fleet.events("claim")) == 3
    ctx.store.close()
    fleet.assert_sound()


def test_if_that_is_in_vain_the_truth_is_told(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = fleet.joined()
    ctx = opened(one)
    claims.take(ctx, Take(Actor("alice"), (Item("path", "a"),)))
    before = one.state()
    with monkeypatch.context() as patch:
        patch.setattr(PlumbingStore, "write", full)
        patch.setattr(Wire, "fetch", lambda *_, **__: Report(UNREACHABLE, "no space"))
        with pytest.raises(GitcoordError, match=r"'origin' has done it, but this clone cannot keep it: .*No space"):
            claims.take(ctx, Take(Actor("alice"), (Item("path", "b"),)))
    assert one.state() == before and len(fleet.events("claim")) == 2
    claims.take(ctx, Take(Actor("alice"), (Item("path", "b"),)))  # is harmless
    assert one.state()["refs/claims/path/b/@alice"] == fleet.refs()["refs/claims/path/b/@alice"]
    assert len(fleet.events("claim")) == 2
    ctx.store.close()
    fleet.assert_sound()


def test_what_only_git_can_send_is_written_first(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    one.git("config", "gitcoord.atomic", "false")
    with Client(one, "alice", watched(fleet)) as alice:
        assert alice.ask("take", "a") == "ok"
    assert (fleet.place / "pushes").exists() and len(fleet.events("claim")) == 1
    fleet.assert_sound()
