"""The story of a path: what each event did there, in words, and nothing of what it did elsewhere."""

from __future__ import annotations

import pytest

from gitcoord.base.codec import Record
from gitcoord.base.names import shown
from gitcoord.claims.events.disown import Disown
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.takeover import Takeover
from gitcoord.claims.model import Item
from gitcoord.claims.take import Take
from gitcoord.deploy.events.deploy import Deploy
from gitcoord.effects.events.number import Number
from gitcoord.gates.events.request import Request
from gitcoord.journal.mentions import ANY, named
from gitcoord.journal.story import About, refusals, words
from gitcoord.ledger.event import Decision, Event, encode_event
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.transaction import with_refused
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.stop import Stop
from tests.ledger.test_stateful import HANDING, STEPS, walk
from tests.ledger.world import World, paths

ALICE, BOB, PERSON = Actor("alice"), Actor("bob"), Actor("ada", person=True)
WORK = "1" * 40
CLAIM = {
    "session": 1, "items": [], "mode": "write", "ttl": 1800, "expected": 0, "reason": "", "task": "", "bases": [""], "units": 1,
    "capacity": {},
}  # fmt: skip
JOURNAL = {"text": "text", "paths": [], "task": ""}


def told(world: World, name: str, *, case: bool = False) -> list[str]:
    (item,) = paths(name)
    about = About(item, case=case)
    return [line for event in world.events() for line in telling(event, about)]


def telling(event: Event, about: About) -> list[str]:
    """The lines about an event. An event that has any must have one of the index's marks."""
    lines = [*refusals(event, about), *words(event, about)]
    line, marks = named(encode_event(event)), about.marks()
    found = ANY in line or any(mark.lower().encode() in line for mark in marks)
    assert not lines or not marks or found, (lines, marks, line)
    return lines


def _take_after(world: World, refused: tuple[Record, ...], command: Take) -> None:
    """The claim of an agent that was refused these before."""
    answer = world.decide("claim", command)
    assert isinstance(answer, Decision)
    world.commit(with_refused(answer, refused))


def test_a_whole_life() -> None:
    world = World()
    refused = ({"path": "src", "holder": "alice", "count": 2}, {"path": "x", "holder": "[guard]", "count": 1})
    world.must("claim", Take(ALICE, paths("src", "docs"), reason="fix", task="T-1", expected=600))
    _take_after(world, refused, Take(BOB, paths("other")))
    world.head, world.changed = WORK, {"src": [["src/a.py", "100644", "b" * 40], ["src/b.py", "100644", "c" * 40]]}
    world.must("release", Release(ALICE, paths("src", "docs")))
    world.must("claim", Take(BOB, paths("src/a.py"), mode="intent"))
    world.host.ticks += 10_000_000
    world.must("claim", Take(ALICE, paths("src/a.py")))
    token = world.claims("alice")[0].token
    world.must("takeover", Takeover(PERSON, Item("path", "src/a.py"), token, "urgent"))
    world.must("disown", Disown(PERSON, "src/a.py", "rewritten"))
    world.must("stop", Stop(PERSON))
    assert told(world, "src/a.py") == [
        "alice claimed src for task T-1, expecting to need 10m: fix",
        "bob had been refused 2 times before this, since alice held src",
        "alice released src with commit 111111111111",
        "bob claimed it with intent",
        "bob lost it: expired after 30m without activity; alice asked",
        "alice claimed it",
        "ada took it away from alice: urgent",
        "ada claimed it: urgent",
        "ada disowned the work that was released on it: rewritten",
        "ada released it unchanged",
    ]
    assert told(world, "src")[2] == "alice released it with commit 111111111111 (changed: src/a.py, src/b.py)"
    assert told(world, "docs") == [
        "alice claimed it for task T-1, expecting to need 10m: fix", "alice released it unchanged",
    ]  # fmt: skip
    assert told(world, "x") == ["bob had been refused once before this, by the rule guard"]
    assert told(world, "srcs") == [] == told(world, "@src")


def test_kills_deploys_requests_and_what_is_no_path() -> None:
    world = World()
    world.must("claim", Take(ALICE, paths("a", "@deploy/production")))
    token = world.claims("alice")[0].token
    row = {"path": "a", "mode": "100644", "blob": "c" * 40, "rule": "guard", "commit": "", "bases": []}
    world.must("request", Request(ALICE, (row,)))
    world.must("deploy", Deploy(ALICE, "production", WORK, "ok", 0, 0, token))
    world.must("number", Number(ALICE, "a"))
    world.must("kill", Kill(BOB._replace(person=True), "alice", "astray"))
    assert told(world, "a") == [
        "alice claimed it", "alice asked a person to approve it as cccccccccccc (guard)",
        "bob killed alice: it was freed: astray",
    ]  # fmt: skip
    assert told(world, "@deploy/production") == [
        "alice claimed it", "alice deployed 111111111111 to production: ok", "alice released it unchanged",
    ]  # fmt: skip


def test_case_is_folded_as_the_ledger_does() -> None:
    world = World(fold_case=True)
    world.must("claim", Take(ALICE, paths("SRC/App.py")))
    assert told(world, "src/app.PY", case=True) == ["alice claimed it"]
    assert told(world, "src/app.PY") == []


def test_hostile_names_and_reasons_are_shown_harmlessly() -> None:
    world = World()
    world.must("claim", Take(ALICE, paths("a\x1b[31m/\u202eb"), reason="\x1b]0;x\x07"))
    refused = ({"path": "a\x1b[31m", "holder": "\x1b[2J", "count": 1},)
    _take_after(world, refused, Take(BOB, paths("z")))
    lines = told(world, "a\x1b[31m")
    assert len(lines) == 2 and all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"claims": [["path", "a/b", 3]]}, True), ({"claims": [["resource", "a", 3]]}, False), ({"paths": ["a"]}, True),
        ({"paths": ["b"]}, False), ({"path": "a/c"}, True), ({"rows": [{"path": "a", "space": "resource"}]}, False),
        ({"rows": [{"path": 1}], "paths": [1], "x": [[1, 2], "path", ["path"]]}, False),
    ],
)  # fmt: skip
def test_kinds_that_are_told_by_their_subject(
    body: dict[str, object], found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for any name of a path in later kinds."""

    class Later:
        @staticmethod
        def subject(event: Event) -> str:
            return f"later by {event.agent}\x1b"

    monkeypatch.setattr("gitcoord.journal.story.kind_of", lambda kind: Later)
    event = Event("later", 9, "alice", 0, "n", 0, body)
    assert words(event, About(Item("path", "a"), case=False)) == (["later by alice\\x1b"] if found else [])


@pytest.mark.parametrize("among", [STEPS, HANDING])
def test_whatever_an_event_tells_it_is_found_by(among: tuple[str, ...]) -> None:
    """Marks are looked for in the index, and only what is found there is decoded: nothing may be missed."""
    told = 0
    for seed in range(3):
        events = walk(seed, 200, among).events()
        named = {tuple(pair) for event in events for pair in event.body.get("items", ())}
        for item in (Item(*pair) for pair in named):
            about = About(item, case=False)
            told += sum(len(telling(event, about)) for event in events)
    assert told > 100


NAMES = (
    "src/App.py", "SRC/app.PY", "src", "SRC", "src/app.py/below", "K", "\u212a", "stra\u00dfe", "STRASSE", "a\u0308/x", "\u00e4/x",
    'qu"ote', "back\\slash", "tab\t", "caf\udce9", "@home", "src/a.py",
)  # fmt: skip


@pytest.mark.parametrize("case", [False, True])
@pytest.mark.parametrize("asked", NAMES)
def test_it_is_found_however_it_is_spelled(asked: str, case: bool) -> None:
    for space in ("path", "resource"):
        about = About(Item(space, asked), case=case)
        for name in NAMES:
            body = {**CLAIM, "items": [[space, name]]}
            telling(Event("claim", 2, "bob", 0, "n", 0, body), about)
            refused = ({"path": shown(name, space), "holder": "carol", "count": 1},)
            telling(Event("journal", 2, "bob", 0, "n", 0, JOURNAL, None, refused), about)
        assert telling(Event("claim", 2, "bob", 0, "n", 0, {**CLAIM, "items": [[space, asked]]}), about)


def test_what_is_about_everything_has_no_mark() -> None:
    assert About(Item("path", "."), case=False).marks() == []
    assert About(Item("path", "/".join("a" * 500)), case=False).marks() == []
