"""The writers' queue and a deadline of whoever waits in it: both use the one timer of the process."""

import fcntl
import os
import signal
from pathlib import Path

from gitcoord.store.queue import Queue


def test_waiting_leaves_a_deadline_in_place(tmp_path: Path) -> None:
    file = tmp_path / "queue.lock"
    fd = os.open(file, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
    signal.setitimer(signal.ITIMER_REAL, 500, 7)
    try:
        with Queue(str(file), 0.05) as queue:
            assert not queue.held
            left, every = signal.getitimer(signal.ITIMER_REAL)
            assert 0 < left < 500 and every == 7 and not rang
            assert signal.getsignal(signal.SIGALRM) is not before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.close(fd)
