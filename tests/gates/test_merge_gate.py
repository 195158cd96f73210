"""A merge that is being made is judged before its commit as it will be at push: against what git alone makes of its sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.support import Project, refused

LONG = "".join(f"line {n}\n" for n in range(30))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """shared/a says one thing on main, where it landed, and another on alice's branch, where her claim goes on."""
    made = Project(tmp_path)
    made.commit({"shared/a": LONG, "shared/bin": "\0one"})
    made.unhooked("push", "-q", "origin", "main")
    made.branch("alices")
    made.claim("shared", agent="alice")
    made.commit({"shared/a": LONG.replace("line 3\n", "alice's\n"), "shared/bin": "\0alice"}, "work", "alice")
    made.switch("main")
    made.commit({"shared/a": LONG.replace("line 3\n", "main's\n"), "shared/bin": "\0main"})
    made.unhooked("push", "-q", "origin", "main")
    return made


def _conflicting(project: Project, side: str) -> None:
    assert project.try_git("merge", "-q", "alices", agent="boss").code != 0
    project.git("checkout", "-q", f"--{side}", "--", "shared")
    project.git("add", "shared")


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_conflict_resolved_to_one_side_is_a_change(project: Project, side: str) -> None:
    project.branch("integration")
    _conflicting(project, side)
    for path in ("shared/a", "shared/bin"):
        assert refused(project.try_git("commit", "-q", "--no-edit", agent="boss"), "held", path)
    project.unhooked("commit", "-q", "--no-edit")
    for path in ("shared/a", "shared/bin"):
        assert refused(project.push("integration", agent="boss"), "held", path)


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_under_a_claim_it_passes(project: Project, side: str) -> None:
    project.branch("integration")
    _conflicting(project, side)
    done = project.try_git("commit", "-q", "--no-edit", agent="alice")
    assert done.code == 0, done
    assert project.push("integration", agent="alice").code == 0


def test_to_the_side_that_was_released_it_passes(project: Project) -> None:
    project.claim("release", "shared", "--commit", "alices", agent="alice")
    project.branch("integration")
    _conflicting(project, "theirs")
    done = project.try_git("commit", "-q", "--no-edit", agent="boss")
    assert done.code == 0, done
    assert project.push("integration", agent="boss").code == 0


def test_released_work_is_not_dropped_by_a_merge(project: Project) -> None:
    project.claim("release", "shared", "--commit", "alices", agent="alice")
    project.branch("integration")
    _conflicting(project, "ours")
    assert refused(project.try_git("commit", "-q", "--no-edit", agent="boss"), "unclaimed", "shared/a")
    project.unhooked("commit", "-q", "--no-edit")
    assert refused(project.push("integration", agent="boss"), "unclaimed", "shared/a")


def test_a_side_dropped_without_a_conflict(project: Project) -> None:
    """-s ours: the index is HEAD's, and git alone would have brought the other side."""
    project.branch("side", "alices")
    project.claim("shared/new", agent="alice")
    project.commit({"shared/new": "n\n"}, "work", "alice")
    project.branch("integration", "alices")
    project.commit({"free/y": "y\n"})
    assert refused(
        project.try_git("merge", "-q", "-s", "ours", "--no-edit", "side", agent="boss"), "held", "shared/new"
    )
    project.unhooked("merge", "--abort")
    done = project.try_git("merge", "-q", "--no-edit", "side", agent="boss")
    assert done.code == 0, done


def test_a_free_path_may_be_resolved_by_anybody(project: Project) -> None:
    project.branch("one", "alices")
    project.commit({"free/x": "one\n"})
    project.branch("two", "alices")
    project.commit({"free/x": "two\n"})
    assert project.try_git("merge", "-q", "one", agent="boss").code != 0
    project.git("checkout", "-q", "--ours", "--", "free/x")
    assert project.try_commit({}, "boss").code == 0


def test_unrelated_histories_are_judged_by_what_they_change(project: Project) -> None:
    """git makes nothing of them, so what differs from every side counts."""
    project.branch("integration")
    empty = project.git("hash-object", "-w", "-t", "tree", "/dev/null")
    other = project.git("commit-tree", empty, "-m", "another beginning")
    project.unhooked("merge", "-q", "--no-commit", "-s", "ours", "--allow-unrelated-histories", other)
    assert refused(project.try_commit({"shared/a": "evil\n"}, "boss"), "held", "shared/a")
    project.unhooked("commit", "-q", "--no-edit")
    assert refused(project.push("integration", agent="boss"), "held", "shared/a")


def test_what_a_clean_merge_makes_of_both_sides_is_a_change(project: Project) -> None:
    """It differs from every parent, though git alone made it: alice's work is not released, so only she may land it."""
    project.unhooked("checkout", "-q", "-B", "beside", "main~1")
    project.commit({"shared/a": LONG.replace("line 28\n", "main's\n")})
    project.unhooked("push", "-q", "-f", "origin", "beside:main")
    project.unhooked("checkout", "-q", "-B", "main", "beside")
    assert refused(project.try_git("merge", "-q", "--no-edit", "alices", agent="boss"), "held", "shared/a")
    project.unhooked("commit", "-q", "--no-edit")
    assert refused(project.push("main", agent="boss"), "held", "shared/a")
    assert project.push("main", agent="alice").code == 0
