"""Links cut, servers killed: the invariants hold afterwards and work goes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.ledger.remote.longlived import LongLived
from tests.races.support import running, wait_until
from tests.server.link import Link
from tests.server.machines import Machine
from tests.server.realm import STEPS, Clone, Realm
from tests.server.servers import Served, serving

pytestmark = pytest.mark.faults
DAEMON = pytest.mark.parametrize("server", ["git"], indirect=True)
LINKED = pytest.mark.parametrize("server", ["git", "http"], indirect=True)


@pytest.fixture
def realm(served: Served, tmp_path: Path) -> Realm:
    return Realm(served, tmp_path, accounts=False)


@pytest.fixture
def one(realm: Realm, link: Link) -> Clone:
    """alice's machine, at the other end of the link."""
    return realm.clone("one", "alice", port=link.port.number)


def ended(process: subprocess.Popen[str]) -> Done:
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def unknown(done: Done) -> None:
    """Assert that the outcome is unknown, and that no message says that it was done or not done."""
    assert (done.code, done.json["error"]) == (5, "unknown-outcome"), done
    assert "nothing was changed" not in done.out + done.err, done


def asks(clone: Clone, path: str = "shared/a", agent: str = "alice") -> subprocess.Popen[str]:
    return clone.start("git-claim", "--json", path, agent=agent)


def goes_on(realm: Realm, one: Clone, *, granted: bool | None = None, claims: int = 0) -> None:
    """Check that alice gets it by one event, that others see it, that her work lands, and that she can release it.

    `claims`: so many were granted and given back before.
    """
    before = len(realm.events("claim"))
    assert granted is None or before == claims + granted
    assert one.take("shared/a", "alice").code == 0
    assert len(realm.events("claim")) == claims + 1
    found = one.take("shared/a", "bob")
    assert [row["agent"] for row in found.json["held"]] == ["alice"], found
    one.work("shared/a", "alice")
    assert one.push(option="alice").code == 0
    assert one.release("shared/a", "alice").code == 0
    realm.assert_sound()


# --- links --------------------------------------------------------------------------------------------------------


@DAEMON
def test_cut_before_the_server_hears_of_it(realm: Realm, one: Clone, link: Link) -> None:
    link.cut()
    before = realm.refs()
    done = one.take("shared/a", "alice")
    assert (done.code, done.json["error"]) == (5, "unreachable") and realm.refs() == before, done
    link.mend()
    goes_on(realm, one, granted=False)


@pytest.mark.parametrize(("server", "sent"), [("git", 10), ("git", 1000), ("http", 1500)], indirect=["server"])
def test_cut_within_the_request(realm: Realm, one: Clone, link: Link, sent: int) -> None:
    """Cut for good after so many bytes: the client cannot know, says so, and grants nothing."""
    before = realm.refs()
    link.cut_after(up=sent)
    done = one.take("shared/a", "alice")
    link.wait_reached()
    assert done.code == 5 and done.json["error"] in ("unreachable", "unknown-outcome"), done
    assert realm.refs() == before
    link.mend()
    goes_on(realm, one, granted=False)


@pytest.mark.parametrize(
    ("server", "step"), [("git", "pre-receive"), ("http", "update"), ("git", "prepared")], indirect=["server"]
)
def test_cut_while_the_server_is_at_it(realm: Realm, one: Clone, link: Link, step: str) -> None:
    """The server has everything and goes on alone; no client gets a false answer."""
    with realm.held_at(step) as held, running(asks(one)) as asking:
        held.wait(asking)
        link.cut()
        done = ended(asking)
        unknown(done)
        held.go()
        wait_until("the server is done with it", lambda: not pushes(realm))
    link.mend()
    goes_on(realm, one)


@pytest.mark.parametrize(("server", "mended"), [("git", False), ("git", True), ("http", True)], indirect=["server"])
def test_cut_after_the_server_has_it(realm: Realm, one: Clone, link: Link, mended: bool) -> None:
    """The answer is lost. Where the server can be asked again it is a grant; else it is unknown, and asking again tells."""
    with realm.held_at("post-receive") as held, running(asks(one)) as asking:
        held.wait(asking)
        link.hold(down=True)
        held.go()
        wait_until("the server is done with it", lambda: not pushes(realm))
        link.reset() if mended else link.cut()
        done = one.note(ended(asking), "alice")
    assert len(realm.events("claim")) == 1
    if mended:
        assert done.code == 0, done
    else:
        unknown(done)
        link.mend()
    goes_on(realm, one, granted=True)


@LINKED
def test_a_process_that_lives_long_and_a_cut_link(realm: Realm, one: Clone, link: Link) -> None:
    with LongLived(one, "alice") as alice:
        assert alice.ask("take", "shared/b") == "ok"
        link.cut()
        assert alice.ask("take", "shared/a").startswith("unreachable ")
        link.mend()
        assert alice.ask("take", "shared/a") == "ok"
    assert sorted(item[1] for event in realm.events("claim") for item in event["items"]) == ["shared/a", "shared/b"]
    goes_on_with_b(realm, one)


@pytest.mark.parametrize(("server", "cut"), [("git", "cut"), ("git", "silent"), ("http", "cut")], indirect=["server"])
def test_a_waiter_outlives_a_cut_link(realm: Realm, one: Clone, link: Link, cut: str) -> None:
    """It says so and goes on asking; its place is kept, and it gets its turn when the link is there again."""
    two = realm.clone("two", "bob")
    assert two.take("shared/a", "bob").code == 0
    if cut == "silent":
        one.git("config", "gitcoord.remoteTimeout", "4")
    with running(one.start("git-claim", "--wait", "5m", "shared/a", agent="alice")) as waiter:
        assert waiter.stderr is not None and waiter.stdout is not None
        said = (line for line in waiter.stderr if not line.startswith("waiting for 'origin'"))
        assert next(said) == "waiting: 1st of 1; bob holds it\n"
        link.cut() if cut == "cut" else link.hold(down=True)
        assert (line := next(said)).startswith("waiting: ") and "origin" in line, line
        assert two.release("shared/a", "bob").code == 0
        link.mend() if cut == "cut" else link.resume()
        assert waiter.stdout.readline().startswith("claimed shared/a")
    assert len(realm.events("wait")) == 1
    assert one.release("shared/a", "alice").code == 0
    realm.assert_sound()


@DAEMON
def test_a_waiter_for_a_task_outlives_a_cut_link(realm: Realm, one: Clone, link: Link) -> None:
    two = realm.clone("two", "bob")
    with running(one.start("git-coord", "task", "next", "--wait", "5m", agent="alice")) as waiter:
        assert waiter.stderr is not None and waiter.stdout is not None
        assert waiter.stderr.readline() == "waiting: no task is left to take; 1st of 1\n"
        link.cut()
        line = next(line for line in waiter.stderr if not line.startswith("waiting for 'origin'"))
        assert line.startswith("waiting: ") and "origin" in line, line
        assert two.run("git-coord", "task", "add", "x", agent="bob").code == 0
        link.mend()
        assert "is yours: x" in waiter.stdout.readline()
    assert len(realm.events("wait")) == 1
    realm.assert_sound()


def goes_on_with_b(realm: Realm, one: Clone) -> None:
    assert one.release("shared/b", "alice").code == 0
    realm.assert_sound()


@pytest.mark.parametrize(("server", "moment"), [("git", "after"), ("http", "before")], indirect=["server"])
def test_a_process_that_lives_long_and_a_silent_link(realm: Realm, one: Clone, link: Link, moment: str) -> None:
    """The remote is silent: the process stops waiting, and a request that it gave up is not carried out later."""
    one.git("config", "gitcoord.remoteTimeout", "3")
    with LongLived(one, "alice") as alice:
        assert alice.ask("take", "shared/b") == "ok"
        if moment == "before":
            link.hold(down=True)
            assert alice.ask("take", "shared/a").startswith("unreachable ")
            link.resume()
            wait_until("nothing is under way", lambda: not pushes(realm))
            assert len(realm.events("claim")) == 1
        else:
            with realm.held_at("update") as held:
                alice.say("take", "shared/a")
                held.wait(alice.process)
                link.hold(down=True)
                assert alice.hear().startswith("unknown-outcome ")
                held.go()
                wait_until("the server is done with it", lambda: not pushes(realm))
            link.resume()
            assert len(realm.events("claim")) == 2
        one.git("config", "gitcoord.remoteTimeout", "60")
    assert one.take("shared/a", "alice").code == 0
    assert len(realm.events("claim")) == 2
    goes_on_with_b(realm, one)


@pytest.mark.namespaces
def test_a_pulled_cable(other_machine: Machine, tmp_path: Path) -> None:
    """Packets of another machine are neither refused nor reset: it stops waiting, and reports an unknown outcome."""
    with serving("git", other_machine.host) as server:
        realm = Realm(server.create("cable"), tmp_path)
        one = realm.clone("one", "alice")
        one.git("config", "gitcoord.remoteTimeout", "3")
        one.wrap = other_machine.wrap([])
        with realm.held_at("update") as held, running(asks(one)) as asking:
            held.wait(asking)
            other_machine.cut()
            held.go()
            wait_until("the server has it", lambda: len(realm.events("claim")) == 1)
            unknown(ended(asking))
        other_machine.mend()
        one.git("config", "gitcoord.remoteTimeout", "60")
        goes_on(realm, one, granted=True)


def pushes(realm: Realm) -> list[str]:
    """Those that have not ended yet: receive-packs of this repository."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().split(b"\0")
            inside = os.readlink(command.parent / "cwd") == str(realm.bare)
        except OSError:
            continue
        if any(b"receive-pack" in word for word in words[:2]) and inside:
            found.append(command.parent.name)
    return found


# --- the server dies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["git"], indirect=True)
@pytest.mark.parametrize("step", STEPS)
def test_the_server_is_killed(realm: Realm, step: str) -> None:
    """The server dies with all its processes, as in a power cut; then it is back."""
    one = realm.clone("one", "alice")
    with realm.held_at(step) as held, running(asks(one)) as asking:
        held.wait(asking)
        realm.served.server.stop()
        unknown(ended(asking))
    realm.served.server.start()
    goes_on(realm, one, granted=step in ("committed", "post-receive"))


@DAEMON
def test_the_server_is_killed_while_a_claim_ends(realm: Realm) -> None:
    """A deletion: git locks packed-refs too."""
    one = realm.clone("one", "alice")
    assert one.take("shared/a", "alice").code == 0
    with realm.held_at("prepared") as held:
        with running(one.start("git-claim", "release", "--json", "shared/a", agent="alice")) as asking:
            held.wait(asking)
            realm.served.server.stop()
            assert ended(asking).code == 5
    realm.served.server.start()
    assert (realm.bare / "packed-refs.lock").exists(), "what must not stay"
    assert one.release("shared/a", "alice").code == 0
    assert not (realm.bare / "packed-refs.lock").exists()
    goes_on(realm, one, claims=1)


@DAEMON
def test_a_lock_of_somebody_else_stays(realm: Realm) -> None:
    """The same, but the lock that is there now was made after the push died: by git gc, perhaps, which still runs."""
    one = realm.clone("one", "alice")
    with realm.held_at("prepared") as held, running(asks(one)) as asking:
        held.wait(asking)
        realm.served.server.stop()
        ended(asking)
    lock = realm.bare / "refs/heads/gitcoord.lock"
    lock.unlink()
    lock.touch()
    realm.served.server.start()
    done = one.take("shared/a", "alice")
    assert done.code == 4 and "refs/heads/gitcoord.lock" in done.json["message"] and lock.exists(), done
    lock.unlink()
    goes_on(realm, one, granted=False)
