"""`git coord journal` with real processes: written once, read as one story, and never changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import World
from tests.cli.test_json import holds, refused
from tests.support import COORD, UNHOOKED, git


def test_prose_and_events_are_one_story(world: World) -> None:
    world.take("src/a.py", "-m", "fix it")
    row = holds(world.coord("journal", "add", "-m", "one", "-m", "two", "--path", "src", "--json"), "noted")
    assert row["text"] == "one\n\ntwo" and row["paths"] == ["src"]
    assert world.git("show", f"gitcoord:{row['file']}").endswith("\n---\n\none\n\ntwo")
    world.coord("journal", "add", "-m", "bob's", agent="bob")
    entries = holds(world.coord("journal", "show", "--json"), "story")["entries"]
    assert [entry["kind"] for entry in entries] == ["init", "start", "claim", "journal", "journal"]
    assert [entry["seq"] for entry in entries] == [1, 2, 3, 4, 5]
    done = world.coord("journal")
    assert (
        "alice wrote on src:\n   | one\n   |\n   | two\n" in done.out and "claim src/a.py by alice: fix it" in done.out
    )
    assert done.out.index("claim src/a.py") < done.out.index("one") < done.out.index("bob's")


def test_what_is_wanted(world: World) -> None:
    world.coord("journal", "add", "-m", "the Lexer", "--path", "src/a.py", "--task", "t5")
    world.coord("journal", "add", "-m", "the printer", agent="bob")

    def texts(*words: str) -> list[str]:
        rows = holds(world.coord("journal", "show", "--prose", *words, "--json"), "story")["entries"]
        return [row["text"] for row in rows]

    assert texts() == ["the Lexer", "the printer"]
    assert texts("--agent", "bob") == ["the printer"]
    assert texts("--path", "src") == ["the Lexer"] and texts("--path", "docs") == []
    assert texts("--grep", "lexer") == ["the Lexer"]
    assert texts("--since", "3") == ["the printer"] and texts("--since", "1h") == ["the Lexer", "the printer"]
    assert texts("--since", "2100-01-01") == [] and texts("-n", "1") == ["the printer"]
    refused(world.coord("journal", "show", "--since", "then", "--json"), "usage", 2)
    assert world.coord("journal", "show", "--grep", "nothing like it").err == "nothing fits\n"


def test_from_a_file_from_stdin_and_from_an_editor(world: World, tmp_path: Path) -> None:
    file = tmp_path / "entry"
    file.write_text("from a file\n")
    assert holds(world.coord("journal", "add", str(file), "--json"), "noted")["text"] == "from a file"
    for words in ((), ("-",)):
        done = world.run(COORD, ("journal", "add", *words, "--json"), "alice", data="über stdin\n".encode())
        assert holds(done, "noted")["text"] == "über stdin"
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "typed\\n" >>"$1"\n')
    editor.chmod(0o755)
    env = {"GIT_EDITOR": str(editor), "GITCOORD_AGENT": "alice"}
    assert world.at_terminal("journal", "add", argv=COORD, env=env).code == 0
    entries = holds(world.coord("journal", "show", "--prose", "-n", "1", "--json"), "story")["entries"]
    assert entries[0]["text"] == "typed"


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a\x1b[2Jb", b"\xff", "\u202e".encode(), b"x" * 70_000, b"y" * 10_000_000]
)
def test_what_is_refused(world: World, data: bytes) -> None:
    before = world.head
    refused(world.run(COORD, ("journal", "add", "--json"), "alice", data=data), "usage", 2)
    assert world.head == before


def test_wrong_words(world: World) -> None:
    for words in (
        ("-m", "x", "file"),
        ("a", "b"),
        ("no/such/file",),
        ("-m", "x", "--path", "@gpu"),
        ("-m", "x", "--task", "a b"),
    ):
        refused(world.coord("journal", "add", *words, "--json"), "usage", 2)


def test_hostile_words_are_only_shown(world: World) -> None:
    text = "---\nseq: 9\n---\n\nSeq: 9\nKind: kill\n[x](javascript:y)"
    holds(world.coord("journal", "add", "-m", text, "--json"), "noted")
    assert holds(world.coord("journal", "show", "--prose", "--json"), "story")["entries"][0]["text"] == text
    assert "javascript" in world.coord("journal").out
    assert world.coord("fsck", "--json").json["clean"] is True


def test_an_entry_that_somebody_changed_is_found(world: World, tmp_path: Path) -> None:
    """No command does so; a ledger changed by hand is not legal any more."""
    row = holds(world.coord("journal", "add", "-m", "the truth", "--json"), "noted")
    place = tmp_path / "ledger"
    world.git("worktree", "add", "-q", str(place), "gitcoord")
    file = place / row["file"]
    file.write_text(file.read_text().replace("truth", "lie"))
    git(place, *UNHOOKED, "commit", "-q", "-am", "journal by alice: a lie")
    assert world.coord("fsck", "--json").json["clean"] is False
    assert world.claim("x").code == 4
