"""Shell commands with input, whether or not they read it."""

from __future__ import annotations

import os
import subprocess

import pytest

from gitcoord.git.long_process import run_shell, traffic
from gitcoord.git.process import Child

ENV = dict(os.environb)


def test_a_command_that_does_not_listen(capfd: pytest.CaptureFixture[str]) -> None:
    """It ends before it has read everything, or closes its input: nothing is written to a closed descriptor."""
    for _ in range(5):
        assert run_shell("exit 3", "/", ENV, b"x" * 10, 10) == (3, b"")
    assert run_shell("exec 0<&-; echo deaf", "/", ENV, b"x" * 1_000_000, 10) == (0, b"deaf\n")
    assert capfd.readouterr().err == ""


def test_a_command_that_listens_gets_all_of_it() -> None:
    assert run_shell("wc -c", "/", ENV, b"x" * 1_000_000, 10) == (0, b"1000000\n")


def test_one_that_takes_too_long_is_ended_with_all_that_it_started() -> None:
    assert run_shell("sleep 60 & sleep 60", "/", ENV, b"x" * 1_000_000, 0.2) == (None, b"")


def test_what_a_child_said_is_not_written_over_by_what_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receive-pack outlives the push that gave up, and has words of its own, at the place that both share."""
    child = Child(["sh", "-c", "echo it gave up >&2"], dict(os.environb))
    child.wait()
    seek = os.lseek

    def moved(fd: int, position: int, whence: int) -> int:
        place = seek(fd, position, whence)
        os.write(fd, b"the remote end hung up unexpectedly\n")  # in that moment
        return place

    monkeypatch.setattr("posix.lseek", moved)
    assert child.complaint() == "it gave up"
    os.write(child._err, b"later\n")
    assert child.complaint() == "it gave up\nlater"
    child.close()


def test_a_process_that_has_ended_has_moved_nothing() -> None:
    """One may end between the list of descendants and the look at it: no reason to fail a transfer that goes on."""
    with subprocess.Popen(["true"]) as process:
        pass
    assert traffic(process.pid) == 0
    assert traffic(os.getpid()) > 0
