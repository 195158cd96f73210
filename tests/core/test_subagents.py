"""Which subagent acts in its parent's conversation: single rules, and what holds whatever the tool tells in whatever order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.core.codec import dumps, loads
from gitcoord.core.subagents import AGE, EMPTY, LONGEST, OPEN, Run, Runs, acting, called, ended, id_of, parse, record_of

NOW = 1_790_000_000


def calls(*names: str, at: int = NOW) -> Runs:
    runs = EMPTY
    for name in names:
        runs = called(runs, name, at)
    return runs


def test_one_that_is_called_acts_until_it_is_over() -> None:
    assert acting(EMPTY, NOW) == ""
    runs = calls("generalist")
    assert acting(runs, NOW) == "generalist1"
    assert acting(ended(runs, "generalist"), NOW) == ""


def test_two_in_a_row_are_two() -> None:
    runs = called(ended(calls("generalist"), "generalist"), "generalist", NOW)
    assert acting(runs, NOW) == "generalist2"


def test_of_two_at_once_nobody_can_tell() -> None:
    runs = calls("generalist", "reviewer")
    assert acting(runs, NOW) == ""
    assert acting(ended(runs, "generalist"), NOW) == "reviewer2"
    assert acting(ended(runs, "reviewer"), NOW) == "generalist1"


def test_of_two_with_one_name_the_older_one_is_over_first() -> None:
    assert acting(ended(calls("generalist", "generalist"), "generalist"), NOW) == "generalist2"


def test_the_end_of_one_that_was_not_called_ends_nobody() -> None:
    runs = calls("generalist")
    assert ended(runs, "reviewer") == runs and ended(EMPTY, "generalist") == EMPTY


def test_after_an_hour_it_is_over() -> None:
    runs = calls("generalist")
    assert acting(runs, NOW + AGE) == "generalist1" and acting(runs, NOW + AGE + 1) == ""
    assert acting(called(runs, "reviewer", NOW + AGE + 1), NOW + AGE + 1) == "reviewer2"
    assert called(runs, "reviewer", NOW + AGE + 1).open == (Run(2, "reviewer", NOW + AGE + 1),)


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("codebase_investigator", "codebaseinv1"),
        ("Code Reviewer", "codereviewer"[:11] + "1"),
        ("agent1", "agent1"),  # as 'agent' would be: a number at the end could be taken for ours
        ("", "agent1"),
        ("\u00fc\u00df/..", "agent1"),
        ("lock", "lock1"),
    ],
)
def test_what_it_is_called_by(name: str, id: str) -> None:
    runs = calls(name)
    assert acting(runs, NOW) == id
    assert acting(ended(runs, name), NOW) == ""


def test_a_long_number_shortens_the_name() -> None:
    assert id_of(Run(12345, "codebaseinves", NOW)) == "codebas12345"
    assert id_of(Run(12345, "codeba7einves", NOW)) == "codeba12345"


def test_too_many_at_once_are_still_more_than_one() -> None:
    runs = calls(*["generalist"] * (OPEN + 3))
    assert len(runs.open) == OPEN and acting(runs, NOW) == ""


# --- whatever is told -------------------------------------------------------------------------------------------------

NAMES = ("generalist", "generalist2", "codebase_investigator", "")
STEPS = st.lists(st.tuples(st.sampled_from(("call", "end")), st.sampled_from(NAMES), st.integers(0, 900)), max_size=40)


@given(STEPS)
def test_no_two_have_one_name_and_all_of_it_is_remembered(steps: list[tuple[str, str, int]]) -> None:
    runs, now = EMPTY, NOW
    met: dict[str, int] = {}
    for what, name, passes in steps:
        now += passes
        runs = called(runs, name, now) if what == "call" else ended(runs, name)
        for run in runs.open:
            assert met.setdefault(id_of(run), run.number) == run.number and len(id_of(run)) <= LONGEST
        assert parse(loads(dumps(record_of(runs)).encode())) == runs
        acts = acting(runs, now)
        assert not acts or [id_of(run) for run in runs.open if now - run.at <= AGE] == [acts]


def sound() -> dict[str, Any]:
    return record_of(calls("generalist", "reviewer"))


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"last": -1},
        {"last": 1},  # a number that was never given out
        {"last": 10**9},
        {"more": 1},
        {"open": [{"number": 1, "agent": "a b", "at": NOW}]},
        {"open": [{"number": 1, "agent": "", "at": NOW}]},
        {"open": [{"number": 1, "agent": "a1", "at": NOW}]},
        {"open": [{"number": 1, "agent": "a" * 13, "at": NOW}]},
        {"open": [{"number": 0, "agent": "a", "at": NOW}]},
        {"open": [{"number": 1, "agent": "a", "at": NOW}] * 2},
        {"open": [{"number": 1, "agent": "a"}]},
    ],
)
def test_what_could_not_have_been_written_here_is_nothing(change: dict[str, Any]) -> None:
    assert parse(sound()) == calls("generalist", "reviewer")
    assert parse({**sound(), **change}) == EMPTY


@pytest.mark.parametrize("record", [None, [], "x", {}, {"v": 1}])
def test_what_is_no_record_is_nothing(record: object) -> None:
    assert parse(record) == EMPTY
