"""Whose subagent a conversation is: single rules, and what holds whatever the tool tells in whatever order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.core import delegations
from gitcoord.core.codec import dumps, loads
from gitcoord.core.delegations import (
    AGE,
    CONVERSATIONS,
    EMPTY,
    LONGEST,
    OPEN,
    Delegation,
    Known,
    acted,
    alone,
    began,
    called,
    delegated,
    ended,
    line,
    parse,
    record_of,
)

NOW = 1_790_000_000


def task(id: str, parent: str, process: str = "", at: int = NOW) -> Delegation:
    return Delegation(id, parent, process, at)


def handed_on(*tasks: Delegation) -> Known:
    """These tasks, by conversations that a person began."""
    known = EMPTY
    for one in tasks:
        known = delegated(began(known, one.parent) if one.parent not in known.top else known, one)
    return known


def parents(known: Known, *conversations: str) -> list[str]:
    return [line(known, conversation)[0] for conversation in conversations]


# --- single rules -----------------------------------------------------------------------------------------------------


def test_the_oldest_task_of_one_parent_is_taken_first() -> None:
    known = handed_on(task("d1", "p"), task("d2", "p"))
    for conversation in ("c1", "c2", "c3"):
        known = acted(known, conversation, "", NOW)
    assert [line(known, name) for name in ("c1", "c2", "c3")] == [("p", ("d1",)), ("p", ("d2",)), ("c3", ())]


def test_of_two_parents_none() -> None:
    known = acted(handed_on(task("d1", "p"), task("d2", "q")), "c", "", NOW)
    assert line(acted(ended(known, "d2"), "c", "", NOW), "c") == ("c", ())


def test_a_parent_whose_beginning_was_not_seen_has_none_and_stands_in_the_way() -> None:
    assert parents(acted(delegated(EMPTY, task("d1", "p")), "c", "", NOW), "c") == ["c"]
    assert parents(acted(delegated(handed_on(task("d1", "p")), task("d2", "q")), "c", "", NOW), "c") == ["c"]


@pytest.mark.parametrize(
    ("of_task", "mine", "found"), [("A", "A", "p"), ("A", "B", "c"), ("", "B", "p"), ("A", "", "p")]
)
def test_the_tools_process_where_both_are_known(of_task: str, mine: str, found: str) -> None:
    assert parents(acted(handed_on(task("d1", "p", of_task)), "c", mine, NOW), "c") == [found]


def test_an_hour() -> None:
    known = handed_on(task("d1", "p"))
    assert parents(acted(known, "c", "", NOW + AGE), "c") == ["p"]
    assert parents(acted(known, "c", "", NOW + AGE + 1), "c") == ["c"]
    assert parents(acted(known, "c", "", NOW - AGE), "c") == ["p"]  # the clock was set back
    assert [one.id for one in delegated(known, task("d2", "p", at=NOW + AGE + 1)).open] == ["d2"]


def test_a_task_told_twice_is_one_also_after_it_was_taken() -> None:
    known = handed_on(task("d1", "p"))
    assert delegated(known, task("d1", "p")) == known
    known = acted(known, "c1", "", NOW)
    assert delegated(known, task("d1", "p")) == known


def test_nested() -> None:
    known = acted(handed_on(task("d1", "p")), "c", "", NOW)
    known = acted(delegated(known, task("d2", "c")), "g", "", NOW)
    assert line(known, "g") == ("p", ("d1", "d2"))


def test_one_that_is_sent_on_keeps_its_name() -> None:
    known = acted(handed_on(task("d1", "p")), "c", "", NOW)
    known = delegated(known, task("d2", "p"), resume="c")
    assert (line(known, "c"), called(known, "p", "d2"), known.open) == (("p", ("d1",)), "d1", ())
    assert called(known, "q", "d2") == "d2"
    assert delegated(known, task("d2", "p")) == known


def test_nobody_is_sent_on_by_another() -> None:
    """Neither what a person began, nor what acted alone, nor another's subagent."""
    known = alone(began(acted(handed_on(task("d1", "p")), "c", "", NOW), "q"), "a")
    for resume in ("p", "a", "c"):
        assert delegated(known, task("d2", "q"), resume=resume) == known
    assert [one.id for one in delegated(known, task("d2", "q"), resume="lost").open] == ["d2"]


def test_where_a_person_speaks_is_no_subagent() -> None:
    known = acted(handed_on(task("d1", "p")), "c", "", NOW)
    known = began(known, "c")
    assert line(known, "c") == ("c", ()) and known.top == ("p", "c")


def test_a_new_prompt_ends_what_was_handed_on_and_not_begun() -> None:
    known = handed_on(task("d1", "p"), task("d2", "q"))
    assert [one.id for one in began(known, "p").open] == ["d2"]


def test_more_tasks_than_are_remembered_get_nobody() -> None:
    """To forget one would make another look like the only one."""
    known = handed_on(*(task(f"d{n}", "p") for n in range(OPEN - 1)), task("e", "q"))
    full = delegated(known, task("one more", "p"))
    assert len(full.open) == OPEN
    assert parents(acted(full, "c", "", NOW), "c") == ["c"]


def test_what_is_remembered_is_bounded() -> None:
    known = EMPTY
    for n in range(2 * CONVERSATIONS):
        known = alone(began(known, f"t{n}"), f"a{n}")
        known = acted(delegated(known, task(f"d{n}", f"t{n}")), f"c{n}", "", NOW)
    assert (len(known.top), len(known.alone)) == (CONVERSATIONS, CONVERSATIONS)
    assert len(known.children) == delegations.CHILDREN and known.top[-1] == f"t{2 * CONVERSATIONS - 1}"


def test_ids_that_are_none_are_not_noted() -> None:
    long = "x" * (LONGEST + 1)
    for id in ("", long):
        known = began(alone(EMPTY, id), id)
        assert acted(known, id, "", NOW) == EMPTY
        assert delegated(handed_on(), task(id, "p")) == delegated(EMPTY, task("d", id)) == EMPTY


# --- whatever comes ---------------------------------------------------------------------------------------------------

names = st.sampled_from("pqrs")
ids = st.sampled_from(["d1", "d2", "d3", "d4", "d5"])
processes = st.sampled_from(["", "A", "B"])
steps = st.one_of(
    st.tuples(st.just("began"), names),
    st.tuples(st.just("delegated"), names, ids, processes, st.sampled_from(["", "p", "q", "zz"])),
    st.tuples(st.just("ended"), ids),
    st.tuples(st.just("acted"), names, processes, st.integers(0, 3)),
    st.tuples(st.just("alone"), names),
)


def _after(known: Known, step: tuple[Any, ...]) -> Known:
    kind, *rest = step
    if kind == "delegated":
        parent, id, process, resume = rest
        return delegated(known, task(id, parent, process), resume)
    if kind == "acted":
        conversation, process, hours = rest
        return acted(known, conversation, process, NOW + hours * AGE // 2)
    if kind == "began":
        return began(known, rest[0])
    return ended(known, rest[0]) if kind == "ended" else alone(known, rest[0])


@given(st.lists(steps, max_size=30))
def test_what_holds_whatever_is_told(told: list[tuple[Any, ...]]) -> None:
    known = EMPTY
    for step in told:
        before, known = known, _after(known, step)
        assert parse(loads(dumps(record_of(known)).encode())) == known, "what was written is read again"
        lines = {name: line(known, name) for name in "pqrs"}  # it ends
        for name in "pqrs":
            assert lines[name][0] == name or name not in known.top, "what a person began is nobody's"
            # Never bound after it acted alone, and never two parents: only a person's word changes what was decided.
            if delegations.is_known(before, name) and step[:2] != ("began", name):
                mine = [child.parent for child in before.children if child.conversation == name]
                assert mine == [child.parent for child in known.children if child.conversation == name]
        for child in known.children[len(before.children) :]:
            assert child.parent in before.top or any(other.conversation == child.parent for other in before.children)
            assert child.id in {one.id for one in before.open} - {one.id for one in known.open}


# --- read back --------------------------------------------------------------------------------------------------------

SOUND = record_of(acted(alone(handed_on(task("d1", "p"), task("d2", "p")), "a"), "c", "", NOW))


def _with(**changes: object) -> dict[str, object]:
    return {**SOUND, **changes}


_CHILD = {"conversation": "c", "parent": "p", "id": "d1", "now": "d1"}


@pytest.mark.parametrize(
    "record",
    [
        None, [], {}, {"v": 1}, _with(v=2), _with(more=[]), _with(top="p"), _with(top=[1]), _with(top=["p", "p"]),
        _with(alone=["p"]), _with(alone=["c"]), _with(alone=[""]), _with(open=[{"id": "d2"}]),
        _with(open=[{"id": "d2", "parent": "p", "process": "", "at": True}]),
        _with(open=[{"id": "d1", "parent": "p", "process": "", "at": NOW}]),
        _with(open=[{"id": "d" * (LONGEST + 1), "parent": "p", "process": "", "at": NOW}]),
        _with(children=[_CHILD, _CHILD]), _with(children=[{**_CHILD, "parent": "c"}]),
        _with(children=[{**_CHILD, "parent": "g"}, {**_CHILD, "conversation": "g", "parent": "c", "id": "d3"}]),
        _with(children=[{**_CHILD, "now": ""}]),
    ],
    ids=repr,
)  # fmt: skip
def test_anything_else_is_nothing(record: object) -> None:
    assert parse(SOUND) != EMPTY
    assert parse(record) == EMPTY
