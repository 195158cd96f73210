"""Running a shell command that is told something: whether or not it listens."""

import os

import pytest

from gitcoord.store.process import run_shell

ENV = dict(os.environb)


def test_a_command_that_does_not_listen(capfd: pytest.CaptureFixture[str]) -> None:
    """It ends before it was told everything, or closes its input: nothing is written to a descriptor that is closed."""
    for _ in range(5):
        assert run_shell("exit 3", "/", ENV, b"x" * 10, 10) == (3, b"")
    assert run_shell("exec 0<&-; echo deaf", "/", ENV, b"x" * 1_000_000, 10) == (0, b"deaf\n")
    assert capfd.readouterr().err == ""


def test_a_command_that_listens_gets_all_of_it() -> None:
    assert run_shell("wc -c", "/", ENV, b"x" * 1_000_000, 10) == (0, b"1000000\n")


def test_one_that_takes_too_long_is_ended_with_all_that_it_started() -> None:
    assert run_shell("sleep 60 & sleep 60", "/", ENV, b"x" * 1_000_000, 0.2) == (None, b"")
