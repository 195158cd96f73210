"""Conflicts of every kind: the merge stands in the agent's own work tree, nothing has landed, and it is resolved or given up."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.support import World
from tests.landing.support import Trunk, lines
from tests.support import git


class Executable(NamedTuple):
    text: str


class Link(NamedTuple):
    target: str


class Submodule(NamedTuple):
    """A commit of another repository."""

    commit: str


Side = dict[str, str | Executable | Link | Submodule | None]
_ONE, _TWO, _THREE = (digit * 40 for digit in "123")
_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 1\n"

# What trunk has, what the branch makes of it, and what lands meanwhile.
CONFLICTS: dict[str, tuple[Side, Side, Side]] = {
    "content": ({}, {"text": lines(l5="mine")}, {"text": lines(l5="theirs")}),
    "delete and modify": ({}, {"text": None}, {"text": lines(l5="theirs")}),
    "modify and delete": ({}, {"text": lines(l5="mine")}, {"text": None}),
    "rename and rename": ({}, {"text": None, "mine": lines()}, {"text": None, "theirs": lines()}),
    "rename and delete": ({}, {"text": None, "mine": lines(l5="mine")}, {"text": None}),
    "both add": ({}, {"new": "mine\n"}, {"new": "theirs\n"}),
    "binary": ({"bin": "\0base"}, {"bin": "\0mine"}, {"bin": "\0theirs"}),
    "file and directory": ({}, {"new": "mine\n"}, {"new/inside": "theirs\n"}),
    "line ends": ({}, {"text": lines().replace("\n", "\r\n")}, {"text": lines(l5="theirs")}),
    "mode": ({}, {"new": Executable("x\n")}, {"new": "x\n"}),
    "link and content": ({}, {"text": Link("src/a.py")}, {"text": lines(l5="theirs")}),
    "submodule": ({"sub": Submodule(_ONE)}, {"sub": Submodule(_TWO)}, {"sub": Submodule(_THREE)}),
    "submodule and file": ({}, {"sub": Submodule(_TWO)}, {"sub": "theirs\n"}),
    "pointers of LFS": ({}, {"big": _POINTER.format("1" * 64)}, {"big": _POINTER.format("2" * 64)}),
}


def _commit(tree: Path, side: Side) -> None:
    """Commit this with plain git, in a work tree of anybody."""
    for name, what in side.items():
        path = tree / name
        if path.is_file() or path.is_symlink():
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Submodule):
            path.mkdir(exist_ok=True)  # as git leaves one that is not cloned
            git(tree, "update-index", "--add", "--cacheinfo", f"160000,{what.commit},{name}")
        elif isinstance(what, Link):
            path.symlink_to(what.target)
        elif what is not None:
            path.write_text(what.text if isinstance(what, Executable) else what)
            path.chmod(0o755 if isinstance(what, Executable) else 0o644)
        if not isinstance(what, Submodule):
            git(tree, "add", "-A", "--", name)
    git(tree, "commit", "-q", "-m", "work")


def _trunk(world: World, base: Side, mine: Side, theirs: Side) -> Trunk:
    trunk = Trunk(world)
    if base:
        _commit(trunk.top, base)
    tree = trunk.branch("alice", {})
    other = trunk.branch("bob", {})
    _commit(tree, mine)
    _commit(other, theirs)
    return trunk


@pytest.mark.parametrize("kind", CONFLICTS)
def test_a_conflict_stands_in_the_agents_work_tree_and_nothing_lands(world: World, kind: str) -> None:
    trunk = _trunk(world, *CONFLICTS[kind])
    tree = trunk.tree("alice")
    done = trunk.land("bob", "--json")
    assert done.code == 0 and "followed" in done.json, done
    assert world.git("status", "--porcelain") == ""
    before = trunk.tip, git(tree, "rev-parse", "HEAD")
    done = trunk.land("alice", "--json")
    assert done.code == 1 and done.json["error"] == "conflict", done
    assert done.json["files"] and done.json["stands"] == str(tree)
    assert (trunk.tip, git(tree, "rev-parse", "HEAD")) == before
    assert git(tree, "ls-files", "-u"), "every file that conflicts is left to be resolved"
    marked = [path.read_text() for path in (tree / "text", tree / "new") if path.is_file() and not path.is_symlink()]
    assert all("\n>>>>>>> refs/heads/main\n" in text for text in marked if "<<<<<<<" in text), marked
    assert kind != "content" or "<<<<<<<" in marked[0]
    assert world.claims() == ["resource/land/main/@alice"], "the turn is kept"
    unresolved = trunk.land("alice", "--continue", "--json")
    assert unresolved.code == 1 and unresolved.json["error"] == "unresolved"
    assert trunk.land("alice", "--abort").code == 0
    assert (trunk.tip, git(tree, "rev-parse", "HEAD")) == before and not git(tree, "status", "--porcelain")
    trunk.nothing_left()


@pytest.mark.parametrize("kind", ["content", "delete and modify", "binary", "mode", "submodule"])
def test_a_conflict_is_resolved_in_the_turn(world: World, kind: str) -> None:
    """By taking the branch's side, as a user does who gets a file and not lines to choose from."""
    base, mine, theirs = CONFLICTS[kind]
    trunk = _trunk(world, base, mine, theirs)
    tree = trunk.tree("alice")
    assert trunk.land("bob").code == 0
    before, work = trunk.tip, git(tree, "rev-parse", "HEAD").decode().strip()
    assert trunk.land("alice").code == 1
    (name,) = mine
    git(tree, "reset", "-q", "HEAD", "--", name)
    if mine[name] is None:
        (tree / name).unlink()
    else:
        git(tree, "checkout", "-q", "HEAD", "--", name)
    done = trunk.land("alice", "--continue")
    assert done.code == 0, done
    assert world.git("ls-tree", "main", name) == git(tree, "ls-tree", work, name).decode().strip()
    assert world.git("log", "-1", "--format=%P %s", "main") == f"{before} {work} Merge branch 'alice'", (
        "one merge, into trunk"
    )
    assert git(tree, "rev-parse", "HEAD").decode().strip() == trunk.tip and not git(tree, "status", "--porcelain")
    trunk.nothing_left()


def test_a_rebase_that_conflicts_is_resolved_commit_by_commit(world: World) -> None:
    trunk = _trunk(world, *CONFLICTS["content"])
    tree = trunk.tree("alice")
    assert trunk.land("bob").code == 0
    assert trunk.land("alice", "--rebase").code == 1
    (tree / "text").write_text(lines(l5="both"))
    git(tree, "add", "-A")
    done = trunk.land("alice", "--continue", "--json")
    assert done.code == 0 and done.json["how"] == "rebase", done
    assert len(world.git("log", "-1", "--format=%P", "main").split()) == 1
    assert trunk.show("text") == lines(l5="both").rstrip("\n")
    trunk.nothing_left()


def test_a_squash_that_conflicts_is_resolved_and_lands_as_one_commit(world: World) -> None:
    """The conflict stands as a merge of trunk; trunk gets neither it nor the branch's commits."""
    trunk = _trunk(world, *CONFLICTS["content"])
    tree = trunk.tree("alice")
    assert trunk.land("bob").code == 0
    before = trunk.tip
    assert trunk.land("alice", "--squash").code == 1
    (tree / "text").write_text(lines(l5="both"))
    git(tree, "add", "-A")
    done = trunk.land("alice", "--continue", "--json")
    assert done.code == 0 and done.json["how"] == "squash", done
    assert world.git("log", "--format=%P", f"{before}..main") == before
    assert trunk.show("text") == lines(l5="both").rstrip("\n")
    trunk.nothing_left()


def test_a_merge_of_another_branch_in_its_place_does_not_become_trunks_own_line(world: World) -> None:
    trunk = _trunk(world, *CONFLICTS["content"])
    tree = trunk.tree("alice")
    assert trunk.land("bob").code == 0
    before = trunk.tip
    trunk.branch("other", {"text": lines(l5="other")})
    assert trunk.land("alice").code == 1
    git(tree, "merge", "--abort")
    conflicts = subprocess.run(["git", "merge", "-q", "other"], cwd=tree, check=False, capture_output=True)
    assert conflicts.returncode == 1, conflicts
    (tree / "text").write_text(lines(l5="all"))
    git(tree, "add", "text")
    assert trunk.land("alice", "--continue").code == 0
    assert world.git("log", "-1", "--format=%P", "main").split()[0] == before
