"""Paths that do not exist: new ones are marked, slips are refused with the command that was meant, `--` takes anything."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from gitcoord.cli.meant import meant
from tests.cli.support import World


@pytest.fixture
def world(git_repo: Path) -> World:
    return World(git_repo, ledger=True)


# --- words like verbs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, command",
    [
        ("relaese src/a.py", "git claim release src/a.py"),
        ("ls", "git claim list"),
        ("lsit", "git claim list"),
        ("status", "git coord status"),
        ("stauts", "git coord status"),
        ("status src/a.py", "git claim show src/a.py"),
        ("lst", "git claim list"),
        ("hlep", "git claim -h"),
        ("rlaese src/a.py", "git claim release src/a.py"),
        ("log", "git coord log"),
        ("wait src/a.py", "git claim --wait 10m src/a.py"),
        ("unlock 'a b'", "git claim release 'a b'"),
        ("accept h31", "git handoff accept h31"),
        ("claim src/a.py", "git claim src/a.py"),
        ("coord status", "git coord status"),
        ("src/a.py status", "git coord status"),
        ("take ls", "git claim list"),
    ],
)
def test_a_word_like_a_verb_is_refused_with_the_command_that_was_meant(world: World, words: str, command: str) -> None:
    before = world.refs()
    done = world.claim(*shlex.split(words))
    assert done.code == 2 and f"hint: {command}\n" in done.err, done
    assert world.refs() == before
    assert world.claim(*shlex.split(words), "--json").json["hints"][0] == command


def test_no_hint_names_a_command_that_ends_anothers_work(world: World) -> None:
    for word in ("kill", "takeoevr", "teardown", "unhalt", "uninstall-hook"):
        done = world.claim(word, "bob")
        assert done.code == 2 and word not in done.err.replace(f"'{word}'", "").replace(f"git claim -- {word}", "")
        assert "kill" not in meant(word, []) and "takeover" not in meant(word, [])


def test_words_of_other_tools_are_known_to_every_command(world: World) -> None:
    assert "hint: git claim release src/a.py\n" in world.coord("unclaim", "src/a.py").err


@pytest.mark.parametrize(
    "word",
    ["dist", "lint", "logs", "tasks.md", "Status", "listing", "l", "s", "readme", "shop", "lib", "tests", "notes"],
)
def test_other_words_are_new_paths(world: World, word: str) -> None:
    assert world.claim(word).out.startswith(f"claimed {word} (new), token ")


def test_a_path_called_like_a_verb_is_a_path(world: World) -> None:
    world.write("status", "a file\n")
    assert world.claim("status").code == 0
    world.commit({"log": "tracked\n"})
    (world.top / "log").unlink()
    assert world.claim("log").out.startswith("claimed log, token ")  # git has it, so it is not new either
    assert world.claim("./watch").code == 0
    assert world.claim("watch").code == 0  # it is claimed: somebody knows of it
    assert "held by alice" in world.claim("watch", agent="bob").err


def test_two_dashes_take_anything(world: World) -> None:
    for words in (("--", "ls"), ("take", "--", "status"), ("-qm", "why", "--", "log", "no/such/place")):
        assert world.claim(*words).code == 0, words
    assert world.claims() == [f"path/{name}/@alice" for name in ("log", "ls", "no/such/place", "status")]
    assert world.claim("stauts", "--", "src/a.py").code == 2  # the words before it are still judged


# --- paths below nothing --------------------------------------------------------------------------------------------


def test_a_path_whose_directory_does_not_exist_either_is_refused(world: World) -> None:
    before = world.refs()
    done = world.claim("scr/lib/a.py")
    assert done.code == 2 and world.refs() == before
    assert done.err.splitlines() == [
        "error: 'scr/lib/a.py': neither this path nor its directory exists",
        "hint: to claim a new directory: git claim scr",
        "hint: to claim this path all the same: git claim -- scr/lib/a.py",
    ]
    for hint in done.err.splitlines()[1:]:
        assert world.claim(*hint.rpartition("git claim ")[2].split()).code == 0
    assert world.claim("scr/lib/a.py").code == 0  # it is held now


def test_from_below_the_hint_means_the_same_path(world: World) -> None:
    done = world.claim("x/y.py", cwd="src")
    assert "git claim x\n" in done.err and "git claim -- x/y.py\n" in done.err
    assert world.claim("x", cwd="src").out.startswith("claimed src/x (new), token ")


def test_what_a_branch_has_exists(world: World) -> None:
    """A path of trunk is no mistake on a branch that lacks it, nor one that a sparse checkout leaves out."""
    world.git("branch", "old")
    world.commit({"lib/deep/x.py": "x\n"})
    world.git("checkout", "-q", "old")
    assert world.claim("lib/deep/y.py").out.startswith("claimed lib/deep/y.py (new), token ")
    world.git("checkout", "-q", "main")
    world.git("sparse-checkout", "set", "src")
    assert not (world.top / "lib").exists()
    assert world.claim("lib/deep/x.py").out.startswith("claimed lib/deep/x.py, token ")


def test_a_marked_path_is_no_mistake(world: World) -> None:
    """Gates and the guard name the path of a file that is yet to be made, and their hint is followed as it stands."""
    world.commit({".gitattributes": "new/** gitcoord-claim\n"})
    assert world.claim("new/deep/x.py").out.startswith("claimed new/deep/x.py (new), token ")
    assert world.claim("other/deep/x.py").code == 2


def test_one_slip_claims_nothing(world: World) -> None:
    assert world.claim("src/a.py", "fresh", "scr/b.py").code == 2
    assert world.claims() == []


@pytest.mark.parametrize("slip", ["src/wdget.py", "src/widgett.py", "src/wigdet.py"])
def test_a_new_path_that_is_nearly_another_is_said(world: World, slip: str) -> None:
    world.commit({"src/widget.py": "x\n", "src/001_a.sql": "x\n"})
    done = world.claim(slip)
    assert done.code == 0
    assert (
        done.err == f"note: {slip} does not exist, src/widget.py does; to give a slip back: git claim release {slip}\n"
    )
    assert world.claim("src/0011_a.sql").err == world.claim("src/002_a.sql").err == "", "numbered files are no slips"


def test_waiting_without_a_time_is_no_claim_of_nothing(world: World) -> None:
    done = world.claim("--wait", "src/a.py")
    assert done.code == 2 and "hint: git claim --wait 10m src/a.py\n" in done.err


def test_json_lists_the_new_paths(world: World) -> None:
    assert world.claim("src/a.py", "fresh", "--json").json["new"] == ["fresh"]
    assert "new" not in world.claim("src/b.py", "--json").json


def test_odd_names_are_new_paths(world: World) -> None:
    for name in ("a\nb", "a b", "[x]", "ä", "HEAD", "refs", "a:b"):
        assert world.claim(name).code == 0, name


# --- the other commands ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, command",
    [
        ("coord claim src/a.py", "git claim src/a.py"),
        ("coord release src/a.py", "git claim release src/a.py"),
        ("coord list", "git claim list"),
        ("coord handoff new", "git handoff new"),
        ("handoff claim src/a.py", "git claim src/a.py"),
        ("handoff status", "git coord status"),
    ],
)
def test_a_verb_of_another_command_is_pointed_to(world: World, words: str, command: str) -> None:
    name, *rest = words.split()
    done = getattr(world, name)(*rest)
    assert done.code == 2 and done.err.splitlines()[1] == f"hint: {command}", done
    assert getattr(world, name)(*rest, "--json").json["hints"][0] == command


# --- where git tracks something else ----------------------------------------------------------------------------------


def test_a_path_below_a_linked_directory_is_claimed_where_the_link_leads(world: World) -> None:
    (world.top / "link").symlink_to("src")
    (world.top / "deep").mkdir()
    (world.top / "deep/again").symlink_to("../link")
    assert world.claim("deep/again/a.py").out.startswith("claimed src/a.py, token ")
    assert world.claim("link/new.py").out.startswith("claimed src/new.py (new), token ")
    assert "held by alice" in world.claim("src/a.py", agent="bob").err
    assert world.claim("check", "link/a.py").out == "src/a.py: yes, yours\n"
    assert world.claim("release", "link/a.py").code == 0
    assert world.claim("link").out.startswith("claimed link, token ")  # the link itself is a file of git's


def test_a_link_that_leads_out_of_the_work_tree(world: World, tmp_path: Path) -> None:
    (world.top / "out").symlink_to(tmp_path)
    (world.top / "loop").symlink_to("loop")
    done = world.claim("out/x")
    assert done.code == 2 and "leads out of the work tree" in done.err
    assert "leads nowhere" in world.claim("loop/x").err and world.claims() == []


def test_a_path_in_a_submodule_is_refused_with_what_can_be_claimed(world: World, tmp_path: Path) -> None:
    sub = World(tmp_path / "sub")
    world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(sub.top), "vendor/sub")
    done = world.claim("vendor/sub/src/a.py")
    assert done.code == 2 and "in the submodule or repository 'vendor/sub'" in done.err
    assert "git -C vendor/sub claim src/a.py" in done.err and "git claim :/vendor/sub\n" in done.err
    assert world.claim(":/vendor/sub").code == 0
    inside = world.claim("src/a.py", cwd="vendor/sub")
    assert inside.code == 2 and "is not set up in this repository" in inside.err
    assert f"claim this submodule as a whole: git -C {world.top} claim vendor/sub\n" in inside.err
