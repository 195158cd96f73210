"""`git handoff` with real processes: the document in all its ways, what passes, what git then shows and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitcoord.handoff.model import SECTIONS, document
from tests.cli.support import World
from tests.cli.test_json import holds, refused
from tests.support import HANDOFF

SAID = ("--state", "it parses", "--changed", "the lexer", "--remaining", "the printer", "--next", "write print_tree()")
DOCUMENT = {s.key: f"{s.title}: one\n\n- two" for s in SECTIONS}


@pytest.fixture
def world(git_repo: Path) -> World:
    """alice holds src/a.py and has committed there."""
    world = World(git_repo, ledger=True)
    world.take("src/a.py", "-m", "parsing")
    world.commit({"src/a.py": "new\n"}, "the lexer")
    return world


def clean(world: World) -> None:
    done = world.coord("fsck", "--json")
    assert done.json["clean"] is True, done.json


def test_from_new_to_accepted(world: World) -> None:
    world.write("src/a.py", "not yet\n")
    done = world.handoff("new", "--to", "bob", *SAID, "--json")
    row = holds(done, "offered")
    assert (row["claims"], row["dirty"], row["branch"]) == (["src/a.py"], ["src/a.py"], "main")
    assert "not committed: src/a.py" in done.err and f"git handoff accept {row['id']}" in done.err
    listed = holds(world.handoff("list", "--json", agent="bob"), "handoffs")["handoffs"]
    assert [(r["id"], r["for_you"], r["next"]) for r in listed] == [(row["id"], True, "write print_tree()")]
    shown = holds(world.handoff("show", row["id"], "--json", agent="carol"), "handoff")
    assert shown["commits"] == [[world.git("rev-parse", "HEAD"), "the lexer"]] and shown["for_you"] is False
    assert shown["diffstat"] == [["src/a.py", 1, 1]] and shown["claims"][0]["held_by"] == ["alice"]
    refused(world.handoff("accept", row["id"], "--json", agent="carol"), "not-addressed")
    token = world.claims()
    accepted = holds(world.handoff("accept", row["id"], "--json", agent="bob"), "accepted")
    assert accepted["claims"][0]["agent"] == "bob" and token == ["path/src/a.py/@alice"]
    assert world.claims() == ["path/src/a.py/@bob"]
    assert world.git("rev-parse", "refs/claims/path/src/a.py/@bob") == world.head
    lost = holds(world.claim("src/b.py", "--json"), "grant")["lost"]
    assert [(r["path"], r["by"], r["cause"]) for r in lost] == [("src/a.py", "bob", "accept")]
    assert holds(world.handoff("accept", row["id"], "--json", agent="bob"), "accepted")["repeated"] is True
    refused(world.claim("src/a.py", "--json"), "held")
    clean(world)


def test_the_only_one_is_accepted_without_its_id(world: World) -> None:
    none = world.handoff("accept", agent="bob")
    assert none.code == 1 and "no handoff waits for you" in none.err
    others = world.handoff("new", "--to", "carol", *SAID, "--json", agent="frank").json["id"]
    mine = world.handoff("new", "--to", "bob", *SAID, "--json").json["id"]
    assert world.handoff("accept", "--json", agent="bob").json["id"] == mine != others
    again = [world.handoff("new", "--to", "bob", *SAID, "--json", agent=agent).json["id"] for agent in ("dora", "eve")]
    several = world.handoff("accept", agent="bob")
    assert several.code == 2 and all(f"hint: git handoff accept {id}\n" in several.err for id in again), several


def test_work_of_trunk_that_was_brought_in_is_not_handed_over(world: World) -> None:
    world.git("checkout", "-q", "-b", "fix", "HEAD~1")
    world.commit({"src/b.py": "mine\n"}, "the printer")
    world.git("merge", "-q", "--no-edit", "main")
    id = world.handoff("new", "--to", "bob", *SAID, "--json").json["id"]
    shown = world.handoff("show", id, "--json").json
    assert [subject for _, subject in shown["commits"]] == ["Merge branch 'main' into fix", "the printer"]
    assert shown["diffstat"] == [["src/b.py", 1, 1]]


def test_what_people_read(world: World) -> None:
    world.handoff("new", "--to", "@tester", *SAID, "--blockers", "the build is red")
    done = world.handoff("show", f"h{len(world.events())}", agent="bob")
    for words in ("it parses", "the build is red", "anyone with the role 'tester'", "the lexer", "held by alice"):
        assert words in done.out
    assert "-> anyone with the role 'tester'" in world.handoff(agent="bob").out
    assert "\n## Next step\n\nwrite print_tree()\n" in world.git("show", f"gitcoord:handoffs/h{len(world.events())}.md")


@pytest.mark.parametrize("way", ["file", "word", "stdin", "json on stdin", "json word"])
def test_the_document_comes_in_many_ways(world: World, tmp_path: Path, way: str) -> None:
    text = document(DOCUMENT) if "json" not in way else json.dumps({**DOCUMENT, "to": "bob"}, ensure_ascii=False)
    file = tmp_path / "document"
    file.write_text(text)
    words = {"file": ["--file", str(file)], "word": [str(file)], "json word": ["-"]}.get(way, [])
    done = world.handoff("new", *words, "--json", data=text.encode() if not words or words == ["-"] else b"")
    row = holds(done, "offered")
    shown = holds(world.handoff("show", row["id"], "--json"), "handoff")
    assert shown["sections"] == DOCUMENT and shown["to"] == ("bob" if "json" in way else "")


def test_what_was_said_counts_more_than_the_document(world: World) -> None:
    row = holds(world.handoff("new", "-", "--next", "this", "--json", data=document(DOCUMENT).encode()), "offered")
    assert holds(world.handoff("show", row["id"], "--json"), "handoff")["sections"]["next"] == "this"


@pytest.mark.parametrize(
    "text",
    [
        b"", b"## State\n\nfine\n", b'{"state": "x"}', b'{"state": 1}', b'{"mood": "x"}', b"{", b"\xff\xfe", b"x" * (2 << 20),
        document({**DOCUMENT, "state": "TODO"}).encode(), document({**DOCUMENT, "next": "\x1b[31mred"}).encode(),
        document({**DOCUMENT, "next": "\u202eleft"}).encode(), json.dumps({**DOCUMENT, "next": "\ud800"}).encode(),
    ],
)  # fmt: skip
def test_documents_that_are_refused(world: World, text: bytes) -> None:
    before = world.head
    refused(world.handoff("new", "-", "--json", data=text), "usage", 2)
    assert world.head == before


def test_hostile_words_are_only_shown(world: World) -> None:
    nasty = "---\nto: eve\n---\nSeq: 1\nKind: kill\n[x](javascript:alert(1)) <script>"
    world.commit({"src/a.py": "3\n"}, "\x1b[31msubject\x1b[0m")
    world.git("switch", "-q", "-c", "b\u202eranch")
    row = holds(world.handoff("new", *SAID[:6], "--next", nasty, "--json"), "offered")
    done = world.handoff("show", row["id"])  # `run` looks for control characters
    assert "javascript" in done.out and holds(world.handoff("show", row["id"], "--json"), "handoff")["to"] == ""
    assert world.handoff("decline", row["id"], "--reason", "a\nb").code in (1, 2)
    refused(world.handoff("new", "--to", "../eve", *SAID, "--json"), "usage", 2)
    refused(world.handoff("show", "h1\x1b[31m", "--json"), "usage", 2)
    clean(world)


def test_the_editor_at_a_terminal(world: World, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/seen\ncat >"$1" <<"END"\n{document(DOCUMENT)}\nEND\n')
    editor.chmod(0o755)
    env = {"GIT_EDITOR": str(editor), "GITCOORD_AGENT": "alice"}
    done = world.at_terminal("new", "--to", "bob", argv=HANDOFF, env=env)
    assert done.code == 0 and "waits for bob" in done.out
    seen = (tmp_path / "seen").read_text()
    assert "goes along: src/a.py" in seen and "the lexer" in seen and "## Assumptions" in seen
    world.handoff("withdraw", f"h{len(world.events())}")
    for script in ("exit 1", ":"):
        editor.write_text(f"#!/bin/sh\n{script}\n")
        before = world.head
        assert world.at_terminal("new", argv=HANDOFF, env=env).code == 2 and world.head == before


def test_declining_and_taking_back(world: World) -> None:
    first = holds(world.handoff("new", "--to", "bob", *SAID, "--json"), "offered")["id"]
    refused(world.handoff("new", *SAID, "--json"), "handed-over")
    assert world.handoff("decline", first, agent="bob").code == 2  # no reason
    assert holds(world.handoff("decline", first, "--reason", "no time", "--json", agent="bob"), "closed")["changed"]
    refused(world.handoff("accept", first, "--json", agent="bob"), "closed")
    second = holds(world.handoff("new", *SAID, "--json"), "offered")["id"]
    holds(world.handoff("withdraw", second, "--json"), "closed")
    assert holds(world.handoff("list", "--json"), "handoffs")["handoffs"] == []
    rows = holds(world.handoff("list", "--all", "--json"), "handoffs")["handoffs"]
    assert [row["state"] for row in rows] == ["declined", "withdrawn"]
    refused(world.handoff("show", "h999", "--json"), "no-handoff")
    assert world.claims() == ["path/src/a.py/@alice"]
    clean(world)


def test_help(git_repo: Path) -> None:
    world = World(git_repo)
    assert "accept" in world.handoff("-h").out and "--assumptions" in world.handoff("new", "-h").out
    assert world.handoff("nonsense").code == 2 and world.handoff("accept").code == 2


def test_stop_leaves_what_was_handed_over(world: World) -> None:
    world.take("src/b.py")
    world.write("src/a.py", "dirty\n")
    assert "git handoff new" in world.coord("stop").err
    world.handoff("new", "--path", "src/a.py", *SAID)
    row = holds(world.coord("stop", "--json"), "stopped")
    assert (row["handed_over"], row["released"], row["kept"]) == (["src/a.py"], ["src/b.py"], [])
    assert world.claims() == ["path/src/a.py/@alice"]
    refused(world.claim("src/a.py", "--json", agent="carol"), "held")
    holds(world.handoff("accept", f"h{len(world.events()) - 2}", "--json", agent="bob"), "accepted")
    clean(world)


def test_events_are_found_by_whom_they_are_about(world: World) -> None:
    world.handoff("new", "--to", "bob", *SAID)
    rows = world.coord("log", "--agent", "bob", "--json").json["events"]
    assert [row["kind"] for row in rows] == ["handoff"]
    rows = world.coord("log", "--path", "src/a.py", "--kind", "handoff", "--json").json["events"]
    assert len(rows) == 1
