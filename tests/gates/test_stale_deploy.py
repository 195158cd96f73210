"""Stale deploys: a push to where something is deployed from must hold all that landed, and what was deployed last."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.support import SHARED, Project, refused
from tests.support import git

CONFIG = """[deploy "production"]
\tremote = origin
\tref = refs/heads/production
\ttag = v*
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, SHARED, CONFIG)
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(made.remote), str(other))
    (other / "free/x").write_text("landed\n")
    git(other, "commit", "-qam", "landed elsewhere", "--author", "Grace <grace@example.com>")
    git(other, "push", "-q")
    return made


@pytest.mark.parametrize("words", [["main:production"], ["v1"]], ids=["branch", "tag"])
def test_a_stale_copy_is_not_deployed(project: Project, words: list[str]) -> None:
    project.git("tag", "v1")
    done = project.push(*words, agent="alice")
    assert refused(done, "stale-deploy") and "1 commit" in done.err and "Grace" in done.err and "free/x" in done.err
    project.git("pull", "-q", "--ff-only", agent="alice")
    project.git("tag", "-f", "v1")
    assert project.push(*words, agent="alice").code == 0


def test_by_its_address_too(project: Project) -> None:
    done = project.try_git("push", "-q", str(project.remote), "main:production", agent="alice")
    assert refused(done, "stale-deploy")


def test_other_branches_are_no_deploys(project: Project) -> None:
    assert project.push("main:elsewhere", agent="alice").code == 0


def test_without_an_answer_of_the_remote_nothing_is_deployed(project: Project, tmp_path: Path) -> None:
    project.git("config", "remote.origin.pushurl", str(project.remote))
    project.git("config", "remote.origin.url", str(tmp_path / "nowhere.git"))
    done = project.push("main:production", agent="alice")
    assert done.code != 0 and "could not be judged" in done.err, done


def test_it_can_be_rolled_out_in_stages(tmp_path: Path) -> None:
    project = Project(tmp_path, SHARED, CONFIG + "[rollout]\n\tstale-deploy = warn\n")
    project.commit({"free/x": "landed\n"})
    project.unhooked("push", "-q", "origin", "main")
    done = project.push("main~1:refs/heads/production", agent="alice")
    assert done.code == 0 and "warning: " in done.err
