"""A process that lives long moves the refs of a remote by itself, and leaves to git what it cannot do."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitcoord.base.names import LEDGER
from gitcoord.claims.model import Item
from gitcoord.claims.service import take
from gitcoord.claims.take import Take
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.client import is_plain, objects_above
from gitcoord.ledger.remote.fetch import fetch
from gitcoord.ledger.remote.git_remote import FAILED, LANDED, RACED, UNKNOWN, UNREACHABLE
from gitcoord.ledger.remote.mirror_store import MirrorStore
from gitcoord.ledger.sessions import Actor
from gitcoord.world.open import open_repository
from tests.ledger.remote.longlived import LongLived, pushes_by_git, with_pushes_noted
from tests.ledger.remote.support import Fleet, Machine
from tests.ledger.remote.test_batches import agents_waiting, waiting
from tests.races.support import running, wait_until


@pytest.fixture
def one(fleet: Fleet) -> Machine:
    """Reaches the server by ssh."""
    machine, _ = fleet.joined()
    by_ssh(fleet, machine)
    return machine


def by_ssh(fleet: Fleet, machine: Machine) -> None:
    machine.git("config", "core.sshCommand", fleet.ssh())
    machine.git("config", "--unset-all", "remote.origin.receivepack")
    machine.git("remote", "set-url", "origin", f"ssh://git@host.invalid{fleet.bare}")


def test_swaps_without_a_git_push(fleet: Fleet, one: Machine) -> None:
    two = fleet.machines[1]
    with LongLived(one, "alice", with_pushes_noted(one)) as alice:
        for name in ("a", "b", "c"):
            assert alice.ask("take", name) == "ok"
            assert alice.ask("release", name) == "ok"
        assert alice.ask("take", "a") == "ok"
        assert two.claim("--json", "a", agent="bob").json["held"][0]["agent"] == "alice"
        assert two.claim("b", agent="bob").code == 0
        assert alice.ask("take", "b").startswith("held ")
        assert alice.ask("take", "c") == "ok"
    assert not pushes_by_git(one)
    fleet.assert_sound()


def test_it_carries_what_others_of_its_machine_have_written(fleet: Fleet, one: Machine) -> None:
    with LongLived(one, "alice", with_pushes_noted(one)) as alice:
        with waiting(one):
            with running(one.start("git-claim", "src/app.py", agent="bob")) as bob:
                wait_until("he waits", lambda: agents_waiting(one) == ["bob"])
                bob.kill()
            alice.say("take", "a")
            wait_until("she rides along", lambda: agents_waiting(one) == ["bob", "alice"])
        assert alice.hear() == "ok"
    assert {event["agent"] for event in fleet.events("claim")} == {"bob", "alice"}
    assert not pushes_by_git(one)
    fleet.assert_sound()


def test_what_the_host_says_is_heard(fleet: Fleet, one: Machine) -> None:
    with LongLived(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
        hook = fleet.hook("pre-receive", "echo 'closed for today'; exit 1\n")
        before = fleet.refs()
        assert "closed for today" in alice.ask("take", "b") and fleet.refs() == before
        hook.unlink()
        assert alice.ask("take", "b") == "ok"
        fleet.bare.rename(fleet.place / "away")
        assert alice.ask("take", "c").startswith("unreachable ")
        (fleet.place / "away").rename(fleet.bare)
        assert alice.ask("take", "c") == "ok"
        fleet.hook("post-receive", "kill -9 $PPID\n")  # before it has reported
        assert alice.ask("take", "d") == "ok", "by a look at the ledger"
    assert len(fleet.events("claim")) == 4
    fleet.assert_sound()


# --- one push ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def alarm(one: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process as one that lives long: its pushes are noted, and it has no other alarm (pytest's own)."""
    monkeypatch.setenv("PATH", with_pushes_noted(one)["PATH"])
    left = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.setitimer(signal.ITIMER_REAL, *left)


def opened(machine: Machine) -> Context:
    env = {**machine.env, "GIT_DIR": str(machine.git_dir), "GIT_WORK_TREE": str(machine.repo)}
    return open_repository(
        {os.fsencode(key): os.fsencode(value) for key, value in env.items()}, writing=True, long_lived=True
    )


@pytest.fixture
def ctx(one: Machine, alarm: None) -> Iterator[Context]:
    ctx = opened(one)
    yield ctx
    ctx.store.close()


def store_of(ctx: Context) -> MirrorStore:
    assert isinstance(ctx.store, MirrorStore)
    return ctx.store


def beats(ctx: Context, *texts: str) -> list[str]:
    made = [ctx.store.write("blob", text.encode()) for text in texts]
    ctx.store.flush()
    return made


ZOE, BOB = "refs/gitcoord/sessions/zoe", "refs/gitcoord/sessions/bob"


def test_all_refs_or_none(fleet: Fleet, one: Machine, ctx: Context) -> None:
    first, second = beats(ctx, "1", "2")
    remote = store_of(ctx).remote
    assert remote.push([RefUpdate(ZOE, "", first)]).kind == LANDED
    before = fleet.refs()
    for moves in (
        [RefUpdate(BOB, "", first), RefUpdate(ZOE, "", second)],
        [RefUpdate(BOB, "", first), RefUpdate(ZOE, second, "")],
        [RefUpdate(BOB, "", first), RefUpdate(ZOE, second, second)],  # only looked at
    ):
        assert remote.push(moves).kind == RACED and fleet.refs() == before
    assert remote.push([RefUpdate(BOB, "", first), RefUpdate(ZOE, first, "")]).kind == LANDED
    assert BOB in fleet.refs() and ZOE not in fleet.refs()
    assert not pushes_by_git(one)


def test_what_moves_after_it_was_compared_is_the_servers_to_find(fleet: Fleet, one: Machine, ctx: Context) -> None:
    first, second, third = beats(ctx, "1", "2", "3")
    remote = store_of(ctx).remote
    assert remote.push([RefUpdate(ZOE, "", first)]).kind == LANDED
    fleet.hook("update", f"[ $1 != {ZOE} ] || env -u GIT_QUARANTINE_PATH git update-ref {BOB} {first}\n")
    assert remote.push([RefUpdate(ZOE, first, second), RefUpdate(BOB, "", third)]).kind == RACED
    assert fleet.refs()[ZOE] == fleet.refs()[BOB] == first
    assert not pushes_by_git(one)


def test_without_the_servers_report_nothing_is_said_to_be_done(fleet: Fleet, ctx: Context) -> None:
    (first,) = beats(ctx, "1")
    fleet.hook("post-receive", "kill -9 $PPID\n")
    assert store_of(ctx).remote.push([RefUpdate(ZOE, "", first)]).kind == UNKNOWN
    assert fleet.refs()[ZOE] == first, "though it was"


def test_a_server_that_cannot_keep_it(fleet: Fleet, one: Machine, ctx: Context) -> None:
    (first,) = beats(ctx, "x" * 5000)
    fleet.git("config", "receive.maxInputSize", "10")
    assert store_of(ctx).remote.push([RefUpdate(ZOE, "", first)]).kind == FAILED
    assert not pushes_by_git(one)


def test_what_is_to_be_sent_is_what_git_would_send(fleet: Fleet, one: Machine, ctx: Context) -> None:
    remote, local = store_of(ctx).remote, store_of(ctx).local
    fetch(ctx)
    old = local.resolve([LEDGER])[0]
    assert old is not None
    for name in ("a", "b/c", "b/d"):
        take(ctx, Take(Actor("alice"), (Item("path", name),)))
    new = local.resolve([LEDGER])[0] or ""
    found = objects_above(local, [RefUpdate(LEDGER, old, new)])
    assert found is not None
    wanted = one.git("rev-list", "--objects", "--no-object-names", f"{old}..{new}").split()
    assert {one.oid for one in found} >= set(wanted) and len(found) <= len(wanted) + 3
    everything = objects_above(local, [RefUpdate(LEDGER, "", new)])
    assert everything is not None
    assert {one.oid for one in everything} == set(
        one.git("rev-list", "--objects", "--no-object-names", new or "").split()
    )
    assert objects_above(local, [RefUpdate(ZOE, "", "0" * 39 + "1")]) is None, "not here"
    assert remote.name == "origin"


# --- how long -------------------------------------------------------------------------------------------------------------

_DEAF = """#!/bin/sh
trap '' TERM
echo $$ >>{log}
cat {fifo}
"""


def test_an_ssh_that_says_nothing_is_ended_in_time(fleet: Fleet, one: Machine, alarm: None) -> None:
    log, fifo, ssh = (fleet.place / name for name in ("pids", "fifo", "deaf/ssh"))
    ssh.parent.mkdir()
    os.mkfifo(fifo)
    ssh.write_text(_DEAF.format(log=log, fifo=fifo))
    ssh.chmod(0o755)
    one.git("config", "gitcoord.remoteTimeout", "1")
    one.git("config", "core.sshCommand", str(ssh))
    before = signal.getsignal(signal.SIGALRM)
    ctx = opened(one)
    (first,) = beats(ctx, "1")
    report = store_of(ctx).remote.push([RefUpdate(ZOE, "", first)])
    ctx.store.close()
    assert report.kind == UNREACHABLE and "no answer within 1 seconds" in report.words
    assert signal.getsignal(signal.SIGALRM) == before and signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert not any(Path(f"/proc/{pid}").exists() for pid in log.read_text().split())
    assert not pushes_by_git(one), "there was no time left for that"


def test_a_server_that_thinks_for_too_long(fleet: Fleet, one: Machine, alarm: None) -> None:
    one.git("config", "gitcoord.remoteTimeout", "1")
    os.mkfifo(fleet.place / "gate")
    gate = os.open(fleet.place / "gate", os.O_RDWR)  # both ends: the hook waits, and nobody waits for it
    fleet.hook("pre-receive", f"read -r _ <{fleet.place}/gate; exit 1\n")
    ctx = opened(one)
    (first,) = beats(ctx, "1")
    report = store_of(ctx).remote.push([RefUpdate(ZOE, "", first)])
    ctx.store.close()
    os.write(gate, b"go\n")
    os.close(gate)
    assert report.kind == UNKNOWN and ZOE not in fleet.refs() and not pushes_by_git(one)


def test_somebody_elses_alarm_is_left_alone(fleet: Fleet, one: Machine, ctx: Context) -> None:
    (first,) = beats(ctx, "1")
    signal.setitimer(signal.ITIMER_REAL, 600)
    try:
        assert store_of(ctx).remote.push([RefUpdate(ZOE, "", first)]).kind == LANDED
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 600
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert pushes_by_git(one) == 1


# --- what is left to git ----------------------------------------------------------------------------------------------------


def test_where_no_alarm_is_to_be_had_git_pushes(fleet: Fleet, one: Machine, ctx: Context) -> None:
    (first,) = beats(ctx, "1")
    kinds: list[str] = []
    thread = threading.Thread(target=lambda: kinds.append(store_of(ctx).remote.push([RefUpdate(ZOE, "", first)]).kind))
    thread.start()
    thread.join(60)
    assert kinds == [LANDED] and pushes_by_git(one) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gitcoord.atomic", "false"), ("http.proxy", "x"), ("ssh.variant", "simple"), ("protocol.version", "2"),
        ("remote.origin.receivepack", "git-receive-pack"), ("remote.origin.pushurl", ""), ("gitcoord.namespaces", "branches"),
    ],
)  # fmt: skip
def test_settings_that_only_git_heeds(fleet: Fleet, one: Machine, alarm: None, key: str, value: str) -> None:
    one.git("config", "--add", key, value or str(fleet.bare))
    ctx = opened(one)
    (first,) = beats(ctx, "1")
    assert store_of(ctx).remote.push([RefUpdate(ZOE, "", first)]).kind in (LANDED, RACED)  # no blob is a branch
    ctx.store.close()
    assert pushes_by_git(one) == 1


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("ssh://git@host/x.git", True), ("ssh://host:22/x", True), ("git://host/x", True), ("https://u:p@host:8443/x", True),
        ("git@host:x/y.git", True), ("host:/x", True), ("http://host/x", True),
        ("/x/y", False), ("./x:y", False), ("file:///x", False), ("x", False), ("/a:b", False), ("ext::sh -c x", False),
        ("ssh://host/a%20b", False), ("ssh://host/a b", False), ("ssh://[::1]/x", False), ("http://host:x/y", False),
        ("ssh://-oProxyCommand=x/y", False), ("-x:y", False), ("ftp://host/x", False), ("host:a\tb", False),
    ],
)  # fmt: skip
def test_addresses(url: str, plain: bool) -> None:
    assert is_plain(url) == plain


def test_over_a_path_git_pushes(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    with LongLived(one, "alice", with_pushes_noted(one)) as alice:
        assert alice.ask("take", "a") == "ok"
    assert pushes_by_git(one)
    fleet.assert_sound()


# --- who uses it --------------------------------------------------------------------------------------------------------


def test_a_launched_agents_session_needs_no_git_push(fleet: Fleet, one: Machine) -> None:
    done = one.run("git-coord", "run", "--as", "zoe", "--", "true", env=with_pushes_noted(one))
    assert done.code == 0, done
    assert [event["agent"] for event in fleet.events("start")] == ["zoe"]
    assert not pushes_by_git(one)
    fleet.assert_sound()
