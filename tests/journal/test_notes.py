"""`git coord note`: left on a path, shown once to each agent that works there, and on record as seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcoord.base.errors import UsageError
from gitcoord.journal.events.note import LeaveNote
from gitcoord.journal.events.seen import End, Seen, decide_end
from gitcoord.journal.model import MOST_NOTES, MOST_SEEN, all_notes, unseen
from gitcoord.ledger.event import Decision, Illegal, apply
from gitcoord.ledger.sessions import Actor
from tests.cli.support import World, assert_harmless
from tests.cli.test_json import holds, refused
from tests.guard.protocol import context
from tests.guard.support import Project
from tests.landing.support import Trunk
from tests.ledger.world import World as Rules
from tests.support import COORD, run_command

ALICE, BOB = Actor("alice"), Actor("bob")


def left(rules: Rules, path: str = "src", text: str = "mind the gap", actor: Actor = ALICE, lasts: int = 60) -> int:
    return int(str(rules.must("note", LeaveNote(actor, path, text, lasts)).result["seq"]))


def unseen_by(rules: Rules, agent: str, *paths: str) -> list[int]:
    return [note.seq for note in unseen(rules.state, agent, paths, rules.host.wall())]


# --- the rules


def test_a_note_is_found_on_its_path_above_it_and_below_it() -> None:
    rules = Rules()
    seq = left(rules, "src/lib")
    for path, found in {
        "src/lib": [seq],
        "src": [seq],
        "src/lib/x.py": [seq],
        ".": [seq],
        "src/li": [],
        "doc": [],
    }.items():
        assert unseen_by(rules, "bob", path) == found, path
    assert unseen_by(rules, "alice", "src") == []  # its author knows it


def test_seen_once_and_on_record() -> None:
    rules = Rules()
    seq = left(rules)
    rules.must("seen", Seen(BOB, (("src", seq),)))
    assert unseen_by(rules, "bob", "src") == [] and unseen_by(rules, "carol", "src") == [seq]
    assert [who for who, _ in all_notes(rules.state)[0].seen] == ["bob"]
    assert rules.must("seen", Seen(BOB, (("src", seq), ("gone", 3)))).events == []  # harmless to repeat


def test_it_ends_with_its_time_and_makes_room() -> None:
    rules = Rules()
    for _ in range(MOST_NOTES):
        left(rules)
    assert rules.refused("note", LeaveNote(ALICE, "src", "more", 60)).code == "notes"
    rules.host.advance(60)
    assert unseen_by(rules, "bob", "src") == []
    seq = left(rules)
    assert [note.seq for note in all_notes(rules.state)] == [seq]


def test_a_note_that_very_many_have_seen_ends() -> None:
    rules = Rules()
    seq = left(rules)
    for number in range(MOST_SEEN):
        assert all_notes(rules.state)
        rules.must("seen", Seen(Actor(f"a{number}"), (("src", seq),)))
    assert all_notes(rules.state) == []


def test_its_author_or_a_person_takes_it_away() -> None:
    rules = Rules()
    one, two = left(rules), left(rules)
    with pytest.raises(Exception, match="taken away by alice or by a person"):
        decide_end(rules.state, End(BOB, one), rules.outside())
    for actor, seq in ((ALICE, one), (BOB._replace(person=True), two)):
        rules.commit(decide_end(rules.state, End(actor, seq), rules.outside(nonce=f"n{seq}")))
    assert all_notes(rules.state) == []
    with pytest.raises(UsageError, match="there is no note"):
        decide_end(rules.state, End(ALICE, one), rules.outside())


@pytest.mark.parametrize(
    "changes",
    [{"text": ""}, {"text": "a\x1b[2J"}, {"text": "x" * 3000}, {"path": "../x"}, {"lasts": 0}, {"lasts": 10**9}],
    ids=str,
)
def test_hostile_notes_are_refused_by_the_command_and_in_the_ledger(changes: dict[str, object]) -> None:
    rules = Rules()
    with pytest.raises(UsageError):
        rules.do("note", LeaveNote(ALICE, "src", "t", 60)._replace(**changes))  # type: ignore[arg-type]
    good = rules.decide("note", LeaveNote(ALICE, "src", "t", 60))
    assert isinstance(good, Decision)
    event = good.events[0]
    with pytest.raises(Illegal):
        apply(rules.state, event._replace(body={**event.body, **changes}))


def test_nobody_says_seen_of_what_is_not_there() -> None:
    rules = Rules()
    seq = left(rules)
    said = rules.decide("seen", Seen(BOB, (("src", seq),)))
    assert isinstance(said, Decision)
    event = said.events[0]
    for notes in ([["src", 99]], [["doc", seq]], [], [["src", seq], ["src", seq]]):
        with pytest.raises(Illegal):
            apply(rules.state, event._replace(body={"notes": notes, "end": False}))
    with pytest.raises(Illegal):
        apply(rules.state, event._replace(agent="alice"))


# --- the commands


def test_whoever_claims_is_shown_it_once(world: World) -> None:
    row = holds(world.coord("note", "src/a.py", "-m", "the parser\nstays", "--json"), "noted on a path")
    shown = "note by alice on src/a.py, now:\n    | the parser\n    | stays\n"
    assert shown in world.claim("src", agent="bob").out.replace("1s ago", "now")
    world.claim("release", "src", agent="bob")
    assert "note" not in world.claim("src/a.py", agent="bob").out
    notes = holds(world.coord("note", "--json"), "notes")["notes"]
    assert [(note["seq"], [seen["agent"] for seen in note["seen"]]) for note in notes] == [(row["seq"], ["bob"])]
    assert "seen by bob" in world.coord("note", "src").out and "there are no notes\n" in world.coord("note", "doc").err
    refused(world.coord("note", "--remove", str(row["seq"]), "--json", agent="bob"), "person", 1)
    world.coord("note", "--remove", str(row["seq"]))
    assert holds(world.coord("note", "--json"), "notes")["notes"] == []


def test_a_path_that_does_not_exist_is_named(world: World) -> None:
    there, slip, nowhere = (
        world.coord("note", path, "-m", "mind").err for path in ("src/a.py", "src/aa.py", "nowhere")
    )
    assert "there is no" not in there and "git coord note --remove" in slip
    assert slip.startswith("note: there is no src/aa.py here; did you mean src/a.py?; to take")
    assert nowhere.startswith("note: there is no nowhere here; to take")
    assert world.coord("note", "doc").err == "there are no notes\nnote: there is no doc here\n"


def test_the_claim_tells_it_as_json(world: World) -> None:
    world.coord("note", "src/a.py", "-m", "mind")
    result = holds(world.claim("src/a.py", "--json", agent="bob"), "grant")
    assert [note["text"] for note in result["notes"]] == ["mind"]


def test_a_task_with_its_claims_shows_it(world: World) -> None:
    for title in ("one", "two"):
        world.coord("task", "add", title, "--path", f"src/{title}.py")
        world.coord("note", f"src/{title}.py", "-m", f"mind {title}")
    assert "    | mind one\n" in world.coord("task", "next", agent="bob").out
    row = holds(world.coord("task", "next", "--json", agent="bob"), "assigned")
    assert [note["text"] for note in row["notes"]] == ["mind two"]
    assert "mind" not in world.coord("start", agent="bob").out, "each once"


def test_start_and_an_accepted_handoff_show_it(world: World) -> None:
    world.take("src/a.py", agent="bob")
    world.coord("note", "src/a.py", "-m", "for bob")
    assert (
        "1 note(s) for you on what you hold: git coord note src/a.py"
        in world.coord("start", "--brief", agent="bob").out
    )
    assert "    | for bob\n" in world.coord("start", agent="bob").out
    assert "for bob" not in world.coord("start", agent="bob").out
    said = [
        word for name in ("state", "changed", "remaining", "next") for word in (f"--{name}", "the login form works")
    ]
    offer = world.handoff("new", "--to", "carol", *said, "--json", agent="bob").json
    done = world.handoff("accept", offer["id"], agent="carol")
    assert "    | for bob\n" in done.out


def test_wrong_words(world: World) -> None:
    for words in (
        ["-m", "x"],
        ["@db", "-m", "x"],
        ["src", "-m", "x", "--remove", "3"],
        ["src", "--remove", "3"],
        ["src", "-m", ""],
    ):
        before = world.head
        refused(world.coord("note", *words, "--json"), "usage", 2)
        assert world.head == before
    done = world.coord("note", "src", "-m", "a‮b")
    assert done.code == 2
    assert_harmless(done.err)


def test_the_guard_shows_it_to_whoever_writes_there(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.world.coord("note", "free/x", "-m", "generated:\nedit free/y", agent="alice")
    who = project.speaker("c-one")
    assert 'alice left a note: "generated: / edit free/y"' in context(project.send(who.write("free/x")))
    assert "note" not in context(project.send(who.write("free/x")))
    notes = project.world.coord("note", "--json").json["notes"]
    assert [seen["agent"] for seen in notes[0]["seen"]] == ["claude-cone"]


def test_who_claims_nothing_sees_it_at_the_commit_or_the_landing(world: World) -> None:
    """Paths that are claimed by a landing only are edited without a claim."""
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"src/new.py": "x\n"})
    world.coord("note", "src/new.py", "-m", "mind the gap", agent="bob")
    (tree / "src/new.py").write_text("y\n")
    environ = world.environ("alice", {})
    done = run_command([*COORD, "commit", "-m", "y", "--", "src/new.py"], tree, environ)
    assert b"note by bob on src/new.py" in done.stdout and b"    | mind the gap\n" in done.stdout, done
    assert "mind the gap" not in trunk.land("alice").out, "once"
    for agent, text in (("carol", "one"), ("dave", "two")):
        trunk.branch(agent, {"src/new.py": f"{text}\n"})
    landed = trunk.land("carol", "--json")
    assert [note["text"] for note in holds(landed, "landed")["notes"]] == ["mind the gap"]
    conflict = trunk.land("dave")
    assert conflict.code == 1 and "    | mind the gap\n" in conflict.out, conflict
    assert "seen by alice" in (told := world.coord("note", "--list").out) and "carol" in told and "dave" in told


def test_of_many_and_of_long_notes_the_first_are_shown(world: World) -> None:
    for number in range(12):
        world.coord("note", f"src/{number}", "-m", "\n".join(f"{number}.{line}" for line in range(30)), agent="bob")
    first, second = (world.claim("src", agent="carol").out for _ in range(2))
    assert first.count("note by bob") == 10 and "2 more notes for you: git coord note --list\n" in first
    assert "    | 3.18\n    (the whole note: git coord note src/3)\n" in first and "3.19" not in first
    assert second.count("note by bob") == 2 and "more notes" not in second
    assert "note by bob" not in world.claim("src", agent="carol").out
