"""Time, as each machine sees it: paused clients, wrong and fast clocks, two who sweep. The server's clock decides."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.ledger.remote.longlived import LongLived
from tests.races.support import running, soak
from tests.server.clocks import World, another_boot, missing
from tests.server.link import Link
from tests.server.realm import Clone, Realm
from tests.server.servers import Served

pytestmark = [
    pytest.mark.faults,
    pytest.mark.namespaces,
    pytest.mark.parametrize("server", ["git"], indirect=True),
]
Machines = Callable[..., Clone]
TTL = "10s"


@pytest.fixture
def world(tmp_path: Path) -> World:
    if reason := missing():
        pytest.skip(reason)
    return World(tmp_path)


@pytest.fixture
def realm(served: Served, tmp_path: Path, world: World) -> Realm:
    clock = "".join(f"export {key}='{value}'\n" for key, value in world.clock().env.items())
    return Realm(served, tmp_path, claim=f'#!/bin/sh\n{clock}exec {tmp_path}/bin/git-claim "$@"\n')


@pytest.fixture
def machine(realm: Realm, world: World) -> Iterator[Machines]:
    """More machines, each started at another time, with a clock that may be wrong."""
    with ExitStack() as stack:

        def made(name: str, account: str, *, ahead: int = 0, rate: int = 1, port: int = 0) -> Clone:
            found = realm.clone(name, account, port=port, joins=False)
            found.env |= world.clock(ahead, rate).env
            found.wrap = stack.enter_context(another_boot())
            found.join()
            return found

        yield made


def token(answer: Done) -> int:
    assert answer.code == 0, answer
    found: int = answer.json["claims"][0]["token"]
    return found


# --- paused -------------------------------------------------------------------------------------------------------


def test_a_client_that_was_paused(realm: Realm, world: World, machine: Machines) -> None:
    """Stopped for longer than its claim survives: what it does afterwards is refused, and its work is not lost."""
    one, two = machine("one", "alice"), machine("two", "bob")
    assert token(one.take("shared/a", "alice", "--ttl", TTL))
    with LongLived(one, "alice") as alice:
        assert alice.ask("take", "shared/b") == "ok"
        alice.process.send_signal(signal.SIGSTOP)
        assert two.take("shared/a", "bob").code == 1
        world.wait(100)
        assert two.take("shared/a", "bob").code == 0
        alice.process.send_signal(signal.SIGCONT)
        assert alice.ask("take", "shared/a").startswith("held ")
        assert alice.ask("take", "shared/b") == "ok", "nobody asked for that one"
    commit = one.work("shared/a", "alice")
    pushed = one.push(option="alice")
    assert pushed.code == 1 and "[held]" in pushed.err and "bob" in pushed.err, pushed
    assert one.git("rev-parse", "HEAD").strip() == commit
    realm.assert_sound()


@pytest.mark.parametrize("what", ["claim", "push"])
def test_a_request_that_was_paused_on_its_way(
    realm: Realm, world: World, machine: Machines, link: Link, what: str
) -> None:
    """Decided in time, under way for too long: the server judges when it arrives."""
    one, two = machine("one", "alice", port=link.port.number), machine("two", "bob")
    assert token(one.take("shared/a", "alice", "--ttl", TTL))
    assert two.take("shared/a", "bob").code == 1
    one.work("shared/a", "alice")
    one.git("config", "gitcoord.remoteTimeout", "600")  # it waits on, whatever its clock says
    words = (
        ["git-claim", "--json", "shared"]
        if what == "claim"
        else ["git", "push", "-o", "agent=alice", "origin", "HEAD:main"]
    )
    link.hold_after(up=200)  # its first words, not its commands
    with running(one.start(*words, agent="alice")) as paused:
        link.wait_reached()
        world.wait(100)
        assert two.take("shared/a", "bob").code == 0
        link.resume()
        out, err = paused.communicate(timeout=60)
    done = Done(paused.returncode, out, err)
    assert done.code == 1, done
    if what == "claim":
        assert [row["agent"] for row in done.json["held"]] == ["bob"], done
    else:
        assert "[held]" in done.err, done
    realm.assert_sound()


# --- wrong clocks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holders", "others"),
    [((600, 1), (-600, 1)), ((-600, 1), (600, 1)), ((0, 2), (0, 1)), ((0, 1), (0, 2))],
    ids=["holder ahead, other behind", "holder behind, other ahead", "holder twice as fast", "other twice as fast"],
)
def test_nobody_loses_a_live_claim(
    realm: Realm, world: World, machine: Machines, holders: tuple[int, int], others: tuple[int, int]
) -> None:
    """Ten minutes off, each in another direction, or at double speed (seconds ahead, rate)."""
    one = machine("one", "alice", ahead=holders[0], rate=holders[1])
    two = machine("two", "bob", ahead=others[0], rate=others[1])
    granted = token(one.take("shared/a", "alice", "--ttl", TTL))
    for _ in range(soak(1, 5)):
        assert two.take("shared/a", "bob").code == 1
        world.wait(26)  # the claim lives for 30 + 10 seconds from the beat, and longer where the beat is another's
        found = two.take("shared/a", "bob")
        assert found.code == 1 and "alice" in found.out, found
        world.wait(5)
        assert token(one.take("shared/a", "alice")) == granted, "a beat, by the same claim"
    assert not realm.events("expire")
    one.work("shared/a", "alice")
    assert one.push(option="alice").code == 0
    # And yet the silent lose theirs.
    assert two.take("shared/a", "bob").code == 1
    world.wait(100)
    assert two.take("shared/a", "bob").code == 0
    realm.assert_sound()


def test_without_the_gate_a_fast_clock_takes_it(realm: Realm, world: World, machine: Machines) -> None:
    """The tests above can fail: on a plain server every client's own clock counts."""
    done = realm.server("uninstall", str(realm.bare))
    assert done.code == 0, done
    one, two = machine("one", "alice"), machine("two", "bob", rate=2)
    assert token(one.take("shared/a", "alice", "--ttl", TTL))
    assert two.take("shared/a", "bob").code == 1
    world.wait(26)
    assert two.take("shared/a", "bob").code == 0
    realm.assert_sound()


def test_two_sweep_at_once(realm: Realm, world: World, machine: Machines) -> None:
    one, two, three = machine("one", "alice"), machine("two", "bob"), machine("three", "carol")
    for path in ("shared/a", "shared/b"):
        assert one.take(path, "alice", "--ttl", TTL).code == 0
    for clone, agent in ((two, "bob"), (three, "carol")):
        assert clone.coord("sweep", agent=agent).code == 0
    assert not realm.events("expire")
    world.wait(100)
    with realm.held_at("pre-receive") as held:
        with running(two.start("git-coord", "sweep", "--json", agent="bob")) as first:
            held.wait(first)
            with running(three.start("git-coord", "sweep", "--json", agent="carol")) as second:
                held.go()
                ends = [process.communicate(timeout=60) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], ends
    assert len(realm.events("expire")) == 1 and len(realm.events("expire")[0]["claims"]) == 2
    assert one.take("shared/a", "alice").code == 0, "free for all, and so for alice"
    realm.assert_sound()
