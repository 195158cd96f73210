"""pre-push: what a push may bring to the remote, by real pushes of real histories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.gates.support import Project, refused
from tests.support import git


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_an_unclaimed_change_does_not_leave(project: Project) -> None:
    project.branch("work")
    commit = project.commit({"shared/a": "new\n"})
    done = project.push("work", agent="alice")
    assert refused(done, "unclaimed", "shared/a") and commit[:12] in done.err
    project.claim("shared/a", agent="alice")
    assert project.push("work", agent="alice").code == 0


def test_a_path_is_told_once_with_its_first_commit(project: Project) -> None:
    project.branch("work")
    commits = [project.commit({"shared/a": f"{number}\n"})[:12] for number in range(2)]
    done = project.push("work", agent="alice")
    assert [commit in done.err for commit in commits] == [True, False] and done.err.count("[unclaimed]") == 1


def test_released_work_leaves_with_anybody(project: Project) -> None:
    project.work("alice", "work", {"shared/a": "released\n"})
    assert project.push("work:main", agent="orchestrator").code == 0


def test_the_commit_s_own_agent_counts(project: Project) -> None:
    project.branch("work")
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": "new\n"}, agent="alice")
    assert project.push("work", agent="orchestrator").code == 0


def test_edit_and_revert_are_two_changes(project: Project) -> None:
    project.branch("work")
    project.commit({"shared/a": "new\n"})
    project.commit({"shared/a": "a\n"}, "back again")
    assert refused(project.push("work", agent="alice"), "unclaimed", "shared/a")


def test_an_evil_merge_inside_a_push(project: Project) -> None:
    project.branch("side")
    project.commit({"free/x": "side\n"})
    project.branch("work")
    project.commit({"free/y": "work\n"})
    project.unhooked("merge", "-q", "--no-commit", "side")
    project.commit({"shared/a": "evil\n"}, "merge")
    assert refused(project.push("work", agent="alice"), "unclaimed", "shared/a")


def test_ours_does_not_undo_what_landed(project: Project) -> None:
    """A merge with -s ours contains main and drops what it changed: nothing but old..new shows it."""
    project.branch("stale")
    project.commit({"free/x": "stale\n"})
    project.work("bob", "landed", {"shared/a": "landed\n"})
    assert project.push("landed:main", agent="bob").code == 0
    project.switch("stale")
    project.unhooked("merge", "-q", "-s", "ours", "-m", "ours", "origin/main")
    assert refused(project.push("stale:main", agent="alice"), "unclaimed", "shared/a")


def test_a_rewound_sync_branch_is_a_change(project: Project) -> None:
    project.work("bob", "landed", {"shared/a": "landed\n"})
    assert project.push("landed:main", agent="bob").code == 0
    done = project.push("main:main", agent="alice", force=True)
    assert refused(done, "unclaimed", "shared/a"), done
    project.claim("shared/a", agent="alice")
    assert project.push("main:main", agent="alice", force=True).code == 0, "a revert under a claim"


# --- everyday pushes that pass -------------------------------------------------------------------------------------


def test_a_rebased_branch_is_force_pushed(project: Project) -> None:
    project.branch("mine")
    project.commit({"free/y": "mine\n"})
    assert project.push("mine", agent="alice").code == 0
    project.work("bob", "landed", {"shared/a": "landed\n", "free/x": "too\n"})
    assert project.push("landed:main", agent="bob").code == 0
    project.switch("mine")
    project.unhooked("rebase", "-q", "origin/main")
    assert project.push("mine", agent="alice", force=True).code == 0


def test_a_branch_rebased_onto_an_older_commit_of_main(project: Project) -> None:
    """Neither its old tip nor main's has that content; the commit on which it was put was accepted."""
    project.branch("mine")
    project.commit({"free/y": "mine\n"})
    assert project.push("mine", agent="alice").code == 0
    first = project.work("bob", "one", {"shared/a": "first\n"})
    assert project.push("one:main", agent="bob").code == 0
    project.work("bob", "two", {"shared/a": "second\n"}, start="one")
    assert project.push("two:main", agent="bob").code == 0
    project.switch("mine")
    project.unhooked("rebase", "-q", first)
    done = project.push("mine", agent="alice", force=True)
    assert done.code == 0, done


def test_branches_tags_and_deletions_of_ones_own(project: Project) -> None:
    project.branch("mine")
    project.commit({"free/y": "mine\n"})
    project.git("tag", "-a", "-m", "one", "v1")
    project.git("checkout", "-q", "--detach")
    assert project.push("mine", "v1", "HEAD:refs/heads/other", agent="alice").code == 0
    assert project.push(":other", ":refs/tags/v1", agent="alice").code == 0


def test_a_tag_brings_commits_too(project: Project) -> None:
    project.branch("mine")
    project.commit({"shared/a": "unclaimed\n"})
    project.git("tag", "-a", "-m", "one", "v1")
    assert refused(project.push("v1", agent="alice"), "unclaimed", "shared/a")


def test_several_refs_at_once_each_counts(project: Project) -> None:
    project.branch("good")
    project.commit({"free/y": "mine\n"})
    project.branch("bad")
    project.commit({"shared/b": "unclaimed\n"})
    assert refused(project.push("good", "bad", agent="alice"), "unclaimed", "shared/b")


def test_a_new_remote_gets_what_is_there(project: Project, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "backup.git"))
    project.git("remote", "add", "backup", str(tmp_path / "backup.git"))
    done = project.try_git("push", "-q", "backup", "main", agent="alice")
    assert done.code == 0, done


# --- the ledger and the sync branch --------------------------------------------------------------------------------


def test_the_ledger_may_be_copied_and_not_rewritten(project: Project) -> None:
    assert project.push("gitcoord", agent="alice").code == 0
    project.claim("shared/a", agent="alice")
    assert project.push("gitcoord", agent="alice").code == 0
    assert refused(project.push("main:gitcoord", agent="alice", force=True), "ledger")
    assert refused(project.push(":gitcoord", agent="alice"), "ledger")
    assert refused(project.push("main:refs/claims/path/x/@bob", agent="alice"), "ledger")


def test_the_sync_branch_is_not_deleted(project: Project) -> None:
    assert refused(project.push(":main", agent="alice"), "lineage")


# --- policy of the old tip -----------------------------------------------------------------------------------------


def test_a_push_cannot_bring_its_own_policy(project: Project) -> None:
    project.branch("work")
    project.commit({".gitattributes": "# nothing\n", "shared/a": "new\n"})
    done = project.push("work:main", agent="alice")
    assert refused(done, "unclaimed", "shared/a") and refused(done, "own-files", ".gitattributes")


def test_the_policy_of_the_old_tip_decides(project: Project) -> None:
    """Not that of the branch here, which has moved on past the gates."""
    project.switch("main")
    project.commit({".gitattributes": "# nothing\n", "shared/a": "new\n"})
    assert refused(project.push("main", agent="alice"), "unclaimed", "shared/a")


def test_a_branch_has_no_policy_of_its_own(project: Project) -> None:
    project.branch("work")
    project.commit({".gitattributes": "# nothing\n"})
    project.unhooked("push", "-q", "origin", "work")
    project.commit({"shared/a": "new\n"})
    assert refused(project.push("work", agent="alice"), "unclaimed", "shared/a")


def test_what_the_remote_has_is_not_judged_again(project: Project) -> None:
    """Whoever builds on it answers for their own commits."""
    project.branch("theirs")
    project.commit({"shared/a": "past the gates\n"})
    project.unhooked("push", "-q", "origin", "theirs")
    project.branch("mine", "theirs")
    project.commit({"free/x": "mine\n"})
    done = project.push("mine", agent="alice")
    assert done.code == 0, done


def test_what_landed_here_is_not_judged_again(project: Project) -> None:
    project.switch("main")
    project.commit({"shared/a": "past the gates\n"})
    project.branch("mine", "main")
    project.commit({"free/x": "mine\n"})
    done = project.push("mine", agent="alice")
    assert done.code == 0, done
    assert refused(project.push("main", agent="alice"), "unclaimed", "shared/a")


def test_what_landed_at_the_usual_remote_is_not_judged_again(project: Project, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "backup.git"))
    project.git("remote", "add", "backup", str(tmp_path / "backup.git"))
    project.unhooked("push", "-q", "backup", "main")
    project.switch("main")
    project.commit({"shared/a": "past the gates\n"})
    project.unhooked("push", "-q", "origin", "main")
    done = project.try_git("push", "-q", "backup", "main", agent="alice")
    assert done.code == 0, done


def test_whoever_may_not_act_moves_no_sync_branch(project: Project, tmp_path: Path) -> None:
    """Nor where there is nothing new to judge."""
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "backup.git"))
    project.git("remote", "add", "backup", str(tmp_path / "backup.git"))
    project.claim("free/x", agent="mallory")
    project.coord("kill", "mallory", agent="boss")
    assert refused(project.try_git("push", "-q", "backup", "main", agent="mallory"), "killed")
    assert project.try_git("push", "-q", "backup", "main", agent="alice").code == 0


def test_a_tag_of_something_else_brings_no_commits(project: Project) -> None:
    project.git("tag", "key", project.git("rev-parse", "main:shared/a"))
    done = project.push("key", agent="alice")
    assert done.code == 0, done


def test_a_way_back_is_a_change_of_whoever_pushes_it(project: Project) -> None:
    """bob may change it, in a commit on top of what is there; carol may not undo what landed with it."""
    project.switch("main")
    project.commit({"shared/a": "landed\n"})
    project.unhooked("push", "-q", "origin", "main")
    project.claim("shared/a", agent="bob")
    project.branch("forward", "main")
    project.commit({"shared/a": "bob's\n"}, agent="bob")
    project.branch("back", "main~1")
    project.commit({"shared/a": "bob's\n"}, agent="bob")
    assert refused(project.push("back:main", agent="carol", force=True), "held", "shared/a")
    assert project.push("forward:main", agent="carol").code == 0


def test_claims_are_not_pushed_by_hand(project: Project) -> None:
    """They point into the ledger, of which a copy may be pushed."""
    project.claim("shared/a", agent="bob")
    for ref in ("refs/claims/path/shared/a/@bob", "refs/gitcoord/tip"):
        assert refused(project.push(f"{ref}:{ref}", agent="alice"), "ledger"), ref


def test_a_replaced_commit_hides_nothing(project: Project) -> None:
    project.branch("work")
    bad = project.commit({"shared/a": "unclaimed\n"})
    good = project.git("commit-tree", "main^{tree}", "-p", "main", "-m", "harmless")
    project.git("replace", bad, good)
    assert refused(project.push("work", agent="alice"), "unclaimed", "shared/a")


@pytest.mark.parametrize("releases", [1, 6])
def test_missing_history_cannot_be_judged(project: Project, releases: int) -> None:
    """Many releases are asked for at once."""
    for number in range(releases):
        project.work("bob", f"landed-{number}", {"shared/a": f"released {number}\n"})
    project.branch("work")
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": "mine\n"}, agent="alice")
    (project.top / ".git/shallow").write_text(project.git("rev-parse", "main") + "\n")
    done = project.push("work", agent="alice")
    assert done.code != 0 and "shallow" in done.err and "git fetch --unshallow" in done.err, done


@pytest.mark.parametrize(
    "line", ["refs/heads/work  refs/heads/work ", "refs/heads/work", "refs/heads/work 0 refs/heads/work "]
)
def test_a_line_that_makes_no_sense_is_not_let_through(project: Project, line: str) -> None:
    """Hook managers put such lines together themselves."""
    done = subprocess.run(
        [project.top / ".git/hooks/pre-push", "origin", str(project.remote)], input=f"{line}\n", cwd=project.top,
        env={**os.environ, "GITCOORD_AGENT": "alice"}, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "could not be judged: " in done.stderr, done
