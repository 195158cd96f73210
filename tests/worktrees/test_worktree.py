"""`git coord worktree`: add is all or nothing, list shows owner and state, done deletes no work that is only here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.cli.test_json import holds, refused
from tests.support import COORD, git


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A repository below a directory of its own, since work trees come beside it."""
    git(tmp_path, "init", "-q", "proj")
    world = World(tmp_path / "proj")
    world.commit({".gitignore": "*.log\nbuild/\n"})
    return world.init()


def tree(world: World, name: str = "fix") -> Path:
    return world.top.parent / f"proj-{name}"


def add(world: World, *words: str, agent: str = "alice") -> Done:
    return world.coord("worktree", "add", *words, agent=agent)


def made(world: World, *words: str, agent: str = "alice") -> Path:
    found = world.coord("worktree", "add", *words, "--json", agent=agent)
    assert found.code == 0, found
    return Path(holds(found, "new work tree")["path"])


def done(world: World, *words: str, agent: str = "alice") -> Done:
    return world.coord("worktree", "done", *words, "--json", agent=agent)


def rows(world: World) -> dict[str, dict[str, object]]:
    found = holds(world.coord("worktree", "list", "--json"), "work trees")
    return {row["name"]: row for row in found["worktrees"]}


def commit_in(place: Path, name: str, text: str) -> None:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text(text)
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "work there")


def land(world: World, place: Path) -> None:
    world.git("merge", "-q", "--ff-only", git(place, "rev-parse", "HEAD").decode().strip())


# --- add -----------------------------------------------------------------------------------------------------------


def test_all_in_one_go(world: World) -> None:
    found = add(world, "fix", "--agent", "bob", "--path", "src/a.py", "--path", "docs")
    assert found.code == 0, found
    assert found.out.split("\n")[0] == f"{tree(world)}: branch fix, agent bob"
    assert world.claims() == ["path/docs/@bob", "path/src/a.py/@bob"]
    assert git(tree(world), "branch", "--show-current") == b"fix\n"
    assert git(tree(world), "config", "gitcoord.agent") == b"bob\n"
    assert world.git("config", "--get", "gitcoord.agent", ok=False) == "", "the other work trees keep theirs"
    assert git(tree(world), "status", "--porcelain") == b""


def test_inside_it_one_is_its_agent(world: World) -> None:
    place = made(world, "fix", "--agent", "bob")
    assert world.claim("src/b.py", "--json", agent="", cwd=str(place)).json["claims"][0]["agent"] == "bob"
    (place / "src/b.py").write_text("by bob\n")
    found = world.run(COORD, ("commit", "-m", "x", "src/b.py"), "", cwd=str(place))
    assert found.code == 0, found
    assert git(place, "log", "-1", "--format=%B").split() == [b"x", b"Agent:", b"bob"]


def test_whose_it_is_unless_said(world: World) -> None:
    made(world, "one", agent="alice")
    assert git(tree(world, "one"), "config", "gitcoord.agent") == b"alice\n"
    made(world, "two", agent="")
    assert git(tree(world, "two"), "config", "gitcoord.agent") == b"two\n"
    assert world.at_terminal("worktree", "add", "three", argv=COORD).code == 0
    assert git(tree(world, "three"), "config", "gitcoord.agent") == b"three\n"


def test_branch_start_and_place(world: World, tmp_path: Path) -> None:
    first = world.git("rev-parse", "HEAD")
    world.commit({"more": "x\n"})
    world.git("checkout", "-q", "-b", "elsewhere")
    world.commit({"unlanded": "x\n"})
    made(world, "fix", "--branch", "topic/fix")
    assert world.git("rev-parse", "topic/fix") == world.git("rev-parse", "main"), "from trunk"
    world.git("config", "gitcoord.worktrees", "../trees")
    assert made(world, "old", "--from", first[:10]) == tmp_path / "trees/old"
    assert world.git("rev-parse", "old") == first


def test_a_claim_judges_work_from_where_the_branch_starts(world: World) -> None:
    first = world.git("rev-parse", "HEAD")
    world.commit({"src/a.py": "newer\n"})
    found = add(world, "fix", "--from", first, "--path", "src", "--json")
    assert [claim["base"] for claim in holds(found, "new work tree")["claims"]] == [first]


def nothing_left(world: World, before: dict[str, str], name: str = "fix") -> None:
    assert world.refs() == before
    assert not os.path.lexists(tree(world, name)) and len(world.git("worktree", "list").split("\n")) == 1
    assert not list((world.top / ".git").glob("worktrees/*"))


def test_a_refused_claim_leaves_nothing(world: World) -> None:
    world.take("src", agent="carol")
    before, settings = world.refs(), (world.top / ".git/config").read_text()
    row = refused(add(world, "fix", "--path", "docs", "--path", "src/a.py", "--json"), "held")
    assert [held["agent"] for held in row["held"]] == ["carol"]
    nothing_left(world, before)
    assert (world.top / ".git/config").read_text() == settings


def test_a_claim_that_is_lost_at_the_last_moment_leaves_nothing(world: World) -> None:
    """Carol claims while the work tree is being checked out."""
    program = world.top / ".git/claim.py"
    from tests.support import CLAIM

    program.write_text(CLAIM[-1])
    hook = world.top / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nGITCOORD_AGENT=carol {CLAIM[0]} -I -S {program} src >&2\ntouch left-by-hook\n")
    hook.chmod(0o755)
    before = set(world.refs())
    refused(add(world, "fix", "--path", "src/a.py", "--json"), "held")
    assert world.claims() == ["path/src/@carol"]
    assert {ref for ref in world.refs() if not ref.startswith("refs/claims/")} - before == {
        "refs/gitcoord/sessions/carol"
    }
    nothing_left(world, world.refs())


def test_a_hook_that_fails_leaves_nothing(world: World) -> None:
    hook = world.top / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    before = world.refs()
    refused(add(world, "fix", "--path", "src", "--json"), "store", 4)
    nothing_left(world, before)


def at_once(world: World, *names: str, path: str) -> list[int]:
    started = [
        subprocess.Popen(
            [*COORD, "worktree", "add", name, "--agent", f"a{number}", "--path", f"{path}{number}", "--json"], cwd=world.top,
            stdout=subprocess.PIPE,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip
    for process in started:
        process.communicate()
    return sorted(process.returncode for process in started)


def test_many_at_once(world: World) -> None:
    assert at_once(world, "same", "same", "same", path="p") == [0, 1, 1]
    assert len(world.claims()) == 1, "only one got its claim"
    assert at_once(world, "x", "y", "z", path="q") == [0, 0, 0]
    assert sorted(row for row in rows(world)) == ["proj", "same", "x", "y", "z"]


def test_what_is_there_already_is_refused_and_stays(world: World) -> None:
    world.git("branch", "taken")
    row = refused(add(world, "taken", "--json"), "exists")
    assert "there is a branch 'taken' already" in row["message"] and "--branch" in row["hints"][0]
    assert add(world, "gitcoord").code == 1
    tree(world).mkdir()
    refused(add(world, "fix", "--json"), "exists")
    tree(world).rmdir()
    os.symlink("nowhere", tree(world))
    refused(add(world, "fix", "--json"), "exists")
    assert os.path.islink(tree(world)) and "refs/heads/fix" not in world.refs()
    tree(world).unlink()
    made(world, "fix")
    refused(add(world, "fix", "--branch", "other", "--json"), "exists")
    assert "refs/heads/other" not in world.refs()


@pytest.mark.parametrize(
    "words",
    [("../x",), ("a/b",), ("-x",), (".x",), ("x", "--agent", "A B"), ("x", "--branch", "a..b"), ("x", "--branch", "-b"),
     ("x", "--from", "nothing"), ("x", "--path", "../out"), ("x" * 65,)],
)  # fmt: skip
def test_wrong_words_change_nothing(world: World, words: tuple[str, ...]) -> None:
    before = world.refs()
    found = world.coord("worktree", "add", *words[1:], "--json", "--", words[0])
    assert found.code == 2, found
    nothing_left(world, before, "x")


def test_killed_and_halted(world: World) -> None:
    world.take("src", agent="bob")
    world.person("kill", "bob")
    before = world.refs()
    refused(add(world, "fix", "--agent", "bob", "--json"), "killed")
    assert world.refs() == before
    world.person("halt")
    refused(add(world, "fix", "--json"), "halted")


def test_a_bare_repository_stays_bare(world: World, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(world.top), "store.git")
    bare = tmp_path / "store.git"
    git(bare, "update-ref", "-d", "refs/heads/gitcoord")
    assert world.coord("init", cwd=str(bare)).code == 0
    found = world.run(COORD, ("worktree", "add", "fix", "--path", "src", "--json"), "alice", cwd=str(bare))
    assert found.code == 0 and found.json["path"] == str(tmp_path / "store-fix"), found
    assert git(bare, "rev-parse", "--is-bare-repository") == b"true\n"
    assert git(tmp_path / "store-fix", "status", "--porcelain") == b""
    assert git(bare, "config", "--file", "config", "core.bare", ok=False) == b""
    found = world.run(COORD, ("worktree", "list", "--json"), "alice", cwd=str(bare))
    assert [row["dirty"] for row in holds(found, "work trees")["worktrees"]] == [None, 0]
    assert world.run(COORD, ("worktree", "done", "fix", "--json"), "alice", cwd=str(bare)).code == 0


# --- list ----------------------------------------------------------------------------------------------------------


def test_the_list(world: World) -> None:
    place = made(world, "fix", "--agent", "bob", "--path", "src/a.py")
    world.claim("docs", "--task", "T-7", agent="bob", cwd=str(place))
    world.take("main-only", agent="bob")
    commit_in(place, "src/a.py", "there\n")
    (place / "new").write_text("x\n")
    (place / "x.log").write_text("ignored\n")
    world.commit({"one": "x\n"})
    world.commit({"two": "x\n"})
    found = rows(world)
    assert list(found) == ["proj", "fix"]
    row = found["fix"]
    assert {key: row[key] for key in ("branch", "agent", "tasks", "dirty", "ahead", "behind", "under_way", "main")} == {
        "branch": "fix", "agent": "bob", "tasks": ["T-7"], "dirty": 1, "ahead": 1, "behind": 2, "under_way": "", "main": False,
    }  # fmt: skip
    assert [claim["path"] for claim in row["claims"]] == ["docs", "src/a.py"]  # type: ignore[attr-defined]
    assert [claim["path"] for claim in found["proj"]["claims"]] == ["main-only"]  # type: ignore[attr-defined]
    lines = world.coord("worktree", "list").out.split("\n")
    assert lines[1].split() == ["fix", "fix", "bob", "1", "changed", "+1", "-2", "T-7", "docs", "src/a.py"]


def test_the_list_shows_what_is_odd(world: World, tmp_path: Path) -> None:
    world.git("worktree", "add", "-q", "--detach", str(tmp_path / "plain"))
    world.git("worktree", "lock", str(tmp_path / "plain"), "--reason", "on a stick")
    git(tmp_path / "plain", "bisect", "start")
    gone = made(world, "gone")
    for path in sorted(gone.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    gone.rmdir()
    found = rows(world)
    assert (found["plain"]["locked"], found["plain"]["under_way"], found["plain"]["branch"]) == (
        "on a stick",
        "bisect",
        "",
    )
    assert found["proj-gone"]["dirty"] is None


# --- done ----------------------------------------------------------------------------------------------------------


def test_done_removes_what_is_merged(world: World) -> None:
    place = made(world, "fix", "--agent", "bob", "--path", "src/a.py")
    world.take("elsewhere", agent="bob")
    commit_in(place, "src/a.py", "there\n")
    land(world, place)
    world.write("src/a.py", "somebody changes it in the main work tree\n")
    world.git("config", "branch.fix.description", "x")
    row = holds(done(world, "fix"), "ended work tree")
    assert row["released"] == ["src/a.py"] and row["branch_removed"] is True
    assert not place.exists() and "refs/heads/fix" not in world.refs()
    assert world.git("config", "branch.fix.description", ok=False) == ""
    assert world.claims() == ["path/elsewhere/@bob"], "what was claimed elsewhere stays"
    assert world.events()[-1] == "release src/a.py by bob"
    assert '"commit":""' not in world.git("log", "-1", "--format=%B", "gitcoord"), "the work is on record"
    assert world.git("worktree", "list").count("\n") == 0
    refused(done(world, "fix"), "usage", 2)
    made(world, "fix")


def stays(world: World, place: Path, error: str, *words: str, agent: str = "alice") -> dict[str, object]:
    """Refused, and everything is as it was."""
    refs = world.refs()
    files = sorted(str(path) for path in place.rglob("*"))
    row: dict[str, object] = refused(done(world, "fix", *words, agent=agent), error)
    after = world.refs()
    for name in {ref for ref in refs if ref.startswith("refs/gitcoord/sessions/")}:
        refs.pop(name), after.pop(name)
    assert after == refs and sorted(str(path) for path in place.rglob("*")) == files
    return row


def test_unmerged_commits_stay(world: World) -> None:
    place = made(world, "fix", "--path", "src")
    commit_in(place, "src/a.py", "there\n")
    row = stays(world, place, "unmerged")
    assert "1 commit(s) of 'fix' are neither in 'main' nor on a remote" in str(row["message"])
    world.git("branch", "other", "fix")
    stays(world, place, "unmerged")
    assert "land them first: git coord land fix" in done(world, "fix").json["hints"]
    world.git("update-ref", "refs/remotes/origin/fix", "fix")
    assert done(world, "fix").code == 0


def test_commits_beside_the_branch_stay(world: World) -> None:
    place = made(world, "fix")
    git(place, "checkout", "-q", "--detach")
    commit_in(place, "src/a.py", "on no branch\n")
    stays(world, place, "unmerged")
    git(place, "update-ref", "refs/worktree/kept", "HEAD")
    git(place, "checkout", "-q", "fix")
    stays(world, place, "unmerged")
    git(place, "update-ref", "-d", "refs/worktree/kept")
    commit_in(place, "src/a.py", "on the branch\n")
    git(place, "checkout", "-q", "--detach", "main")
    stays(world, place, "unmerged")


def test_uncommitted_work_stays(world: World) -> None:
    place = made(world, "fix", "--path", "src")
    (place / "src/a.py").write_text("changed\n")
    assert stays(world, place, "dirty")["files"] == ["src/a.py"]
    git(place, "checkout", "-q", "src/a.py")
    (place / "new").write_text("x\n")
    git(place, "config", "--worktree", "status.showUntrackedFiles", "no")
    assert stays(world, place, "dirty")["files"] == ["new"]
    git(place, "add", "new")
    (place / "new").unlink()
    assert stays(world, place, "dirty")["files"] == ["new"], "staged only"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_changes_that_git_was_told_to_overlook_stay(world: World, flag: str) -> None:
    place = made(world, "fix")
    git(place, "update-index", flag, "src/a.py")
    (place / "src/a.py").write_text("changed\n")
    assert git(place, "status", "--porcelain") == b""
    assert stays(world, place, "dirty")["files"] == ["src/a.py"]
    (place / "src/a.py").write_text("a\n")
    assert done(world, "fix").code == 0


def test_ignored_files_stay_unless_discarded(world: World) -> None:
    place = made(world, "fix")
    world.write("same.log", "the same\n")
    (place / "same.log").write_text("the same\n")
    os.symlink("target", place / "link.log")
    os.symlink("target", world.top / "link.log")
    (place / "build").mkdir()
    (place / "build/out").write_text("only here\n")
    (place / "other.log").write_text("here\n")
    world.write("other.log", "else\n")
    row = stays(world, place, "ignored")
    assert row["files"] == ["build/out", "other.log"]
    found = holds(done(world, "fix", "--discard-ignored"), "ended work tree")
    assert found["discarded"] == ["build/out", "other.log"] and not place.exists()


def test_an_ignored_repository_stays(world: World) -> None:
    place = made(world, "fix")
    git(place, "init", "-q", "build/nested")
    git(place / "build/nested", "commit", "-q", "--allow-empty", "-m", "x")
    assert stays(world, place, "ignored")["files"] == ["build/nested/"]


def test_a_rebase_a_lock_and_whoever_stands_inside(world: World) -> None:
    place = made(world, "fix")
    git(place, "bisect", "start")
    stays(world, place, "under-way")
    git(place, "bisect", "reset")
    world.git("worktree", "lock", str(place), "--reason", "on a stick")
    assert "on a stick" in str(stays(world, place, "locked")["message"])
    world.git("worktree", "unlock", str(place))
    refused(world.run(COORD, ("worktree", "done", "fix", "--json"), "alice", cwd=str(place / "src")), "inside")
    assert done(world, "fix").code == 0


def test_submodules_stay(world: World, tmp_path: Path) -> None:
    place = made(world, "fix")
    git(tmp_path, "init", "-q", "sub")
    git(tmp_path / "sub", "commit", "-q", "--allow-empty", "-m", "x")
    git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "sub"), "sub")
    git(place, "commit", "-q", "-m", "sub")
    land(world, place)
    stays(world, place, "submodule")


def test_live_claims_of_another(world: World) -> None:
    place = made(world, "fix", "--agent", "bob", "--path", "src")
    row = stays(world, place, "held", agent="carol")
    assert [held["agent"] for held in row["held"]] == ["bob"]  # type: ignore[attr-defined]
    world.fall_silent("bob")
    assert done(world, "fix", agent="carol").code == 0
    made(world, "fix", "--agent", "bob", "--path", "src")
    assert done(world, "fix", agent="alice").code == 0, "who made it may end it"
    made(world, "fix", "--agent", "bob", "--path", "src")
    assert world.at_terminal("worktree", "done", "fix", argv=COORD).code == 0


def test_a_branch_in_use_elsewhere_or_switched_stays(world: World, tmp_path: Path) -> None:
    place = made(world, "fix")
    world.git("branch", "other")
    git(place, "checkout", "-q", "other")
    world.git("worktree", "add", "-q", str(tmp_path / "second"), "fix")
    row = holds(done(world, "fix"), "ended work tree")
    assert row["branch_removed"] is False
    assert {"refs/heads/fix", "refs/heads/other"} <= set(world.refs())


def test_what_cannot_be_ended(world: World, tmp_path: Path) -> None:
    world.git("worktree", "add", "-q", str(tmp_path / "plain"))
    for name in ("nothing", "proj", "plain", str(world.top)):
        refused(done(world, name), "usage", 2)
    place = made(world, "fix")
    place.rename(tmp_path / "moved")
    refused(done(world, "proj-fix"), "missing")
    assert (tmp_path / "moved/src/a.py").exists() and "refs/heads/fix" in world.refs()


def test_stashes_stay(world: World) -> None:
    place = made(world, "fix")
    (place / "src/a.py").write_text("stashed\n")
    git(place, "stash")
    stash = world.git("rev-parse", "refs/stash")
    assert done(world, "fix").code == 0
    assert world.git("rev-parse", "refs/stash") == stash


def test_nobody_commits_while_it_is_removed(world: World) -> None:
    import fcntl

    place = made(world, "fix")
    with open(world.top / ".git/gitcoord/commit-proj-fix.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stays(world, place, "busy")
