"""`git coord policy suggest`: paths to mark, by the names of files and by who changes which file when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitcoord.policy.suggest import DAYS, PastCommit, from_history, from_tree
from tests.cli.test_json import holds
from tests.gates.places import CHAIN, Place
from tests.support import COORD

DAY = 86_400
HOT = [PastCommit(who, at * DAY, ("src/a.py", f"own/{who}")) for at, who in enumerate(("ada", "bob", "ada"))]


@pytest.fixture
def place(git_repo: Path, tmp_path: Path) -> Place:
    return Place(git_repo, tmp_path, CHAIN)


def lines(*paths: str) -> list[str]:
    return [row.line for row in from_tree(paths)]


@pytest.mark.parametrize(
    "path, line",
    [
        ("db/migrations/0001_a.sql", "db/migrations/** gitcoord-claim"),
        ("db/migrate/1.rb", "db/migrate/** gitcoord-claim"),
        ("package-lock.json", "/package-lock.json gitcoord-claim"),
        ("web/yarn.lock", "web/yarn.lock gitcoord-claim"),
        (".github/workflows/test.yml", ".github/workflows/** gitcoord-claim"),
        (".gitlab-ci.yml", "/.gitlab-ci.yml gitcoord-claim"),
        ("AGENTS.md", "/AGENTS.md gitcoord-claim"),
        ("pyproject.toml", "/pyproject.toml gitcoord-claim"),
        ("my web/package.json", '"my web/package.json" gitcoord-claim'),
        ("my dir/migrations/1.sql", '"my dir/migrations/**" gitcoord-claim'),
    ],
)
def test_by_name(path: str, line: str) -> None:
    assert lines(path, "src/a.py", "README.md") == [line]


def test_a_file_that_is_there_several_times_is_one_pattern() -> None:
    rows = from_tree(["a/package.json", "b/package.json", "package.json"])
    assert [(row.line, row.files) for row in rows] == [("package.json gitcoord-claim", 3)]


def test_by_history() -> None:
    rows = from_history(HOT, ["src/a.py", "own/ada", "own/bob"])
    assert [(row.line, row.kind) for row in rows] == [("src/a.py gitcoord-claim=landing", "history")]
    assert rows[0].why == "2 authors changed it in turn within 7 days, 2 times"


@pytest.mark.parametrize(
    "changes",
    [
        HOT[:2],  # once is chance
        [change._replace(who="ada") for change in HOT],
        [change._replace(at=change.at * (DAYS + 1)) for change in HOT],
    ],
)
def test_one_author_or_long_ago_is_no_reason(changes: list[PastCommit]) -> None:
    assert from_history(changes, ["src/a.py"]) == []


def test_a_file_that_is_gone_is_not_suggested() -> None:
    assert from_history(HOT, ["src/b.py"]) == []


def committed(place: Place) -> None:
    """A lock file, and a file that two agents of one account change in turn."""
    place.commit({"package-lock.json": "{}\n", "src/odd [1].py": "0\n"})
    for number, agent in enumerate(("a1", "a2", "a1")):
        place.commit({"src/a.py": f"{number}\n", "src/odd [1].py": f"{number}\n"}, f"work\n\nAgent: {agent}")


def test_the_command(place: Place) -> None:
    committed(place)
    row = holds(place.ok("policy", "suggest", "--json"), "suggestions")
    assert [(each["line"], each["mark"], each["kind"]) for each in row["suggestions"]] == [
        ("/package-lock.json gitcoord-claim", "gitcoord-claim", "lock file"),
        ("src/a.py gitcoord-claim=landing", "gitcoord-claim=landing", "history"),
        ('"src/odd \\\\[1].py" gitcoord-claim=landing', "gitcoord-claim=landing", "history"),
    ]
    told = place.ok("policy", "suggest")
    assert "/package-lock.json gitcoord-claim" in told.out and "git coord setup --suggest" in told.err
    assert "refs/heads/gitcoord" not in place.refs(), "it needs no ledger, and makes none"
    place.write(".gitattributes", told.out)
    assert place.ok("policy", "suggest", "--json").json["suggestions"] == [], "marked is marked: the lines match"


def test_setup_marks_them_when_asked_to(place: Place) -> None:
    committed(place)
    done = place.ok("setup")
    assert "/package-lock.json gitcoord-claim" in done.out and "git coord setup --suggest" in done.err
    assert "package-lock" not in (place.top / ".gitattributes").read_text()
    done = place.ok("setup", "--suggest")
    assert "will mark 3 patterns in .gitattributes" in done.out
    place.git("add", "-A")
    place.git("commit", "-q", "--no-verify", "-m", "policy")
    assert (
        place.claim("check", "package-lock.json", "src/a.py", "src/odd [1].py").out.count("no, shared and not claimed")
        == 3
    )
    assert place.claim("check", "src/b.py").code == 0
    assert place.ok("setup", "--suggest", "--json").json["changed"] is False, "once is enough"


def test_setup_says_which_mark_is_for_when(place: Place) -> None:
    note = "note: =landing asks for the claim when the path lands (git coord land), not while it is edited"
    place.commit({"package-lock.json": "{}\n"})
    assert note not in place.ok("setup", "--dry-run").err, "nothing is marked so"
    committed(place)
    done = place.ok("setup")
    assert "src/a.py gitcoord-claim=landing" in done.out and note in done.err
    assert note in place.ok("setup", "--suggest").err


def test_before_the_first_commit_files_are_suggested_too(place: Place) -> None:
    bare = place.top / "new"
    place.git("init", "-q", str(bare))
    (bare / "package-lock.json").write_text("{}\n")
    done = place.ok("policy", "suggest", cwd="new")
    assert "/package-lock.json gitcoord-claim" in done.out, done


def test_setup_asks_again_until_the_policy_is_committed(place: Place) -> None:
    """A first run without a terminal asked nobody."""
    committed(place)
    place.ok("setup")
    assert "hint: mark them: git coord setup --suggest" in place.ok("setup").err
    place.git("add", "-A")
    place.git("commit", "-q", "--no-verify", "-m", "policy")
    assert "could be marked" not in place.ok("setup").out


def test_a_person_is_asked_later_what_no_script_was_asked(place: Place) -> None:
    """The first run had no terminal, and the policy is committed. What is declined is not asked about again; what is new, is."""
    committed(place)
    place.ok("setup")
    place.git("add", "-A")
    place.git("commit", "-q", "--no-verify", "-m", "policy")
    with place.terminal("setup", argv=COORD, env=place.path) as shown:
        shown.until(lambda text: b"mark them in .gitattributes? [Y/n] " in text)
        os.write(shown._master, b"n\n")
        done = shown.end()
    assert (
        done.code == 0 and "/package-lock.json gitcoord-claim" in done.out and "git coord setup --suggest" in done.out
    )
    assert "could be marked" not in place.at_terminal("setup", argv=COORD, env=place.path).out
    place.commit({"yarn.lock": "x\n"})
    with place.terminal("setup", argv=COORD, env=place.path) as shown:
        shown.until(lambda text: b"mark them in .gitattributes? [Y/n] " in text)
        os.write(shown._master, b"y\n")
        shown.until(lambda text: b"go on? [Y/n] " in text)
        os.write(shown._master, b"y\n")
        done = shown.end()
    marks = (place.top / ".gitattributes").read_text()
    assert done.code == 0 and "yarn.lock gitcoord-claim" in marks and "package-lock.json" not in marks, done


def test_setup_asks_a_person_and_shows_what_is_protected(place: Place) -> None:
    committed(place)
    with place.terminal("setup", argv=COORD, env=place.path) as shown:
        shown.until(lambda text: b"mark them in .gitattributes? [Y/n] " in text)
        os.write(shown._master, b"y\n")
        shown.until(lambda text: b"go on? [Y/n] " in text)
        os.write(shown._master, b"y\n")
        done = shown.end()
    assert done.code == 0, done
    ends = [line for line in done.out.splitlines() if "protected" in line]
    assert ends == [
        "protected now: 0 files; once .gitattributes is committed: 6 files may change only under a claim (.gitattributes, .gitcoord/config, .gitcoord/rules.md, package-lock.json, ...)",
        "not protected: 1 other file, unless claimed; what to mark: git coord policy suggest",
    ]


def test_teardown_takes_the_marks_out_again(place: Place) -> None:
    committed(place)
    place.commit({".gitattributes": "*.png binary\n"})
    place.ok("setup", "--suggest")
    place.ok("teardown", "--yes")
    assert (place.top / ".gitattributes").read_text() == "*.png binary\n"
    assert place.git("status", "--porcelain") == ""
