"""The pure rule about the version of a file that an agent last saw: every order of reads, permissions, writes, reports.

A write empties the file before it fills it, as many tools do. An agent that is allowed to write has read the content.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gitcoord.base.codec import dumps, loads
from gitcoord.guard.seen import (
    MAX_AGENTS,
    PENDING_SECONDS,
    Conflict,
    FileState,
    begin_write,
    checked,
    empty,
    end_write,
    note_read,
)

NOW = 1_900_000_000


class World:
    """One file as a list of edits, and agents that read it, write it back with one more, and are refused."""

    def __init__(self, tells: tuple[bool, bool]) -> None:
        self.record = empty()
        self.content: tuple[str, ...] = ("first",)
        self.now = NOW
        self.changed = NOW - 100
        self.known: dict[str, tuple[str, ...]] = {}
        self.writing: dict[str, tuple[str, ...]] = {}
        self.half: set[str] = set()
        self.done: list[str] = []
        self.tells = dict(zip("AB", tells))
        self.number = 0

    @property
    def look(self) -> FileState:
        return FileState(f"{self.changed}000000000:{len(self.content)}:1", dumps(list(self.content)))

    def step(self, agent: str) -> None:
        """The next thing that this agent does."""
        if agent in self.half:  # the rest of its write, and its word that it is over
            self.half.discard(agent)
            self.content = self.writing.pop(agent)
            self.changed = self.now
            if self.tells[agent]:
                end_write(self.record, agent, self.look, self.now, failed=False)
            self.known.pop(agent)
        elif agent in self.writing:
            self.half.add(agent)
            self.content, self.changed = (), self.now
        elif agent not in self.known:
            note_read(self.record, agent, self.look, self.now)
            self.known[agent] = self.content
        elif begin_write(self.record, agent, self.look, self.now) is None:
            self.number += 1
            edit = f"{agent}{self.number}"
            self.writing[agent] = (*self.known[agent], edit)
            self.done.append(edit)
        else:
            del self.known[agent]  # it reads again
        self.record = checked(loads(dumps(self.record).encode()))


@given(steps=st.lists(st.sampled_from("ABABAB+"), max_size=40), tells=st.tuples(st.booleans(), st.booleans()))
@settings(max_examples=400)
def test_no_edit_is_lost_in_any_order(steps: list[str], tells: tuple[bool, bool]) -> None:
    world = World(tells)
    for step in steps:
        if step == "+" and not world.half:  # from emptying a file to filling it no time passes
            world.now += 1 if world.writing else 5  # and whoever was allowed to write does so within a minute
        elif step == "+":
            continue
        else:
            world.step(step)
    for agent in list(world.writing):
        while agent in world.writing:
            world.step(agent)
    assert set(world.done) <= set(world.content)


def look(text: str, at: int = NOW - 100) -> FileState:
    return FileState(f"{at}000000000:{len(text)}:1", text)


def test_a_formatter_traps_nobody() -> None:
    record = empty()
    note_read(record, "B", look("old"), NOW)
    assert begin_write(record, "A", look("old"), NOW) is None
    end_write(record, "A", look("new"), NOW, failed=False)
    assert begin_write(record, "A", look("formatted"), NOW) is None


def test_an_intent_that_comes_to_nothing_is_forgotten() -> None:
    record = empty()
    assert begin_write(record, "B", look("old"), NOW) is None
    assert begin_write(record, "A", look("old"), NOW + 1) == Conflict("B", True)
    assert begin_write(record, "A", look("old"), NOW + PENDING_SECONDS) is None


def test_a_failed_write_is_over() -> None:
    record = empty()
    assert begin_write(record, "B", look("old"), NOW) is None
    end_write(record, "B", look("old"), NOW, failed=True)
    assert begin_write(record, "A", look("old"), NOW) is None


def test_what_is_kept_is_bounded_and_sound() -> None:
    record = empty()
    for number in range(MAX_AGENTS * 2):
        note_read(record, f"a{number}", look("x"), NOW)
    assert len(record["rows"]) == MAX_AGENTS and "a0" not in record["rows"]
    for bad in (None, 7, {"v": 1, "n": 1, "rows": {"a": {}}}, {"v": 2, "n": 1, "rows": {}}):
        assert checked(bad) == empty()
