"""No window: a push of code does not land after the claim that it relied on went to another agent.

receive-pack is stopped between its check (pre-receive) and its ref lock by an `update` hook, which git runs just there.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.server.support import Site
from tests.support import git

# Says that it has come here, then waits until it may go on.
_STOP = """#!/bin/sh
case $1 in {ref}) ;; *) exit 0 ;; esac
[ -p "{place}/gate" ] || exit 0
echo here >"{place}/here"
read -r _ <"{place}/gate"
"""


# The same when the ref is locked, and about to move.
_STOP_LOCKED = """#!/bin/sh
case $1/$(cat) in prepared/*refs/heads/main*) ;; *) exit 0 ;; esac
[ -p "{place}/gate" ] || exit 0
echo here >"{place}/here"
read -r _ <"{place}/gate"
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path).setup()
    site.claim("--ttl", "60s", "shared/a", agent="alice")
    assert site.sync().code == 0
    stop_at(site, "refs/heads/main")
    return site


def stop_at(site: Site, ref: str) -> None:
    hook = site.bare / "hooks/update"
    hook.write_text(_STOP.format(place=site.place, ref=ref))
    hook.chmod(0o755)


def entries(site: Site) -> list[str]:
    names = os.listdir(site.bare / "gitcoord/inflight")
    return [name for name in names if name[0].isdigit() and not name.endswith(".tmp")]


class Stopped:
    """alice's push of code, checked and found good, stopped before it lands."""

    def __init__(self, site: Site) -> None:
        self.site = site
        for name in ("here", "gate"):
            os.mkfifo(site.place / name)
        self.commit = site.commit({"shared/a": "stale\n"}, "alice")
        self.push = subprocess.Popen(
            ["git", "push", "-q", "-o", "agent=alice", "origin", "main"],
            cwd=site.top,
            stderr=subprocess.DEVNULL,
        )
        assert (site.place / "here").read_text() == "here\n"

    def go_on(self) -> None:
        (self.site.place / "gate").write_text("go\n")

    def landed(self) -> bool:
        return self.site.refs()["refs/heads/main"] == self.commit


@pytest.fixture
def stopped(site: Site) -> Iterator[Stopped]:
    found = Stopped(site)
    yield found
    found.push.kill()
    found.push.wait()


def take_away(site: Site) -> None:
    """alice's claim expires, and bob asks for the path."""
    site.world.fall_silent("alice")
    assert site.push("--atomic", "origin", "+refs/gitcoord/sessions/alice:refs/gitcoord/sessions/alice").code == 0
    site.claim("shared/a", agent="bob")


def test_a_takeover_waits_for_the_push_that_is_landing(site: Site, stopped: Stopped) -> None:
    site.setting("wait", "60")
    take_away(site)
    before = site.private()["refs/heads/gitcoord"]
    done: list[int] = []
    taking = threading.Thread(target=lambda: done.append(site.sync().code))
    taking.start()
    while len(entries(site)) < 2:
        assert taking.is_alive()
    taking.join(1)  # time enough to land, if it did not wait
    assert site.private()["refs/heads/gitcoord"] == before and not done, (
        "the claim changed hands while a push was landing"
    )
    stopped.go_on()
    assert stopped.push.wait(60) == 0 and stopped.landed()
    taking.join(60)
    assert done == [0] and site.private()["refs/heads/gitcoord"] != before


def test_a_takeover_does_not_wait_for_ever(site: Site, stopped: Stopped) -> None:
    site.setting("wait", "1")
    take_away(site)
    before = site.private()["refs/heads/gitcoord"]
    done = site.sync()
    assert done.code != 0 and "has been landing" in done.err and "gitcoord.server.wait" in done.err
    assert site.private()["refs/heads/gitcoord"] == before
    stopped.go_on()
    assert stopped.push.wait(60) == 0
    assert site.sync().code == 0


def test_without_the_registry_the_stale_write_lands(site: Site, stopped: Stopped) -> None:
    """The same with the registry off: what the others prove could fail."""
    site.setting("inflight", "false")
    take_away(site)
    assert site.sync().code == 0, "the claim changes hands at once"
    claims = [ref for ref in site.private() if ref.startswith("refs/claims/")]
    assert claims == ["refs/claims/path/shared/a/@bob"]
    stopped.go_on()
    assert stopped.push.wait(60) == 0 and stopped.landed(), "the window is there"


def test_what_does_not_meet_does_not_wait(site: Site, stopped: Stopped) -> None:
    site.claim("free", agent="carol")
    assert site.sync().code == 0
    stopped.go_on()
    assert stopped.push.wait(60) == 0


def test_a_dead_push_is_not_waited_for(site: Site, stopped: Stopped) -> None:
    """receive-pack is killed where it stands: its entry ends with it."""
    take_away(site)
    (entry,) = entries(site)
    os.kill(int(entry.partition(".")[2]), 9)
    assert site.sync().code == 0
    assert not stopped.landed()


def test_a_push_that_died_with_its_ref_locked(site: Site) -> None:
    """Its lock stays, as with git alone, since its owner is unknown. Only pushes to that branch wait for it."""
    (site.bare / "hooks/update").unlink()
    hook = site.bare / "hooks/reference-transaction.before-gitcoord"
    hook.write_text(_STOP_LOCKED.format(place=site.place))
    hook.chmod(0o755)
    dying = Stopped(site)
    (entry,) = entries(site)
    os.kill(int(entry.partition(".")[2]), 9)
    assert dying.push.wait(60) != 0
    os.close(os.open(site.place / "gate", os.O_WRONLY | os.O_NONBLOCK))  # the hook of the dead push would wait for ever
    (site.place / "gate").unlink()
    locks = [site.bare / "refs/heads/main.lock", site.bare / "HEAD.lock"]
    assert all(lock.exists() for lock in locks), "what git leaves"
    site.setting("wait", "1")
    take_away(site)
    assert site.sync().code == 0, "a takeover does not wait for the dead"
    site.world.git("reset", "-q", "--hard", "origin/main")
    commit = site.commit({"shared/a": "bob's\n"}, "bob")
    done = site.push("origin", "main", options=("agent=bob",))
    assert done.code != 0 and ".lock" in done.err and all(lock.exists() for lock in locks), done
    for lock in locks:
        lock.unlink()
    assert site.push("origin", "main", options=("agent=bob",)).code == 0
    assert site.refs()["refs/heads/main"] == commit


def test_whoever_lost_the_claim_is_refused(site: Site) -> None:
    take_away(site)
    assert site.sync().code == 0
    site.commit({"shared/a": "stale\n"}, "alice")
    done = site.push("origin", "main", options=("agent=alice",))
    assert done.code != 0 and "[held]" in done.err and "bob" in done.err
    assert git(site.bare, "show", "main:shared/a") == b"a\n"


def test_a_push_waits_for_the_takeover_that_is_landing(site: Site) -> None:
    """The other way round: the takeover was judged first, so alice's push is judged after it has landed."""
    site.setting("wait", "60")
    take_away(site)
    stop_at(site, "refs/heads/gitcoord")
    for name in ("here", "gate"):
        os.mkfifo(site.place / name)
    taking = subprocess.Popen(
        ["git", "push", "-q", "--atomic", "origin", *site.refspecs()], cwd=site.top, stderr=subprocess.DEVNULL
    )
    assert (site.place / "here").read_text() == "here\n"
    commit = site.commit({"shared/a": "stale\n"}, "alice")
    done: list[Done] = []
    pushing = threading.Thread(target=lambda: done.append(site.push("origin", "main", options=("agent=alice",))))
    pushing.start()
    while len(entries(site)) < 2:
        assert pushing.is_alive()
    (site.place / "gate").write_text("go\n")
    assert taking.wait(60) == 0
    pushing.join(60)
    assert done[0].code != 0 and "[held]" in done[0].err
    assert site.refs()["refs/heads/main"] != commit


def test_judging_has_an_end(site: Site, stopped: Stopped) -> None:
    site.setting("wait", "600")
    site.setting("seconds", "1")
    take_away(site)
    before = site.refs()
    done = site.sync()
    assert done.code != 0 and "took too long" in done.err and "gitcoord.server.seconds" in done.err
    assert site.refs() == before and len(entries(site)) == 1
    stopped.go_on()
    assert stopped.push.wait(60) == 0
