"""Markers of a conflict are not committed while the operation that left them is under way; anything else that looks like one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.cli.test_hinted_commands import commands_in, follow, hints_of
from tests.gates.support import SHARED, Project

SAID = "conflict markers are still there: free/x:1, free/x:5"
# What git writes into a file that conflicts, but of another conflict.
OTHER = "<<<<<<< theirs\nx\n=======\ny\n>>>>>>> ours\n"
BEGINNINGS = {
    "merge": ("merge", "side"),
    "cherry-pick": ("cherry-pick", "side"),
    "revert": ("revert", "--no-edit", "side"),
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, SHARED)
    made.branch("side")
    made.commit({"free/x": "side\n"})
    made.switch("main")
    made.commit({"free/x": "main\n"})
    made.branch("topic")
    return made


def begin(project: Project, words: tuple[str, ...]) -> None:
    if words[0] == "revert":
        project.unhooked("merge", "-q", "--no-edit", "-X", "ours", "side")
    assert "CONFLICT" in project.try_git(*words, agent="alice").said
    assert "<<<<<<< " in (project.top / "free/x").read_text()


def commit(project: Project, *words: str) -> Done:
    return project.try_git("commit", "-q", "--no-edit", *words, agent="alice")


@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("words", BEGINNINGS.values(), ids=list(BEGINNINGS))
def test_they_are_refused_and_each_hint_leads_out(project: Project, words: tuple[str, ...], staged: bool) -> None:
    begin(project, words)
    if staged:
        project.git("add", "free/x")
    done = commit(project, *([] if staged else ["-a"]))
    assert done.code == 1 and SAID in done.err, done
    add, go_on = (commands_in(hint)[0] for hint in hints_of(done)[:2])
    project.write({"free/x": "both\n"})
    assert follow(project, add, "alice").code == 0 and follow(project, go_on, "alice").code == 0
    assert project.git("show", "HEAD:free/x") == "both"


@pytest.mark.parametrize("how", ["--merge", "--rebase"])
def test_a_landing_does_not_go_on_with_them(project: Project, how: str) -> None:
    project.switch("side")
    assert project.coord("land", how, agent="alice").code == 1
    project.git("add", "free/x")
    done = project.coord("land", "--continue", agent="alice")
    assert done.code == 1 and SAID in done.err, done
    project.write({"free/x": "both\n"})
    project.git("add", "free/x")
    assert project.coord("land", "--continue", agent="alice").code == 0
    assert project.git("show", "main:free/x") == "both"


@pytest.mark.parametrize(
    "files",
    [
        {"free/x": "Heading\n=======\n\ntext\n"},
        {"free/x": "both\n<<<<<<< only the beginning\n"},
        {"free/x": "both\n", "free/new": OTHER},
        {"free/x": "both\n <<<<<<< quoted\n >>>>>>> quoted\n"},
    ],
    ids=["heading", "half", "file that was not in conflict", "quoted"],
)
def test_what_only_looks_like_them_passes(project: Project, files: dict[str, str | None]) -> None:
    begin(project, BEGINNINGS["merge"])
    project.write(files)
    project.git("add", "-A")
    assert commit(project).code == 0


def test_markers_that_a_side_had_pass(project: Project) -> None:
    """A page about conflicts shows some."""
    project.commit({"free/x": OTHER + "main\n"})
    begin(project, BEGINNINGS["merge"])
    project.write({"free/x": OTHER + "both\n"})
    project.git("add", "-A")
    assert commit(project).code == 0


def test_without_an_operation_under_way_nothing_is_looked_at(project: Project) -> None:
    begin(project, BEGINNINGS["merge"])
    project.write({"free/x": "both\n"})
    project.git("add", "-A")
    assert commit(project).code == 0
    project.write({"free/x": OTHER})
    assert commit(project, "-a", "-m", "an example").code == 0
