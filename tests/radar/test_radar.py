"""`git coord radar` with real git: what conflicts is found, what merges is not, and nothing of the repository changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.radar.look import look
from gitcoord.world.open import environ, open_repository
from tests.cli.support import World, assert_harmless
from tests.cli.test_json import holds, refused
from tests.radar.support import TEXT, commit, edit, state, tree
from tests.support import COORD, git


def radar(world: World, *words: str) -> Any:
    return holds(world.coord("radar", "--json", *words), "radar")


def found(world: World) -> list[str]:
    row = radar(world)
    assert row["complete"], row
    return [conflict["message"] for conflict in row["conflicts"]]


# --- what conflicts


def test_uncommitted_edits_of_the_same_lines(world: World) -> None:
    login, form = tree(world, "login", "alice"), tree(world, "form", "bob")
    edit(login, 10, "by alice")
    edit(form, 11, "by bob")
    edit(form, 1, "one more\n1")
    before = state(world)
    done = world.coord("radar")
    assert done.out.splitlines() == [
        "work under way will conflict: 1 pair",
        "  bob (form) and alice (login) will conflict in f (line 12 of form, line 10 of login)",
    ]
    assert "hint: land first" in done.err and "git claim --wait 30m f" in done.err and "git handoff new" in done.err
    assert done.code == 0
    assert state(world) == before, "nothing is written, and nothing is left behind"
    assert os.listdir(world.top / ".git/gitcoord/radar/work") == []


def test_edits_that_merge_are_shown_only_where_all_is_asked_for(world: World) -> None:
    edit(tree(world, "login"), 3, "x")
    edit(tree(world, "form"), 30, "y")
    assert found(world) == [] and radar(world)["touching"] == []
    assert world.coord("radar").out == "no work under way conflicts\n"
    (row,) = radar(world, "--all")["touching"]
    assert row["paths"] == ["f"] and {side["branch"] for side in row["sides"]} == {"login", "form"}
    assert "merge: 1\n" in world.coord("radar", "--all").out


def test_commits_and_what_is_not_committed_count_together(world: World) -> None:
    login, form = tree(world, "login", "alice"), tree(world, "form", "bob")
    edit(login, 10, "x")
    commit(login)
    git(login, "checkout", "-q", "--detach")
    git(world.top, "worktree", "remove", "--force", str(login))
    edit(form, 10, "y")
    (row,) = radar(world)["conflicts"]
    by = {side["branch"]: side for side in row["sides"]}
    assert by["login"]["agent"] == "proj-login" and by["login"]["tree"] == "", "by its author"
    assert by["form"]["agent"] == "bob" and by["form"]["lines"] == [[10, 10]]


def test_the_agent_of_a_branch_is_that_of_its_trailer(world: World) -> None:
    for name, words in (("login", "x"), ("form", "y")):
        world.git("switch", "-q", "-c", name, "main")
        edit(world.top, 10, words)
        commit(world.top, f"work\n\nAgent: agent-of-{name}")
    world.git("switch", "-q", "main")
    (row,) = radar(world)["conflicts"]
    assert {side["agent"] for side in row["sides"]} == {"agent-of-login", "agent-of-form"}


def test_what_one_removes_and_the_other_changes(world: World) -> None:
    login, form = tree(world, "login", "alice"), tree(world, "form", "bob")
    (login / "f").unlink()
    edit(form, 10, "y")
    (words,) = found(world)
    assert words.endswith("in f (alice (login) removes it, bob (form) changes it)")


def test_a_renamed_file_takes_changes_along(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    git(login, "mv", "f", "g")
    edit(form, 10, "y")
    assert found(world) == []
    edit(login, 10, "x", "g")
    (row,) = radar(world)["conflicts"]
    assert row["path"] == "g"


def test_a_file_that_both_rename(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    (login / "f").rename(login / "g")
    (form / "f").rename(form / "h")
    assert {row["how"] for row in radar(world)["conflicts"]} == {"rename/rename"}


def test_binary_files_and_files_that_both_add(world: World) -> None:
    (world.top / "bin").write_bytes(b"\0\1")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "bin")
    for number, place in enumerate((tree(world, "login"), tree(world, "form"))):
        (place / "bin").write_bytes(bytes([0, 2, number]))
        (place / "new").write_text(f"by {number}\n")
        (place / "same").write_text("the same\n")
    assert {(row["path"], row["how"]) for row in radar(world)["conflicts"]} == {("bin", "binary"), ("new", "add/add")}


def test_a_file_where_the_other_makes_a_directory(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    (login / "f").unlink()
    (login / "f").mkdir()
    (login / "f/inner").write_text("x\n")
    edit(form, 10, "y")
    assert found(world)


def test_a_directory_that_becomes_a_link(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    shutil.rmtree(login / "src")
    (login / "src").symlink_to("/etc")
    (form / "src/a.py").write_text("changed\n")
    assert [row["path"] for row in radar(world)["conflicts"]]


# --- what does not


def test_what_has_landed_is_no_work(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    edit(login, 10, "x")
    commit(login)
    edit(form, 10, "y")
    assert found(world)
    world.git("merge", "-q", "--ff-only", "login")
    assert found(world) == []


def test_what_has_landed_as_one_commit_is_no_work(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    for words in ("w", "x"):
        edit(login, 10, words)
        commit(login)
    edit(form, 10, "y")
    assert found(world)
    world.git("merge", "-q", "--squash", "login")
    commit(world.top)
    assert found(world) == []


def test_a_branch_that_landed_as_one_commit_before_trunk_went_on(world: World) -> None:
    """By the ledger: no merge tells that any more."""
    login, form = tree(world, "login", "alice"), tree(world, "form", "bob")
    for words in ("w", "x"):
        edit(login, 10, words)
        commit(login)
    done = world.coord("land", "--squash", agent="alice", cwd=str(login))
    assert done.code == 0, done
    edit(world.top, 10, "changed since")
    commit(world.top)
    git(form, "merge", "-q", "main")
    edit(form, 10, "y")
    assert found(world) == []
    edit(login, 10, "z")
    row = radar(world)
    assert row["conflicts"] == [] and any("login has landed, as other commits" in note for note in row["notes"])


def test_one_branch_is_not_two_pieces_of_work(world: World) -> None:
    """Neither a branch and the work tree in which it is rebased, nor one that was pushed and is rebased since."""
    bare = world.top.parent / "remote.git"
    git(world.top, "clone", "-q", "--bare", str(world.top), str(bare))
    login = tree(world, "login")
    world.git("remote", "add", "origin", str(bare))
    world.git("config", "gitcoord.authority", "origin")
    edit(login, 10, "x")
    commit(login)
    git(login, "push", "-q", "origin", "login")
    world.git("fetch", "-q", "origin")
    edit(login, 10, "z")
    git(login, "commit", "-qa", "--amend", "-m", "again")
    world.git("config", "--unset", "gitcoord.authority")
    assert found(world) == []


def test_a_rebase_that_stands_still(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    edit(login, 10, "x")
    commit(login)
    edit(world.top, 10, "trunk")
    commit(world.top)
    git(login, "rebase", "-q", "main", ok=False)
    edit(form, 10, "y")
    row = radar(world)
    (conflict,) = row["conflicts"]
    assert {side["branch"] for side in conflict["sides"]} == {"login", "form"}
    assert [side["lines"] for side in conflict["sides"]] == [[[10, 10]], [[10, 10]]], (
        "as it was, not the conflict's marks"
    )
    assert any("a rebase is under way in work tree proj-login" in note for note in row["notes"])


def test_a_merge_that_stands_still(world: World) -> None:
    """The changes that trunk brings there are not the agent's own work."""
    login, form = tree(world, "login"), tree(world, "form")
    edit(login, 10, "x")
    commit(login)
    edit(world.top, 10, "trunk")
    edit(world.top, 5, "trunk", "other")
    commit(world.top)
    git(login, "merge", "-q", "main", ok=False)
    edit(form, 20, "y")
    edit(form, 5, "y", "other")
    row = radar(world)
    assert row["conflicts"] == [] and any("a merge is under way" in note for note in row["notes"])


def test_a_work_tree_whose_directory_is_gone(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    edit(login, 10, "x")
    commit(login)
    shutil.rmtree(login)
    edit(form, 10, "y")
    (row,) = radar(world)["conflicts"]
    assert {(side["branch"], bool(side["tree"])) for side in row["sides"]} == {("login", False), ("form", True)}


def test_merge_attributes_of_trunk_count(world: World) -> None:
    world.commit({".gitattributes": "f merge=union\n"})
    edit(tree(world, "login"), 10, "x")
    edit(tree(world, "form"), 10, "y")
    assert found(world) == []


def test_an_old_branch_is_nobodys_work_and_that_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"@{int(time.time()) - 31 * 86_400} +0000")
    world.git("switch", "-q", "-c", "old")
    edit(world.top, 10, "x")
    commit(world.top)
    world.git("switch", "-q", "main")
    edit(world.top, 10, "y")
    row = radar(world)
    assert row["conflicts"] == [] and "1 older branches that are checked out nowhere were not looked at" in row["notes"]


# --- what is not read


def test_secrets_and_large_files_are_not_read_and_that_is_said(world: World) -> None:
    world.commit({".gitattributes": "secret* gitcoord-read=deny\n", "secret": "s\n"})
    trees = tree(world, "login"), tree(world, "form")
    for number, place in enumerate(trees):
        (place / "secret").write_text(f"changed by {number}\n")
        (place / "secret.new").write_text(f"new {number}\n")
        (place / "large").write_bytes(bytes([number]) * (5 << 20))
        (place / "own").write_text(f"{number}\n")
        (place / ".gitattributes").write_text("secret* gitcoord-read=deny\nown gitcoord-read=deny\n*.big filter=lfs\n")
        (place / "x.big").write_text(f"{number}\n")
        edit(place, 10, f"by {number}")
    row = radar(world)
    assert [conflict["path"] for conflict in row["conflicts"]] == ["f"]
    for part in row["work"]:
        why = {left["path"]: left["why"] for left in part["left_out"]}
        assert set(why) == {"secret", "secret.new", "large", "own", "x.big"}
        assert why["large"] == "more than 4 MiB" and why["own"] == why["secret"] == "gitcoord-read keeps it from agents"
    words = world.coord("radar").err
    assert "left out in work tree proj-login (gitcoord-read keeps it from agents): secret, own, secret.new" in words


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_process_opens_a_secret(world: World) -> None:
    """But git, where a file's size and time leave open whether it has changed."""
    world.commit({".gitattributes": "hush* gitcoord-read=deny\n", "hush": "s\n"})
    trees = tree(world, "login"), tree(world, "form")
    for place in (world.top, *trees):
        os.utime(place / "hush", (0, 0))
        git(place, "update-index", "--refresh")
    for number, place in enumerate(trees):
        (place / "hush").write_text(f"changed by {number}\n")
        (place / "hush.new").write_text(f"new {number}\n")
        edit(place, 10, f"by {number}")
    log = world.top.parent / "log"
    argv = ["strace", "-f", "-e", "trace=open,openat", "-o", str(log), *COORD, "radar"]
    done = subprocess.run(argv, cwd=world.top, env=world.environ("alice", {}), capture_output=True, check=True)
    assert b"will conflict" in done.stdout
    opened = log.read_text()
    assert "proj-login/f" in opened or '"f"' in opened, "the others are read"
    assert "hush" not in opened


# --- bounds and odd places


def test_hostile_names(world: World) -> None:
    names = ["a b", "-x", "new\nline", "q'uote\"", "tab\t", "\x1b[31m", "ü", "x" * 200]
    raw = os.fsdecode(b"\xff\xfe")
    for number, place in enumerate((tree(world, "login"), tree(world, "form"))):
        for name in [*names, raw]:
            (place / name).write_text(f"{number}\n")
    assert {row["path"] for row in radar(world)["conflicts"]} >= {*names, raw}
    done = world.coord("radar")
    assert_harmless(done.said)
    assert "will conflict in " in done.out and " and 6 more" in done.out


def test_a_nested_repository_and_a_conflict_that_is_left_are_not_read(world: World) -> None:
    login, form = tree(world, "login"), tree(world, "form")
    git(login, "init", "-q", "nested")
    (login / "nested/x").write_text("x\n")
    edit(login, 10, "stashed")
    git(login, "stash", "-q")
    edit(login, 10, "x")
    commit(login)
    git(login, "stash", "pop", "-q", ok=False)
    edit(form, 10, "y")
    row = radar(world)
    assert [conflict["path"] for conflict in row["conflicts"]] == ["f"]
    (part,) = [part for part in row["work"] if part["branch"] == "login"]
    assert part["left_out"] == [{"path": "f", "why": "in conflict"}]


@pytest.mark.slow
def test_thirty_work_trees(world: World) -> None:
    for number in range(30):
        place = world.top.parent / f"w{number}"
        world.git("worktree", "add", "-q", "-b", f"w{number}", str(place))
        edit(place, 10 if number < 3 else number + 5, f"by {number}", "f" if number < 3 else "other")
    before = state(world)
    row = radar(world)
    assert (row["complete"], len(row["work"]), row["notes"]) == (True, 30, [])
    assert len([one for one in row["conflicts"] if one["path"] == "f"]) == 3
    assert state(world) == before


def test_many_conflicts_are_bounded(world: World) -> None:
    for number, place in enumerate((tree(world, "login"), tree(world, "form"))):
        for name in range(30):
            (place / f"n{name}").write_text(f"{number}\n")
    row = radar(world)
    assert len(row["conflicts"]) == 20 and row["more"] == 10
    assert "and 10 more files" in world.coord("radar").out


def test_a_killed_process_leaves_its_directory_to_the_next(world: World) -> None:
    left = world.top / ".git/gitcoord/radar/work/dead"
    left.mkdir(parents=True)
    (left / "x").write_text("x")
    Path(f"{left}.lock").touch()
    for number, place in enumerate((tree(world, "login"), tree(world, "form"))):
        edit(place, 10, f"by {number}")
    assert found(world) and os.listdir(left.parent) == []


def test_one_work_tree_and_no_branch(world: World) -> None:
    edit(world.top, 10, "x")
    assert world.coord("radar").out == "no work under way conflicts\n"


def test_work_trees_of_a_bare_repository(world: World) -> None:
    bare = world.top.parent / "bare.git"
    git(world.top, "clone", "-q", "--bare", str(world.top), str(bare))
    for number in range(2):
        git(bare, "worktree", "add", "-q", "-b", f"w{number}", str(bare.parent / f"w{number}"), "main")
        edit(bare.parent / f"w{number}", 10, f"by {number}")
    there = World(bare.parent / "w0", made=True)
    assert there.coord("init", "--adopt").code == 0
    assert found(there) == ["w0 and w1 will conflict in f line 10"]


def test_without_trunk_it_cannot_be_judged(world: World) -> None:
    world.git("branch", "-m", "main", "other")
    refused(world.coord("radar", "--json"), "could-not-judge", 4)
    assert world.coord("status").code == 0


def test_before_set_up(tmp_path: Path) -> None:
    plain = World(tmp_path / "plain")
    done = plain.coord("radar", "--json")
    assert done.code == 0 and done.json["initialised"] is False


# --- others, and bounds of time


def test_what_others_pushed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "proj")
    world, bare, colleague = World(tmp_path / "proj"), tmp_path / "remote.git", tmp_path / "colleague"
    world.commit({"f": TEXT})
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    world.git("remote", "add", "origin", str(bare))
    world.git("push", "-q", "-u", "origin", "main")
    assert world.coord("init", "--remote", "origin").code == 0
    git(tmp_path, "clone", "-q", str(bare), str(colleague))
    git(colleague, "switch", "-q", "-c", "form")
    edit(colleague, 10, "by bob")
    commit(colleague, "work\n\nAgent: bob")
    git(colleague, "push", "-q", "origin", "form")
    edit(world.top, 10, "by alice")
    assert found(world) == [], "not fetched yet"
    world.git("fetch", "-q", "origin")
    (row,) = radar(world)["conflicts"]
    by = {side["agent"]: side for side in row["sides"]}
    assert (by["bob"]["branch"], by["bob"]["remote"], by["bob"]["tree"]) == ("form", "origin", "")
    assert "bob (origin/form)" in row["message"]
    world.git("branch", "form", "origin/form")
    assert len(radar(world)["conflicts"]) == 1, "the same branch twice is one piece of work"
    git(colleague, "push", "-q", "origin", "form:main")
    world.git("fetch", "-q", "origin")
    assert found(world) == [], "it has landed at the remote"


def test_a_merge_that_does_not_end_is_ended(world: World) -> None:
    world.commit({".gitattributes": "f merge=slow\n"})
    world.git("config", "merge.slow.driver", "while :; do :; done")
    login, form = tree(world, "login"), tree(world, "form")
    edit(login, 10, "x")
    edit(form, 10, "y")
    before = state(world)
    with chdir(world.top):
        ctx = open_repository(environ(), writing=False)
        try:
            done = look(ctx, read_snapshot(ctx).state, 2.0)
        finally:
            ctx.store.close()
    assert done.conflicts == [] and not done.complete
    assert "1 pairs could not be merged: no answer within" in done.notes[0]
    assert state(world) == before and os.listdir(world.top / ".git/gitcoord/radar/work") == []
