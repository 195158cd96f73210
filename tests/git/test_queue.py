"""The writers' queue and the waiter's deadline: both use the one timer of the process."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from pathlib import Path

import pytest

from gitcoord.git.locks.queue import QueuedLock


def test_waiting_leaves_a_deadline_in_place(tmp_path: Path) -> None:
    file = tmp_path / "queue.lock"
    fd = os.open(file, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
    signal.setitimer(signal.ITIMER_REAL, 500, 7)
    try:
        with QueuedLock(str(file), 0.05) as queue:
            assert not queue.acquired
            left, every = signal.getitimer(signal.ITIMER_REAL)
            assert 0 < left < 500 and every == 7 and not rang
            assert signal.getsignal(signal.SIGALRM) is not before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.close(fd)


def test_a_queue_that_moves_is_waited_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving the queue on a busy machine makes others lose: a waiter leaves only when one process keeps the lock."""
    file = tmp_path / "queue.lock"
    fd = os.open(file, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    marks = iter([1, 2, 2, 3, 3, 3])
    monkeypatch.setattr(QueuedLock, "_turn", lambda self: next(marks))
    with QueuedLock(str(file), 0.02) as queue:
        assert not queue.acquired
    assert next(marks, None) is None, "three times as long as one process is waited for"
    os.close(fd)


def test_a_turn_after_a_wait_is_marked(tmp_path: Path) -> None:
    file = tmp_path / "queue.lock"
    fd = os.open(file, os.O_RDWR | os.O_CREAT)
    os.utime(file, (1, 1))
    fcntl.flock(fd, fcntl.LOCK_EX)
    timer = threading.Timer(0.05, lambda: os.close(fd))
    timer.start()
    with QueuedLock(str(file), 60) as queue:
        assert queue.acquired and file.stat().st_mtime > 1
    timer.join()


def test_who_does_not_wait(tmp_path: Path) -> None:
    file = str(tmp_path / "queue.lock")
    had: list[bool] = []

    def ask() -> None:
        with QueuedLock(file, 0) as queue:
            had.append(queue.acquired)

    with QueuedLock(file, 60):
        asking = threading.Thread(target=ask, daemon=True)  # where no alarm would end a wait
        asking.start()
        asking.join(10)
        assert had == [False]
    ask()
    assert had == [False, True]
