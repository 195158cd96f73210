"""`git coord sync`: is the current branch behind, and bringing it up to date whole or not at all."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shared_remote import Shared
from tests.cli.support import Done, World
from tests.support import COORD, git


@pytest.fixture
def shared(git_repo: Path, tmp_path: Path) -> Iterator[Shared]:
    yield Shared(World(git_repo), tmp_path)


def untouched(shared: Shared) -> tuple[str, str, str]:
    """HEAD, what git status says, and whether a merge is under way."""
    world = shared.world
    return (
        world.git("rev-parse", "HEAD"),
        world.git("status", "--porcelain"),
        str((world.top / ".git/MERGE_HEAD").exists()),
    )


# --- looking


def test_up_to_date(shared: Shared) -> None:
    assert shared.world.coord("sync") == Done(0, "up to date with 'main'\n", "")
    row = shared.world.coord("sync", "--json").json
    assert (row["behind"], row["remote"], row["rollback"], row["ok"]) == (0, "origin", [], True)


def test_behind_says_how_many_whose_and_what_goes_back(shared: Shared) -> None:
    shared.bob_pushes({"src/a.py": "theirs\n"})
    shared.bob_pushes({"new.txt": "new\n"}, author="Cleo")
    shared.bob_pushes({"new.txt": "newer\n"}, author="Cleo")
    done = shared.world.coord("sync")
    assert done.code == 1
    assert done.out == (
        "behind 'main' by 3 commits\n  by Cleo (2), Bob (1)\n  a deploy from here would take back: new.txt, src/a.py\n  a merge would be clean\n"
    )
    assert done.err == "hint: bring it up to date: git coord sync --pull\n"
    row = shared.world.coord("sync", "--json").json
    assert row["authors"] == [{"name": "Cleo", "commits": 2}, {"name": "Bob", "commits": 1}]
    assert (row["rollback"], row["rollback_total"], row["conflict"]) == (["new.txt", "src/a.py"], 2, False)


def test_commits_of_agents_are_named_by_their_agent(shared: Shared) -> None:
    shared.bob_pushes({"new.txt": "new\n"}, message="work\n\nAgent: carol\n")
    shared.bob_pushes({"new.txt": "newer\n"}, message="work\n\nAgent: carol\n")
    assert "  by carol (2)\n" in shared.world.coord("sync").out


def test_without_fetch_only_what_is_known_here_counts(shared: Shared) -> None:
    shared.bob_pushes({"src/a.py": "theirs\n"})
    assert shared.world.coord("sync", "--no-fetch").code == 0
    assert shared.world.coord("sync").code == 1
    assert shared.world.coord("sync", "--no-fetch").code == 1


def test_a_file_changed_on_both_sides_does_not_go_back(shared: Shared) -> None:
    shared.bob_pushes({"src/a.py": "theirs\n", "src/b.py": "theirs\n"})
    shared.world.commit({"src/a.py": "ours\n"})
    row = shared.world.coord("sync", "--json").json
    assert (row["rollback"], row["conflict"], row["conflicting"]) == (["src/b.py"], True, ["src/a.py"])
    theirs = shared.world.git("rev-parse", "origin/main")
    assert f"hint: merge by hand: git merge {theirs[:12]}\n" in shared.world.coord("sync").err


def test_at_most_twenty_files_are_named(shared: Shared) -> None:
    shared.bob_pushes({f"many/{number:02}": "x\n" for number in range(30)})
    row = shared.world.coord("sync", "--json").json
    assert (len(row["rollback"]), row["rollback_total"]) == (20, 30)
    assert "and 10 more" in shared.world.coord("sync").out


def test_a_binary_conflict_is_a_conflict(shared: Shared) -> None:
    """The tree that git merge-tree writes looks merged there; only its exit code tells."""
    shared.bob_pushes({"big.bin": "\0theirs\n"})
    before = shared.world.commit({"big.bin": "\0ours\n"})
    row = shared.world.coord("sync", "--json").json
    assert (row["conflict"], row["conflicting"], row["behind"]) == (True, ["big.bin"], 1)
    assert shared.world.coord("sync", "--pull").code == 1
    assert shared.world.git("rev-parse", "HEAD") == before


def test_the_local_branch_counts_where_it_is_fresher(shared: Shared) -> None:
    world = shared.world
    world.git("branch", "topic")
    world.commit({"src/a.py": "not pushed\n"})
    world.git("checkout", "-q", "topic")
    assert world.coord("sync", "--json").json["behind"] == 1


def test_both_count_where_they_went_apart(shared: Shared) -> None:
    world = shared.world
    world.git("branch", "topic")
    world.commit({"src/a.py": "not pushed\n"})
    shared.bob_pushes({"src/b.py": "theirs\n"})
    world.git("checkout", "-q", "topic")
    row = world.coord("sync", "--json").json
    assert (row["behind"], row["rollback"]) == (2, ["src/a.py", "src/b.py"])
    refused = world.coord("sync", "--pull", "--json")
    assert (refused.code, refused.json["error"]) == (1, "diverged")
    world.git("checkout", "-q", "main")
    assert world.coord("sync", "--json").json["behind"] == 1


def test_no_common_history(shared: Shared) -> None:
    world = shared.world
    world.git("checkout", "-q", "--orphan", "new")
    world.git("commit", "-q", "-m", "from nothing")
    world.git("rm", "-q", "--cached", "src/a.py")
    world.git("commit", "-q", "-m", "less")
    row = world.coord("sync", "--json").json
    assert (row["conflict"], row["rollback"]) == (True, ["src/a.py"])


def test_a_replaced_object_does_not_hide_what_is_missing(shared: Shared) -> None:
    theirs = shared.bob_pushes({"src/a.py": "theirs\n"})
    shared.world.git("fetch", "-q")
    base = shared.world.git("rev-parse", "HEAD")
    shared.world.git("replace", "-f", base, shared.world.git("commit-tree", "HEAD^{tree}", "-p", theirs, "-m", "x"))
    assert shared.world.coord("sync").code == 1
    shared.world.git("replace", "-d", base)
    (shared.world.top / ".git/info/grafts").write_text(f"{base} {theirs}\n")
    assert shared.world.coord("sync").code == 1


def test_many_look_at_once(shared: Shared) -> None:
    """They all fetch the same branch; a process that finds it locked tries again."""
    shared.bob_pushes({"src/a.py": "theirs\n"})
    lookers = [
        subprocess.Popen(
            [*COORD, "sync"], cwd=shared.world.top, env=shared.world.environ(f"a{number}", {}), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for number in range(6)
    ]  # fmt: skip
    ends = [(looker.communicate(timeout=60), looker.returncode) for looker in lookers]
    assert [code for _, code in ends] == [1] * 6, ends


def test_settings_of_the_remote_do_not_move_branches_here(shared: Shared) -> None:
    world = shared.world
    world.git("config", "remote.origin.fetch", "+refs/*:refs/*")
    before = world.git("rev-parse", "main")
    shared.bob_pushes({"src/a.py": "theirs\n"})
    assert world.coord("sync").code == 1 and world.git("rev-parse", "main") == before


# --- could not judge


def test_an_unreachable_remote_is_never_fine(shared: Shared) -> None:
    shared.cut_off()
    done = shared.world.coord("sync", "--json")
    assert (done.code, done.json["error"]) == (5, "unreachable")
    assert "git fetch origin main" in done.json["hints"][0]
    assert shared.world.coord("sync", "--no-fetch").code == 0
    assert shared.world.coord("sync", "--pull").code == 5


def test_a_remote_without_the_branch(shared: Shared) -> None:
    git(shared.remote, "update-ref", "-d", "refs/heads/main")
    done = shared.world.coord("sync", "--json")
    assert (done.code, done.json["error"]) == (4, "could-not-judge")
    assert "git push origin main" in done.json["hints"][0]


def shallow(shared: Shared) -> World:
    """A shallow clone with a ledger of its own."""
    clone = shared.place / "shallow"
    git(shared.place, "clone", "-q", "--depth=1", f"file://{shared.remote}", str(clone))
    world = World.__new__(World)
    world.top, world.coloured = clone, False
    return world.init()


def test_a_shallow_clone(shared: Shared) -> None:
    """A yes can be trusted there, a no cannot."""
    world = shallow(shared)
    assert world.coord("sync").code == 0
    world.git("checkout", "-q", "--orphan", "apart")
    world.git("commit", "-q", "-m", "whose history is not known here")
    done = world.coord("sync", "--json")
    assert (done.code, done.json["error"]) == (4, "could-not-judge")
    assert "git fetch --unshallow origin" in done.json["hints"][0]
    world.git("fetch", "-q", "--unshallow", "origin")
    assert world.coord("sync").code == 1


def test_history_that_cannot_be_read(shared: Shared) -> None:
    world = shared.world
    oid = world.git("rev-parse", "HEAD")
    world.commit({"src/a.py": "two\n"})
    (world.top / ".git/objects" / oid[:2] / oid[2:]).unlink()
    done = world.coord("sync", "--no-fetch", "--json")
    assert (done.code, done.json["error"]) == (4, "could-not-judge")
    assert "git fetch origin" in done.json["hints"][0]


def test_a_ref_that_cannot_be_read_is_not_no_ref(shared: Shared) -> None:
    (shared.world.top / ".git/refs/remotes/origin/main").write_text("")
    done = shared.world.coord("sync", "--no-fetch", "--json")
    assert (done.code, done.json["error"]) == (4, "could-not-judge")


def test_nothing_committed_yet(git_repo: Path) -> None:
    top = git_repo
    world = World(top, ledger=True)
    world.git("checkout", "-q", "--orphan", "fresh")
    done = world.coord("sync")
    assert done.code == 2 and "nothing is committed" in done.err


# --- without a remote, without a ledger


def test_without_a_remote(world: World) -> None:
    world.git("checkout", "-q", "-b", "topic")
    assert world.coord("sync").code == 0
    world.git("checkout", "-q", "main")
    world.commit({"src/a.py": "landed\n"})
    world.git("checkout", "-q", "topic")
    done = world.coord("sync", "--json")
    assert (done.code, done.json["behind"], done.json["remote"]) == (1, 1, "")
    assert world.coord("sync", "--pull").code == 0
    assert world.git("rev-parse", "topic") == world.git("rev-parse", "main")


def test_without_the_sync_branch(world: World) -> None:
    world.git("branch", "-m", "main", "other")
    done = world.coord("sync", "--json")
    assert (done.code, done.json["error"]) == (4, "could-not-judge")


# --- pulling


def test_pull_fast_forwards(shared: Shared) -> None:
    theirs = shared.bob_pushes({"src/a.py": "theirs\n"})
    done = shared.world.coord("sync", "--pull")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"'main' was behind its remote by 1 commit; now it is up to date at {theirs[:12]}\n"
    assert shared.world.git("rev-parse", "HEAD") == theirs
    assert (shared.world.top / "src/a.py").read_text() == "theirs\n"
    assert shared.world.coord("sync", "--pull").out == "up to date with 'main'\n"


def test_pull_merges_where_that_is_clean(shared: Shared) -> None:
    theirs = shared.bob_pushes({"src/a.py": "theirs\n"})
    ours = shared.world.commit({"src/b.py": "ours\n"})
    shared.world.git("config", "merge.ff", "only")
    row = shared.world.coord("sync", "--pull", "--json").json
    assert shared.world.git("log", "-1", "--format=%P").split() == [ours, theirs]
    assert shared.world.git("log", "-1", "--format=%s") == "Merge the remote's 'main' into 'main'"
    assert row["head"] == shared.world.git("rev-parse", "HEAD") and row["behind"] == 1 and row["ok"]
    assert untouched(shared)[1:] == ("", "False")


def test_pull_changes_nothing_on_a_conflict(shared: Shared) -> None:
    shared.bob_pushes({"src/a.py": "theirs\n", "src/b.py": "theirs\n"})
    shared.world.commit({"src/a.py": "ours\n"})
    shared.world.write("notes", "mine\n")
    before = untouched(shared)
    done = shared.world.coord("sync", "--pull", "--json")
    assert (done.code, done.json["error"], done.json["stale"]["conflicting"]) == (1, "conflict", ["src/a.py"])
    assert untouched(shared) == before
    words = shared.world.coord("sync", "--pull").err
    assert "a merge would conflict in src/a.py" in words and "by Bob (1)" in words


def test_pull_leaves_uncommitted_work_alone(shared: Shared) -> None:
    shared.bob_pushes({"src/a.py": "theirs\n"})
    shared.world.write("src/b.py", "mine, elsewhere\n")
    shared.world.write("src/a.py", "mine\n")
    before = untouched(shared)
    done = shared.world.coord("sync", "--pull", "--json")
    assert (done.code, done.json["error"]) == (1, "dirty") and "src/a.py" in done.json["message"]
    assert untouched(shared) == before
    said = shared.world.coord("sync", "--pull").err
    assert "put them away: git stash, and then git stash pop\n" in said and "git does not know" not in said
    assert "would be clean" not in said
    shared.world.git("checkout", "-q", "src/a.py")
    assert shared.world.coord("sync", "--pull").code == 0
    assert (shared.world.top / "src/b.py").read_text() == "mine, elsewhere\n"


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_pull_overwrites_no_file_that_git_does_not_know(shared: Shared, ignored: bool, ahead: bool) -> None:
    shared.bob_pushes({"secret.env": "theirs\n"})
    if ahead:
        shared.world.commit({"src/b.py": "ours\n"})
    shared.world.write("secret.env", "mine\n")
    if ignored:
        (shared.world.top / ".git/info/exclude").write_text("*.env\n")
    before = untouched(shared)
    assert shared.world.coord("sync", "--pull", "--json").json["error"] == "dirty"
    assert untouched(shared) == before
    assert (shared.world.top / "secret.env").read_text() == "mine\n"
    said = shared.world.coord("sync", "--pull").err
    assert (
        "hint: git does not know secret.env, and git stash leaves it: put it aside, mv secret.env secret.env.mine\n"
        in said
    )
    assert "commit them" not in said and "would be clean" not in said
    (shared.world.top / "secret.env").rename(shared.world.top / "secret.env.mine")
    assert shared.world.coord("sync", "--pull").code == 0


def test_pull_leaves_staged_work_alone(shared: Shared) -> None:
    """A merge that is no fast-forward needs a clean index: git itself says no."""
    shared.bob_pushes({"src/a.py": "theirs\n"})
    shared.world.commit({"src/b.py": "ours\n"})
    shared.world.write("staged", "mine\n")
    shared.world.git("add", "staged")
    before = untouched(shared)
    assert shared.world.coord("sync", "--pull", "--json").json["error"] == "merge"
    assert untouched(shared) == before


def test_pull_undoes_what_a_hook_stopped(shared: Shared) -> None:
    shared.bob_pushes({"src/a.py": "theirs\n"})
    shared.world.commit({"src/b.py": "ours\n"})
    hook = shared.world.top / ".git/hooks/pre-merge-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    shared.world.write("notes", "mine\n")
    before = untouched(shared)
    done = shared.world.coord("sync", "--pull", "--json")
    assert (done.code, done.json["error"]) == (1, "merge") and "not today" in done.json["message"]
    assert untouched(shared) == before


def test_pull_waits_for_what_is_under_way(shared: Shared) -> None:
    world = shared.world
    shared.bob_pushes({"src/a.py": "theirs\n"})
    world.git("checkout", "-q", "-b", "one")
    world.commit({"src/a.py": "one\n"})
    world.git("checkout", "-q", "-b", "two", "main")
    world.commit({"src/a.py": "two\n"})
    for words, end in (
        (("rebase", "one"), "rebase"),
        (("merge", "one"), "merge"),
        (("cherry-pick", "one"), "cherry-pick"),
    ):
        world.git(*words, ok=False)
        done = world.coord("sync", "--pull", "--json")
        assert (done.code, done.json["error"]) == (1, "under-way"), words
        world.git(end, "--abort")
    world.git("checkout", "-q", "--detach")
    assert world.coord("sync", "--pull", "--json").json["error"] == "detached"


def test_pull_in_a_linked_work_tree_below_a_directory(shared: Shared) -> None:
    shared.world.git("worktree", "add", "-q", str(shared.place / "linked"), "-b", "topic")
    theirs = shared.bob_pushes({"src/a.py": "theirs\n"})
    done = shared.world.coord("sync", "--pull", "--json", cwd=str(shared.place / "linked/src"))
    assert done.code == 0 and shared.world.git("rev-parse", "topic") == theirs


def test_looking_changes_no_branch(shared: Shared) -> None:
    shared.bob_pushes({"src/a.py": "theirs\n"})
    before = {ref: oid for ref, oid in shared.world.refs().items() if ref.startswith("refs/heads/")}
    shared.world.coord("sync", agent="")
    assert {ref: oid for ref, oid in shared.world.refs().items() if ref.startswith("refs/heads/")} == before
    assert json.loads(shared.world.coord("sync", "--json", agent="").out)["behind"] == 1
