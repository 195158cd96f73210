"""`git coord number`: real files in real repositories set the floor, and real processes never share a number."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.races.support import Project
from tests.support import COORD

CONFIG = (
    '[sequence "migrations"]\n\tpattern = migrations/[0-9]*_*.sql\n\twidth = 4\n[sequence "port"]\n\tstart = 8000\n'
)


@pytest.fixture
def world(plain: World) -> World:
    plain.commit({".gitcoord/config": CONFIG, "migrations/0041_one.sql": "x"})
    return plain.init()


def number(world: World, *words: str, agent: str = "alice") -> list[str]:
    done = world.coord("number", *words, agent=agent)
    assert done.code == 0, done
    return done.out.split()


def test_the_next_number_above_files_and_what_was_given(world: World) -> None:
    assert number(world, "migrations", "--peek") == ["0042"] == number(world, "migrations", "--peek")
    assert number(world, "migrations") == ["0042"]
    assert number(world, "migrations", "--count", "3", agent="bob") == ["0043", "0044", "0045"]
    told = world.coord("number", "migrations", agent="carol")
    assert told.out == "0046\n" and "note: 42 to 45 are reserved too, and no file here has that number yet" in told.err
    assert number(world, "port") == ["8000"] and number(world, "port") == ["8001"]
    done = world.coord("number", "unheard-of")
    assert (done.out, done.code) == ("1\n", 0) and "no sequence 'unheard-of'" in done.err
    assert world.coord("fsck").code == 0


def test_where_files_are_looked_for(world: World) -> None:
    world.write("migrations/0050_untracked.sql", "x")
    assert number(world, "migrations", "--peek") == ["0051"]
    world.write(".git/info/exclude", "*.sql\n")
    assert number(world, "migrations", "--peek") == ["0051"], "what is ignored is in use too"
    (world.top / "migrations/0050_untracked.sql").unlink()
    world.git("checkout", "-q", "-b", "side")
    world.commit({"x": "x"})
    (world.top / ".git/info/exclude").unlink()
    world.commit({"migrations/0060_side.sql": "x"})
    assert number(world, "migrations", "--peek") == ["0061"], "HEAD"
    world.git("checkout", "-q", "main")
    assert number(world, "migrations", "--peek") == ["0042"]
    world.git("checkout", "-q", "-b", "old", "main")
    world.git("rm", "-q", "migrations/0041_one.sql")
    world.git("commit", "-q", "-m", "gone here")
    assert number(world, "migrations", "--peek") == ["0042"], "trunk"
    world.git("update-ref", "refs/remotes/origin/main", "side")
    world.git("remote", "add", "origin", ".")
    assert number(world, "migrations", "--peek") == ["0061"], "trunk as it was last fetched"
    names = ("migrations/below/0099_x.sql", "migrations/0099.sql", "other/0099_x.sql", "Migrations/0099_x.sql")
    for name in names:
        world.write(name, "x")
    assert number(world, "migrations", "--peek") == ["0061"], "what the pattern does not match does not count"
    assert number(world, "migrations", "--peek") == number(world, "migrations")


@pytest.mark.parametrize(
    "wrong", ["migration", "migratoins", "db/migrations", "migrations/0042_x.sql", "Migrations", "db_migrations"]
)
def test_a_wrong_name_is_answered_with_the_sequences(world: World, wrong: str) -> None:
    before = world.coord("log", "--json").out
    done = world.coord("number", wrong)
    assert done.code == 2 and f"'{wrong}' is no sequence" in done.err
    assert "hint: git coord number migrations  (migrations/[0-9]*_*.sql)\n" in done.err
    assert world.coord("log", "--json").out == before, "nothing was reserved"


def test_a_file_outside_of_the_sequences_directory_is_answered_with_the_right_name(world: World) -> None:
    done = world.coord("number", "migrations", "--file", "{n}_users.sql")
    assert done.code == 2 and "hint: --file 'migrations/{n}_users.sql'\n" in done.err, done
    assert number(world, "migrations", "--file", "migrations/{n}_users.sql") == ["0042"], "and nothing was reserved"


def test_from_a_directory_below(world: World) -> None:
    world.write("src/migrations/0077_x.sql", "x")
    done = world.coord("number", "migrations", cwd="src")
    assert done.out == "0042\n"


def test_a_name_that_is_too_large_says_which_file(world: World) -> None:
    world.write("migrations/999999999999999_x.sql", "x")
    for words in ((), ("--peek",)):
        row = world.coord("number", "migrations", *words, "--json")
        assert row.json["error"] == "exhausted" and row.code == 1
        assert "migrations/999999999999999_x.sql" in row.json["hints"][0]


@pytest.mark.parametrize("pattern", ["migrations/[0-9*.sql", "../x/*", "/abs/*", ":!x", "migrations/"])
def test_a_pattern_that_makes_no_sense_is_an_error(world: World, pattern: str) -> None:
    world.commit({".gitcoord/config": f'[sequence "migrations"]\n\tpattern = "{pattern}"\n'})
    done = world.coord("number", "migrations")
    assert done.code == 4 and 'sequence "migrations": the pattern' in done.err and done.out == ""
    assert len(world.events()) == 1
    done = world.coord("policy", "check")
    assert done.code == 4 and "the pattern" in done.err


@pytest.mark.parametrize(
    "words", [["a b"], ["\x1b[31m"], ["x" * 65], ["m", "--count", "0"], ["m", "--count", "9999"], ["m", "--count", "x"]]
)
def test_words_that_make_no_sense(world: World, words: list[str]) -> None:
    assert world.coord("number", *words).code == 2
    assert world.coord("number", "m", "--peek", "--count", "2").code == 2


def test_hostile_files(world: World) -> None:
    (world.top / "migrations").joinpath(b"0050_\x1b[31m\n\xff.sql".decode("utf-8", "surrogateescape")).write_text("x")
    done = world.coord("number", "migrations", "--json")
    assert done.json["numbers"] == ["0051"]


def test_many_at_once_never_share_a_number(tmp_path: Path) -> None:
    project = Project(tmp_path)
    started = [project.start("git-coord", "number", "m", "--count", "2", agent=f"w{i % 5}") for i in range(16)]
    numbers = [int(word) for process in started for word in process.communicate(timeout=120)[0].split()]
    assert [process.returncode for process in started] == [0] * 16
    assert sorted(numbers) == list(range(1, 33))
    assert project.coord("fsck").code == 0


def test_a_bare_repository(world: World, tmp_path: Path) -> None:
    """There is no work tree; the commits have the files."""
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(world.top), str(bare)], check=True)
    subprocess.run(
        [*COORD, "init", "--adopt"], cwd=bare, check=True, env=world.environ("alice", {}), capture_output=True
    )
    done = subprocess.run(
        [*COORD, "number", "migrations"], cwd=bare, env=world.environ("alice", {}), capture_output=True
    )
    assert done.stdout == b"0042\n", done


def test_a_number_with_its_file(world: World) -> None:
    """One step: nobody else gets the number, and the file is claimed."""
    before = len(world.events())
    done = world.coord("number", "migrations", "--file", "migrations/{n}_user.sql", "--json")
    assert (done.json["numbers"], done.json["claimed"]) == (["0042"], "migrations/0042_user.sql"), done
    assert [line.split()[0] for line in world.events()[before:]] == ["start", "claim", "number"]
    assert world.claims() == ["path/migrations/0042_user.sql/@alice"]
    below = world.coord("number", "migrations", "--file", "{n}_bob.sql", agent="bob", cwd="migrations")
    assert below.code == 0 and "path/migrations/0043_bob.sql/@bob" in world.claims()
    for wrong in ("", "migrations/user.sql", "{n}/user.sql", "migrations/{n}_{n}", "@{n}"):
        assert world.coord("number", "migrations", "--file", wrong).code == 2, wrong
    assert world.coord("number", "migrations", "--file", "migrations/{n}_x", "--count", "2").code == 2
    world.take("migrations/new", agent="carol")
    assert world.coord("number", "migrations", "--file", "migrations/new/{n}_x", agent="alice").code == 1
    assert number(world, "migrations", "--peek") == ["0044"], "refused, so no number was given"
    assert world.coord("fsck").code == 0


def test_a_file_that_is_none_of_the_sequences_is_named(world: World) -> None:
    pattern = "migrations/[0-9]*_*.sql"
    assert (
        world.coord("number", "migrations", "--file", "migrations/{n}_a.sql").err == "claimed migrations/0042_a.sql\n"
    )
    for file, path in {"migrations/{n}_b": "migrations/0043_b", "doc/{n}_c.sql": "doc/0044_c.sql"}.items():
        note = f"note: {path} does not match {pattern}; to give a slip back: git claim release {path}\n"
        assert world.coord("number", "migrations", "--file", file).err.endswith(f"claimed {path}\n{note}")
