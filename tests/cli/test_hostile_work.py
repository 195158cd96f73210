"""Hostile words for every option of the verbs of work: tasks, handoffs, journal, rules, effects, numbers, watching.

Each is refused in words, and nothing has changed. `World.run` holds that nothing harmful reaches stdout or stderr.
What events may hold, whoever wrote them, is in tests/ledger/test_hostile_words.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.support import World
from tests.handoff.test_handoff import SAID
from tests.support import COORD, HANDOFF

BAD = b"\x1b[31m\xe2\x80\xae\xff"  # an escape code, a mark that turns text round, a byte that is no text


class Place(NamedTuple):
    world: World
    refs: dict[str, str]


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """alice has t2, and has handed over h6; t5 is open."""
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name), ledger=True)
        world.coord("task", "add", "one")
        assert world.coord("task", "take", "t2").code == 0
        world.coord("task", "add", "two")
        assert world.handoff("new", "--to", "bob", *SAID).code == 0
        yield Place(world, world.refs())


TASK = (
    ("add",), ("add", "x", "--body"), ("add", "x", "--priority"), ("add", "x", "--need"), ("add", "x", "--line"),
    ("add", "x", "--role"), ("add", "x", "--next"), ("add", "x", "--branch"), ("add", "x", "--key"), ("add", "x", "--owner"),
    ("add", "x", "--expect"), ("add", "x", "--attempts"), ("add", "--from"),
    ("take",), ("take", "t5", "--nonce"), ("take", "t5", "--ttl"), ("next", "--nonce"), ("next", "--wait"),
    ("update",), ("update", "t5", "--title"), ("update", "t5", "--body"), ("update", "t5", "--next"),
    ("update", "t5", "--need"), ("update", "t5", "--line"), ("update", "t5", "--role"), ("update", "t5", "--owner"),
    ("update", "t5", "--safe"), ("block", "t2", "--reason"), ("unblock", "t2", "--reason"), ("needs-human", "t2", "--reason"),
    ("release", "t2", "--reason"), ("abandon", "t5", "--reason"), ("reopen", "t5", "--reason"),
    ("review", "t5", "--accept", "--reason"), ("complete", "t2", "--not-done", "none", "-m"),
    ("complete", "t2", "-m", "x", "--not-done"), ("complete", "t2", "--result"), ("fail", "t2", "--reason"),
    ("fail", "t2", "--result"), ("show",), ("join",), ("schema",), ("list", "--state"),
)  # fmt: skip
COORDS = (
    *(("task", *words) for words in TASK),
    ("journal", "add", "-m"), ("journal", "add", "-m", "x", "--task"), ("journal", "add"), ("journal", "--since"),
    ("journal", "--agent"), ("rules",), ("rules", "ack"), ("once", "--forget", "k", "--reason"), ("number",),
    ("number", "n", "--count"), ("watch", "--kind"), ("watch", "--name"), ("watch", "--since"), ("watch", "--interval"),
    ("run", "--as"), ("dispatch", "--max", "1", "--as"),
)  # fmt: skip
HANDOFFS = (
    *(("new", *SAID, option) for option in ("--to", "--task", "--state", "--changed", "--remaining", "--next", "--blockers")),
    ("new", *SAID, "--assumptions"), ("new",), ("new", *SAID, "--path"), ("show",), ("accept",), ("decline", "h6", "--reason"),
    ("withdraw", "h6", "--reason"),
)  # fmt: skip
ROWS = [*((COORD, words) for words in COORDS), *((HANDOFF, words) for words in HANDOFFS)]
COMMANDS = ("once", "run", "dispatch")  # they are told what to run after it


@pytest.mark.parametrize(
    ("argv", "words"), ROWS, ids=lambda value: "-".join(value)[:60] if isinstance(value, tuple) else ""
)
def test_refused_in_words(place: Place, argv: list[str], words: tuple[str, ...]) -> None:
    more = ("--", "true") if words[0] in COMMANDS else ()
    agent = "bob" if words[0] in ("accept", "decline") else "alice"
    done = place.world.run(argv, (*words, BAD, *more), agent)
    assert done.code in (1, 2) and done.err.startswith(("error: ", "usage: ", "Usage: ")), done
    assert done.out == "" and place.world.refs() == place.refs
