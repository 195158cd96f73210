"""Hostile words in every field of every event of tasks, handoffs, journal, effects, numbers and rules.

One history holds an event of each kind. Whatever a text in one of them is replaced with, the event is refused, or what it
leaves can be read back and upsets no terminal: a field that is not named below holds no character that cannot be printed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from gitcoord.base.codec import decode_file, encode_file
from gitcoord.base.errors import GitcoordError
from gitcoord.claims.take import Take
from gitcoord.effects.events.done import Done
from gitcoord.effects.events.forget import Forget
from gitcoord.effects.events.number import Number
from gitcoord.effects.events.once import Once
from gitcoord.gates.events.ack import Ack
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.close import Close
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.journal.events.journal import Write
from gitcoord.ledger.event import Event, apply, decode_event, effects, encode_event
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.tasks.events.assign import Assign
from gitcoord.tasks.events.lapse import Collect
from gitcoord.tasks.events.revise import Revise
from gitcoord.tasks.events.task import New
from tests.handoff.test_handoff_rules import SAID
from tests.ledger.world import paths
from tests.tasks.test_task_rules import ADA, Queue, worker

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = (
    "task", "assign", "lapse", "revise", "finish", "handoff", "accept", "close", "journal", "number", "once", "done",
    "forget", "ack",
)  # fmt: skip
WORDS = {
    "colour": "\x1b[31mred", "title": "\x1b]0;owned\x07", "c1": "a\x9b31mb", "bell": "a\x07", "return": "a\rb", "nul": "a\0b",
    "bidi": "abc\u202edef", "isolate": "a\u2066b", "invisible": "a\u200bb", "line separator": "a\u2028b",
    "half a pair": "\ud800", "trailers": "x\n\nSeq: 1\nKind: halt\n", "front matter": "---\nstate: done\n---\n\nx",
    "fence": "x\n---\n", "heading": "## State\n\nx", "comment": "<!-- x", 
    "link": "[here](javascript:alert(1))", "path": "../../format", "option": "--exec=x", "empty": "",
}  # fmt: skip
# Names of files are kept as they are, whatever they are, and shown by `printable`.
FILE_NAMES = {
    ("task", "paths"), ("revise", "paths"), ("handoff", "path"), ("handoff", "dirty"), ("handoff", "diffstat"),
    ("journal", "paths"), ("accept", "items"), ("accept", "path"),
}  # fmt: skip


@cache
def samples() -> dict[str, tuple[State, Event]]:
    """An event of each kind, and the state before it."""
    world = Queue()
    alice, bob = worker("alice"), worker("bob")
    facts = {
        "branch": "b", "head": "1" * 40, "commits": [["2" * 40, "subject"]], "diffstat": [["src/x", 1, 2]],
        "dirty": ["src/y"], "unpushed": 1,
    }  # fmt: skip
    first, _, third = world.add(
        New("a", "body", paths=paths("src"), line="api", role="", next="look", branch="b", key="k"),
        New("b", owner="alice", needs=("k",)),
        "c",
    )
    world.must("revise", Revise(Actor("boss"), third, {"title": "d", "text": "t\n", "next": "n"}, "blocked", "", "why"))
    world.must("revise", Revise(ADA, third, {}, "unblock", "", "why"))
    world.must("assign", Assign(alice, first))
    world.must("handoff", Offer(alice, SAID, to="bob", task=first, facts=facts))
    world.must("accept", Accept(bob, f"h{world.state.seq}"))
    record = {"summary": "s", "not_done": ["n"], "done": ["d"], "commits": ["1" * 40], "files": ["f"], "notes": "x"}
    world.must("claim", Take(bob, paths("docs")))
    world.finish("bob", first, record=record)
    world.must("handoff", Offer(bob, SAID, role="docs"))
    world.must("close", Close(bob, f"h{world.state.seq}", "withdrawn", "why"))
    world.must("assign", Assign(alice, third))
    world.host.advance(95)
    world.must("lapse", Collect(Actor("boss")))
    world.must("journal", Write(alice, "words", ("src/a",), "t2"))
    world.must("number", Number(alice, "migrations", 1, 0))
    world.must("once", Once(bob, "mail/1"))
    world.must("done", Done(bob, "mail/1", world.state.seq, 0))
    world.must("forget", Forget(ADA, "mail/1", "why"))
    world.must("ack", Ack(alice, "1" * 40))
    found: dict[str, tuple[State, Event]] = {}
    state = State()
    for event in world.events():
        found[event.kind] = (state, event)
        state = apply(state, event)
    return found


def leaves(value: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """(the nearest name, a function that gives the whole with another text there) for each text below."""
    if isinstance(value, str):
        yield field, lambda new: new
    elif isinstance(value, dict):
        for key, part in value.items():
            for name, swap in leaves(part, key):
                yield name, lambda new, key=key, swap=swap: {**value, key: swap(new)}
    elif isinstance(value, list):
        for index, part in enumerate(value):
            for name, swap in leaves(part, field):
                yield name, lambda new, i=index, swap=swap: [*value[:i], swap(new), *value[i + 1 :]]


def texts(value: Any, field: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [row for key, part in value.items() for row in texts(part, key)]
    if isinstance(value, list):
        return [row for part in value for row in texts(part, field)]
    return [(field, value)] if isinstance(value, str) else []


def outcome(state: State, event: Event) -> str:
    """'' where the event is refused; else what it leaves, after it was held to be harmless."""
    try:
        message = encode_event(event)
        event = decode_event(message)
        changes = effects(state, event)
        files = {key: encode_file(key, record) for key, record in changes.items() if record is not None}
    except GitcoordError:
        return ""
    subject, *_ = message.decode().split("\n")
    assert subject.isprintable() and len(subject) <= 100
    for key, data in files.items():
        assert decode_file(key, data) == changes[key], f"{key} is not what was written"
    for field, text in texts(event.body):
        if (event.kind, field) not in FILE_NAMES:
            assert text.replace("\n", "").replace("\t", "").isprintable(), (event.kind, field, text[:40])
    return "kept"


@pytest.mark.parametrize(
    ("kind", "field"), [("task", "title"), ("journal", "paths"), ("handoff", "state"), ("close", "reason")]
)
def test_10_megabytes(kind: str, field: str) -> None:
    state, event = samples()[kind]
    (swap, *_) = [swap for name, swap in leaves(event.body) if name == field]
    assert not outcome(state, event._replace(body=swap("x" * 10_000_000)))


def test_every_kind_is_there() -> None:
    assert set(samples()) >= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_any_text_of_an_event(kind: str) -> None:
    state, event = samples()[kind]
    assert outcome(state, event) == "kept", "as it was made it is fine"
    fields = list(leaves(event.body))
    kept = set()
    for field, swap in fields:
        for name, word in WORDS.items():
            if outcome(state, event._replace(body=swap(word))):
                kept.add((field, name))
    for field, swap in {field: swap for field, swap in fields}.items():
        assert not outcome(state, event._replace(body=swap("x" * 1_000_000))), f"{field} is too long to be read"
    if kind in ("assign", "lapse", "number", "once", "done", "ack"):
        assert not {name for _, name in kept} - {"empty", "link", "path", "option", "comment", "heading"}, kept
