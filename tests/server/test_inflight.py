"""The registry of pushes that are landing: who conflicts_with whom, who lives, what is swept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitcoord.git.host import start_time
from gitcoord.server.inflight import EVERYTHING, LEASE_MS, NOTHING, Inflight, footprint


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
        (footprint((), ["a/b"]), footprint((), ["a"]), True),
        (footprint((), ["a"]), footprint((), ["a/b"]), True),
        (footprint((), ["A/b"]), footprint((), ["a/B"]), True),
        (footprint((), ["a/b"]), footprint((), ["a/bc"]), False),
        (footprint((), ["a/b"]), footprint((), ["."]), True),
        (footprint(["alice"], ()), footprint(["alice.x"], ()), True),
        (footprint(["alice"], ()), footprint(["alicex"], ()), False),
        (footprint(["alice"], ["a"]), footprint(["bob"], ["b"]), False),
        (EVERYTHING, footprint(["alice"], ()), True),
        (EVERYTHING, EVERYTHING, True),
        (EVERYTHING, NOTHING, False),
        (footprint((), map(str, range(3000))), footprint((), ["x"]), True),
    ],
)
def test_who_meets_whom(one: object, other: object, meet: bool) -> None:
    assert one.conflicts_with(other) is other.conflicts_with(one) is meet  # type: ignore[attr-defined]


def test_only_lower_tickets_of_the_other_kind_are_waited_for(tmp_path: Path) -> None:
    code, ledger, later = (push(tmp_path, os.getpid()) for _ in range(3))
    code.register(reads=footprint(["alice"], ["a\nb"]))
    ledger.register(writes=footprint((), ["a\nb"]))
    later.register(reads=footprint((), ["a\nb"]))
    assert not code.must_wait() and ledger.must_wait() and later.must_wait()
    code.refine(reads=footprint((), ["c"]))
    assert not ledger.must_wait()
    ledger.withdraw()
    assert not later.must_wait()


def test_pushes_of_one_kind_never_wait_for_each_other(tmp_path: Path) -> None:
    """However much they rely on or touch: that two of them move one ref is git's to settle."""
    code, more, ledger, halt = (push(tmp_path, os.getpid()) for _ in range(4))
    code.register(reads=EVERYTHING)
    more.register(reads=EVERYTHING)
    assert not more.must_wait()
    more.withdraw()
    code.withdraw()
    ledger.register(writes=EVERYTHING)
    halt.register(writes=EVERYTHING)
    assert not halt.must_wait()


def test_a_ticket_ends_with_its_process(tmp_path: Path) -> None:
    pid = os.fork()
    if not pid:
        os.read(os.pipe()[0], 1)
        os._exit(0)
    first, second = push(tmp_path, pid), push(tmp_path, os.getpid())
    first.register(reads=EVERYTHING)
    second.register(writes=EVERYTHING)
    assert second.must_wait()
    os.kill(pid, 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert start_time(pid) and not second.must_wait(), "a zombie moves no refs"
    os.waitpid(pid, 0)
    assert not second.must_wait()


def test_a_process_that_cannot_be_seen_has_a_lease(tmp_path: Path) -> None:
    clock = Clock()
    first, second = push(tmp_path, None, clock), push(tmp_path, os.getpid(), clock)
    first.register(reads=EVERYTHING)
    second.register(writes=EVERYTHING)
    assert second.must_wait()
    clock.now += LEASE_MS
    assert not second.must_wait()


def test_another_boots_tickets_are_dead(tmp_path: Path) -> None:
    push(tmp_path, os.getpid(), boot="before").register(reads=EVERYTHING)
    now = push(tmp_path, os.getpid())
    now.register(writes=EVERYTHING)
    assert not now.must_wait()


def test_sweeping_leaves_alone_what_is_being_written(tmp_path: Path) -> None:
    """Another push is about to rename its file: without it that push would be refused."""
    place = tmp_path / "inflight"
    place.mkdir()
    for name in ("refs.99999999.5.tmp", "7.99999999.5.tmp"):
        (place / name).write_text("x")
    (place / "refs.99999999").write_text("x")
    push(tmp_path, os.getpid()).register(reads=EVERYTHING)
    assert (place / "refs.99999999.5.tmp").exists() and (place / "7.99999999.5.tmp").exists()
    assert not (place / "refs.99999999").exists()


def test_tickets_only_grow(tmp_path: Path) -> None:
    for _ in range(3):
        push(tmp_path, os.getpid()).register(reads=EVERYTHING)
    (tmp_path / "inflight/next").write_text("")
    push(tmp_path, os.getpid()).register(reads=EVERYTHING)
    names = [name.partition(".")[0] for name in os.listdir(tmp_path / "inflight")]
    assert sorted(int(name) for name in names if name.isdecimal()) == [1, 2, 3, 4]
