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


def test_somebody_pushed_before(project: Project) -> None:
    """The most ordinary refusal: the ledger is in order, and the hints, followed literally, help."""
    other = project.place / "other"
    git(project.place, "clone", "-q", str(project.remote), str(other))
    (other / "free/x").write_text("landed\n")
    git(other, "commit", "-q", "-am", "work of another")
    git(other, "push", "-q", "origin", "main")
    project.commit({"free/y": "mine\n"})
    done = project.push("main", agent="alice")
    assert "error: this push is refused: 'main' at origin has moved: somebody pushed before you\n" in done.err, done
    assert "fsck" not in done.err and "git coord land <branch>" in done.err
    assert "hint: bring that here, then push again: git coord sync --pull\n" in done.err
    assert project.coord("sync", "--pull", agent="alice").code == 0
    assert project.push("main", agent="alice").code == 0


# --- everyday pushes that pass -------------------------------------------------------------------------------------


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


def test_a_new_remote_gets_what_is_there(project: Project, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "backup.git"))
    project.git("remote", "add", "backup", str(tmp_path / "backup.git"))
    done = project.try_git("push", "-q", "backup", "main", agent="alice")
    assert done.code == 0, done


# --- the ledger and trunk ------------------------------------------------------------------------------------------


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


def test_a_replaced_commit_hides_nothing(project: Project) -> None:
    project.branch("work")
    bad = project.commit({"shared/a": "unclaimed\n"})
    good = project.git("commit-tree", "main^{tree}", "-p", "main", "-m", "harmless")
    project.git("replace", bad, good)
    assert refused(project.push("work", agent="alice"), "unclaimed", "shared/a")


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
