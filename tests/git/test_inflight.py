"""The registry of pushes that are landing: who meets whom, who lives, what is swept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitcoord.git.host import start_time
from gitcoord.server.inflight import EVERYTHING, LEASE_MS, NOTHING, Inflight, stake


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def push(place: Path, pid: int | None, clock: Clock | None = None, boot: str = "boot") -> Inflight:
    """A push whose receive-pack is this process; None: one that cannot be seen."""
    found = Inflight(str(place), str(place), boot, clock or Clock())
    found.pid = str(pid) if pid else ""
    return found


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (stake((), ["a/b"]), stake((), ["a"]), True),
        (stake((), ["a"]), stake((), ["a/b"]), True),
        (stake((), ["A/b"]), stake((), ["a/B"]), True),
        (stake((), ["a/b"]), stake((), ["a/bc"]), False),
        (stake((), ["a/b"]), stake((), ["."]), True),
        (stake(["alice"], ()), stake(["alice.x"], ()), True),
        (stake(["alice"], ()), stake(["alicex"], ()), False),
        (stake(["alice"], ["a"]), stake(["bob"], ["b"]), False),
        (EVERYTHING, stake(["alice"], ()), True),
        (EVERYTHING, EVERYTHING, True),
        (EVERYTHING, NOTHING, False),
        (stake((), map(str, range(3000))), stake((), ["x"]), True),
    ],
)
def test_who_meets_whom(one: object, other: object, meet: bool) -> None:
    assert one.meets(other) is other.meets(one) is meet  # type: ignore[attr-defined]


def test_only_lower_tickets_of_the_other_kind_are_waited_for(tmp_path: Path) -> None:
    code, ledger, later = (push(tmp_path, os.getpid()) for _ in range(3))
    code.register(relies=stake(["alice"], ["a\nb"]))
    ledger.register(touches=stake((), ["a\nb"]))
    later.register(relies=stake((), ["a\nb"]))
    assert not code.in_the_way() and ledger.in_the_way() and later.in_the_way()
    code.refine(relies=stake((), ["c"]))
    assert not ledger.in_the_way()
    ledger.leave()
    assert not later.in_the_way()


def test_pushes_of_one_kind_never_wait_for_each_other(tmp_path: Path) -> None:
    """However much they rely on or touch: that two of them move one ref is git's to settle."""
    code, more, ledger, halt = (push(tmp_path, os.getpid()) for _ in range(4))
    code.register(relies=EVERYTHING)
    more.register(relies=EVERYTHING)
    assert not more.in_the_way()
    more.leave()
    code.leave()
    ledger.register(touches=EVERYTHING)
    halt.register(touches=EVERYTHING)
    assert not halt.in_the_way()


def test_a_ticket_ends_with_its_process(tmp_path: Path) -> None:
    pid = os.fork()
    if not pid:
        os.read(os.pipe()[0], 1)
        os._exit(0)
    first, second = push(tmp_path, pid), push(tmp_path, os.getpid())
    first.register(relies=EVERYTHING)
    second.register(touches=EVERYTHING)
    assert second.in_the_way()
    os.kill(pid, 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert start_time(pid) and not second.in_the_way(), "a zombie moves no refs"
    os.waitpid(pid, 0)
    assert not second.in_the_way()


def test_a_process_that_cannot_be_seen_has_a_lease(tmp_path: Path) -> None:
    clock = Clock()
    first, second = push(tmp_path, None, clock), push(tmp_path, os.getpid(), clock)
    first.register(relies=EVERYTHING)
    second.register(touches=EVERYTHING)
    assert second.in_the_way()
    clock.now += LEASE_MS
    assert not second.in_the_way()


def test_another_boots_tickets_are_dead(tmp_path: Path) -> None:
    push(tmp_path, os.getpid(), boot="before").register(relies=EVERYTHING)
    now = push(tmp_path, os.getpid())
    now.register(touches=EVERYTHING)
    assert not now.in_the_way()


def test_sweeping_leaves_alone_what_is_being_written(tmp_path: Path) -> None:
    """Another push is about to rename its file: without it that push would be refused."""
    place = tmp_path / "inflight"
    place.mkdir()
    for name in ("refs.99999999.5.tmp", "7.99999999.5.tmp"):
        (place / name).write_text("x")
    (place / "refs.99999999").write_text("x")
    push(tmp_path, os.getpid()).register(relies=EVERYTHING)
    assert (place / "refs.99999999.5.tmp").exists() and (place / "7.99999999.5.tmp").exists()
    assert not (place / "refs.99999999").exists()


def test_tickets_only_grow(tmp_path: Path) -> None:
    for _ in range(3):
        push(tmp_path, os.getpid()).register(relies=EVERYTHING)
    (tmp_path / "inflight/next").write_text("")
    push(tmp_path, os.getpid()).register(relies=EVERYTHING)
    names = [name.partition(".")[0] for name in os.listdir(tmp_path / "inflight")]
    assert sorted(int(name) for name in names if name.isdecimal()) == [1, 2, 3, 4]
