"""Kinds of history: merges, empty and root commits, modes and submodules; signatures; shallow and partial clones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.landing.support import Trunk, lines, sign
from tests.ledger.remote.support import Fleet, Machine
from tests.support import git

_EMPTY = ["commit -q --allow-empty -m empty"]
_MERGE = ["merge -q --no-ff -m merged side"]
_OF_TRUNK = ["merge -q --no-ff -m merged main"]
_ROOT = [
    "checkout -q --orphan lone", "rm -q -r -f .", "commit -q --allow-empty -m root", "switch -q alice",
    "merge -q --no-ff --allow-unrelated-histories -m merged lone",
]  # fmt: skip
_ALONE = ["checkout -q --orphan lone", "commit -q -m root", "branch -f alice", "switch -q alice"]
_MODE = ["update-index --chmod=+x text", "commit -q -m mode", "checkout -q -- ."]
_SUBMODULE = ["update-index --add --cacheinfo 160000,{head},sub", "commit -q -m sub"]

# What the branch's work tree does after its first commit, how it lands, and the newest subject on trunk; or why it does not land.
HISTORIES: dict[str, tuple[list[str], str, int, str]] = {
    "an empty commit, merged": (_EMPTY, "--merge", 0, "Merge branch 'alice'"),
    "an empty commit, rebased": (_EMPTY, "--rebase", 0, "empty"),
    "an empty commit, squashed": (_EMPTY, "--squash", 0, "alice: 2 commits"),
    "a merge, merged": (_MERGE, "--merge", 0, "Merge branch 'alice'"),
    "a merge, rebased": (_MERGE, "--rebase", 1, "cannot be rebased"),
    "a merge, squashed": (_MERGE, "--squash", 0, "alice: "),
    "a merge of trunk, merged": (_OF_TRUNK, "--merge", 0, "Merge branch 'alice'"),
    "a merge of trunk, rebased": (_OF_TRUNK, "--rebase", 1, "cannot be rebased"),
    "a root commit, merged": (_ROOT, "--merge", 0, "Merge branch 'alice'"),
    "a root commit, rebased": (_ROOT, "--rebase", 1, "cannot be rebased"),
    "a root commit, squashed": (_ROOT, "--squash", 0, "alice: "),
    "no common history": (_ALONE, "--merge", 1, "no common"),
    "no common history, rebased": (_ALONE, "--rebase", 1, "no common"),
    "a mode": (_MODE, "--rebase", 0, "mode"),
    "a submodule": (_SUBMODULE, "--rebase", 0, "sub"),
}


@pytest.mark.parametrize("kind", HISTORIES)
def test_kinds_of_history(world: World, kind: str) -> None:
    commands, way, code, words = HISTORIES[kind]
    trunk = Trunk(world)
    world.git("branch", "side", world.git("commit-tree", "-m", "side", "-p", "main", "main^{tree}"))
    tree = trunk.branch("alice", {"new": "x\n"})
    head = git(tree, "rev-parse", "HEAD").decode().strip()
    world.commit({"other": "x\n"})
    for command in commands:
        git(tree, *command.format(head=head).split())
    before, branch = trunk.tip, world.git("rev-parse", "alice")
    done = trunk.land("alice", way)
    assert done.code == code, done
    if code:
        assert words in done.err and trunk.tip == before
    else:
        assert words in world.git("log", "-1", "--format=%s", "main") and trunk.show("new") == "x"
        assert world.git("ls-tree", "-r", "alice", "text", "sub") == world.git("ls-tree", "-r", "main", "text", "sub")
        assert trunk.show("other") == "x"
        line = world.git("rev-list", "--first-parent", "main").split()
        assert before in line, "first parents are what trunk was after each landing"
    assert world.git("rev-parse", "alice") == branch, "the branch stays as it is"
    trunk.nothing_left()


# --- signatures ------------------------------------------------------------------------------------------------------


SIGNED = {  # the way, does the one who lands sign, the policy; whose signatures the branch's commits have on trunk, or a refusal
    "merged": ("--merge", False, "", ["author", "author"]),
    "rebased": ("--rebase", False, "", ["", ""]),
    "rebased and signed": ("--rebase", True, "", ["lander", "lander"]),
    "squashed": ("--squash", False, "", [""]),
    "squashed and signed": ("--squash", True, "", ["lander"]),
    "merged, kept": ("--merge", False, "keep", ["author", "author"]),
    "rebased, kept": ("--rebase", True, "keep", None),
    "squashed, kept": ("--squash", True, "keep", None),
}


@pytest.mark.parametrize("kind", SIGNED)
def test_signatures_of_the_branch(world: World, tmp_path: Path, kind: str) -> None:
    way, signs, policy, expected = SIGNED[kind]
    trunk = Trunk(world, policy=f"[land]\n\tsignatures = {policy}\n" if policy else "")
    keys = {sign(world, tmp_path, name): name for name in ("author", "lander")}
    tree = trunk.branch("alice", {})
    for name in ("one", "two"):
        git(tree, "-c", f"user.signingKey={tmp_path}/author", "commit", "-q", "-S", "--allow-empty", "-m", f"{name} x")
    world.commit({"other": "x\n"})
    before = trunk.tip
    world.git("config", "user.signingKey", str(tmp_path / "lander"))
    world.git("config", "commit.gpgSign", str(signs).lower())
    done = trunk.land("alice", way)
    if expected is None:
        assert (
            done.code == 1 and "lose signatures of alice (2)" in done.err and "git coord land alice --merge" in done.err
        ), done
        assert trunk.tip == before
    else:
        assert done.code == 0, done
        rows = world.git("log", "--no-merges", "--format=%G? %GF", f"{before}..main").splitlines()
        assert [keys.get(row.removeprefix("G "), "") for row in rows] == expected
        assert ("signatures are not kept (2)" in done.err) == (expected[0] == ""), done
    trunk.nothing_left()


def test_a_branch_that_follows_trunk_keeps_its_signatures_however_it_lands(world: World, tmp_path: Path) -> None:
    trunk = Trunk(world, policy="[land]\n\tsignatures = keep\n\thow = rebase\n")
    sign(world, tmp_path, "author")
    tree = trunk.branch("alice", {})
    git(tree, "-c", f"user.signingKey={tmp_path}/author", "commit", "-q", "-S", "--allow-empty", "-m", "x")
    done = trunk.land("alice")
    assert done.code == 0 and world.git("log", "-1", "--format=%G?", "main") == "G", done


# --- clones that lack something --------------------------------------------------------------------------------------

# How it is cloned, and how it lands.
CLONES = {
    ("--depth", "1"): "--merge",
    ("--depth", "2", "--single-branch"): "--rebase",
    ("--filter=blob:none",): "--rebase",
    ("--filter=tree:0",): "--squash",
}


def _land(machine: Machine, *words: str) -> Done:
    return machine.run("git-coord", "land", *words, agent="alice")


def _grow(machine: Machine, *texts: str) -> None:
    for text in texts:
        machine.commit({"text": text})
        machine.git("push", "-q", "origin", "HEAD:main")


@pytest.mark.parametrize(("kind", "how"), [*CLONES.items()])
def test_a_clone_that_lacks_something_lands(fleet: Fleet, kind: tuple[str, ...], how: str) -> None:
    """The base, trunk and the branch each have other lines of one file; the clone had none of trunk's when it was made."""
    fleet.git("config", "uploadpack.allowFilter", "true")
    fleet.git("config", "uploadpack.allowAnySHA1InWant", "true")
    one = fleet.machines[0]
    _grow(one, lines(l1="old"), lines())
    part = fleet.add("part", *kind)
    fleet.joined()
    part.git("switch", "-q", "-c", "topic")
    part.commit({"text": lines(l18="topic")})
    _grow(one, lines(l2="two"), lines(l2="two", l3="three"))
    done = _land(part, how, "--check", "grep -q three text && grep -q topic text", "--json")
    assert done.code == 0, done
    assert fleet.git("show", "main:text") == lines(l2="two", l3="three", l18="topic")
    assert fleet.git("fsck", "--connectivity-only", "--no-dangling") == ""
    one.git("pull", "-q", "origin", "main")
    _grow(one, lines(l2="theirs"))
    part.git("switch", "-q", "-c", "next")
    part.commit({"text": lines(l2="mine", l3="three", l18="topic")})
    conflict = _land(part, how, "--json")
    assert conflict.json["error"] == "conflict" and conflict.json["files"] == ["text"], conflict
    fleet.assert_sound()


def test_a_clone_too_shallow_to_merge_says_what_helps(fleet: Fleet) -> None:
    one = fleet.machines[0]
    part = fleet.add("part", "--depth", "1")
    fleet.joined()
    part.git("switch", "-q", "-c", "topic")
    part.commit({"new": "x\n"})
    _grow(one, "1\n", "2\n")
    part.git("fetch", "-q", "--depth", "1", "origin", "main")
    done = _land(part, "--json")
    assert done.code == 1 and done.json["error"] == "unrelated" and done.json["hints"] == ["git fetch --unshallow"], (
        done
    )
    part.git("fetch", "-q", "--unshallow")
    assert _land(part).code == 0
    assert fleet.git("show", "main:new") == "x\n"
    fleet.assert_sound()


# --- authors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "authors"), [("--rebase", ["Zoe", "Yan"]), ("--squash", ["Yan"])])
def test_commits_that_are_made_anew_keep_their_authors(world: World, way: str, authors: list[str]) -> None:
    """A squashed commit has the author of the branch's last one."""
    trunk = Trunk(world)
    tree = trunk.branch("alice", {})
    for name in ("Zoe", "Yan"):
        date = "2020-01-02T03:04:05+0100"
        git(tree, "commit", "-q", "--allow-empty", "--author", f"{name} <{name}@x>", "--date", date, "-m", f"{name}'s")
    world.commit({"other": "x\n"})
    before = trunk.tip
    assert trunk.land("alice", way).code == 0
    rows = world.git("log", "--reverse", "--format=%an %ae %aI", f"{before}..main").splitlines()
    assert rows == [f"{name} {name}@x 2020-01-02T03:04:05+01:00" for name in authors]
