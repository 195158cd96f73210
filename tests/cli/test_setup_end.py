"""The end of `git coord setup`: what counts now, what is not committed yet, and a command that commits it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.support import COORD

WAITS = "protected now: 0 files; once .gitattributes is committed: 3 files may change only under a claim"


@pytest.fixture
def fresh(plain: World) -> World:
    """A repository with one commit, in which gitcoord is not set up."""
    plain.write("src/a.py", "1\n")
    plain.git("add", "-A")
    plain.git("commit", "-q", "-m", "first")
    return plain


def setup(world: World, *words: str) -> str:
    done = world.at_terminal("setup", "--yes", "--no-tools", *words, argv=COORD)
    assert done.code == 0, done
    return done.out


def hinted(text: str) -> str:
    """The command of the hint, whole."""
    found = re.search(r"hint: look at them, then: (.*)", text)
    return found[1].strip() if found else ""


def follow(world: World, text: str) -> None:
    """Type the hinted command at a terminal, to the letter."""
    path = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    done = world.at_terminal("-c", hinted(text), argv=["sh"], env=path)
    assert done.code == 0, done


def test_marks_count_once_they_are_committed(fresh: World) -> None:
    first = setup(fresh)
    assert WAITS in first and WAITS in setup(fresh), "as long as they are not committed"
    follow(fresh, first)
    last = setup(fresh)
    assert "protected: 3 files may change only under a claim" in last and "not committed" not in last
    assert fresh.git("status", "--short") == ""


def test_with_a_policy_the_command_claims_first(fresh: World) -> None:
    """The starter policy marks itself, so a plain commit of a new mark would be refused."""
    follow(fresh, setup(fresh))
    fresh.write("migrations/1.sql", "create\n")
    fresh.git("add", "-A")
    fresh.git("commit", "-q", "-m", "more")
    text = setup(fresh, "--suggest")
    assert "protected now: 3 files; once .gitattributes is committed: 4 files" in text
    assert hinted(text).startswith("git claim .gitattributes && git add")
    follow(fresh, text)
    assert fresh.git("status", "--short") == "" and "holds" not in fresh.claim("list").out


def test_edited_files_of_a_hook_manager_are_named_until_they_are_committed(fresh: World, tmp_path: Path) -> None:
    fresh.write("lefthook.yml", "pre-commit:\n  commands: {}\n".replace(" {}", "\n    lint:\n      run: make lint"))
    fresh.git("add", "-A")
    fresh.git("commit", "-q", "-m", "hooks")
    done = fresh.at_terminal("setup", "--yes", "--no-tools", "--edit-hooks", argv=COORD)
    again = fresh.at_terminal("setup", "--yes", "--no-tools", argv=COORD)
    for text in (done.out, again.out):
        assert re.search(r"not committed yet: .*lefthook\.yml", text) and "lefthook.yml" in hinted(text), text
    follow(fresh, again.out)
    assert "not committed" not in fresh.at_terminal("setup", "--yes", "--no-tools", argv=COORD).out


def test_pre_commits_own_refusal_is_foretold_until_its_file_is_staged(fresh: World) -> None:
    """It takes no commit while its file has unstaged changes."""
    fresh.write(".pre-commit-config.yaml", "repos: []\n")
    fresh.git("add", "-A")
    fresh.git("commit", "-q", "-m", "hooks")
    for words in (("--edit-hooks",), ()):
        text = fresh.at_terminal("setup", "--yes", "--no-tools", *words, argv=COORD).out
        note = "note: pre-commit refuses every commit until .pre-commit-config.yaml is staged"
        assert text.count("refuses") == 1 and note in text.partition("gitcoord is set up")[2], text
    fresh.git(*text.partition("hint: stage it: git ")[2].splitlines()[0].split())
    assert "is staged" not in fresh.at_terminal("setup", "--yes", "--no-tools", argv=COORD).out


def test_over_a_remote_the_command_pushes_before_it_releases(fresh: World, tmp_path: Path) -> None:
    follow(fresh, setup(fresh))
    fresh.git("init", "-q", "--bare", str(tmp_path / "server.git"))
    fresh.git("remote", "add", "origin", str(tmp_path / "server.git"))
    text = setup(fresh, "--remote", "origin")
    assert " && git push -q origin HEAD && git claim release" in hinted(text)
    follow(fresh, text)
    assert fresh.git("status", "--short") == "" and ".gitcoord" not in fresh.claim("list").out


def test_a_new_ledger_at_a_remote_is_in_place(fresh: World, tmp_path: Path) -> None:
    fresh.git("init", "-q", "--bare", str(tmp_path / "server.git"))
    fresh.git("remote", "add", "origin", str(tmp_path / "server.git"))
    fresh.git("push", "-q", "origin", "HEAD")
    text = setup(fresh, "--remote", "origin")
    assert "authority: 'origin'" in text and "ledger: " not in text, text
