"""A policy that cannot be read: no change brings one, and a person can replace one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.support import Project, refused
from tests.support import git

GOOD = "[rollout]\n\tunclaimed = enforce\n"
BAD = {
    "a stage": "[rollout]\n\tunclaimed = wran\n", "no section": "[rollout\n\tunclaimed = warn\n",
    "queue": "[queue]\n\tovertake = many\n", "landing": "[land]\n\tlanes = many\n",
    "resource": '[resource "gpu"]\n\tcapacity = many\n', "workers": "[workers]\n\tcap = all\n",
    "sequence": '[sequence "records"]\n\twidth = wide\n', "validator": '[validator "budget"]\n\tcalls = few\n',
}  # fmt: skip
MARKS = "shared/** gitcoord-claim\n.gitcoord/** gitcoord-claim\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, MARKS, GOOD)


def person_commits(project: Project, files: dict[str, str | None]) -> tuple[int, str]:
    project.write(files)
    project.git("add", "-A")
    done = project.person_git("commit", "-q", "-m", "by a person")
    return done.code, done.out


def broken(project: Project, text: str = BAD["a stage"]) -> None:
    """A policy that came to trunk past the hooks."""
    project.commit({".gitcoord/config": text})


@pytest.mark.parametrize("text", BAD.values(), ids=list(BAD))
def test_no_commit_and_no_push_brings_one(project: Project, text: str) -> None:
    assert project.world.at_terminal(".gitcoord/config").code == 0
    code, out = person_commits(project, {".gitcoord/config": text})
    assert code != 0 and ".gitcoord/config: by it nothing could be judged any more" in out and "[own-files]" in out, out
    broken(project, text)
    done = project.person_git("push", "-q", "origin", "main")
    assert done.code != 0 and ("could be judged any more" in done.out or "cannot be read" in done.out), done
    code, out = person_commits(project, {".gitcoord/config": GOOD})
    assert code == 0, out
    done = project.person_git("push", "-q", "origin", "main")
    assert done.code == 0, "it is corrected by the last commit"


@pytest.mark.parametrize("text", BAD.values(), ids=list(BAD))
def test_a_person_replaces_one_without_a_claim(project: Project, text: str) -> None:
    """No claim can be made meanwhile."""
    broken(project, text)
    if text not in (BAD["a stage"], BAD["no section"]):  # the others stop only what they are about
        assert project.world.at_terminal(".gitcoord/config").code == 0
    code, out = person_commits(project, {".gitcoord/config": GOOD + "# corrected\n"})
    assert code == 0, out
    assert refused(project.try_commit({"shared/a": "new\n"}, "alice"), "unclaimed", "shared/a"), "judged again"


def test_only_a_person_does_and_nothing_else_with_it(project: Project) -> None:
    broken(project)
    for name in (".gitcoord/config", "free/x"):
        done = project.try_commit({name: GOOD}, "alice")
        assert done.code != 0 and "could not be judged" in done.err, done
        assert "hint: correct the file and commit it: a person can, at a terminal\n" in done.err
        project.unhooked("reset", "-q", "--hard")
    code, out = person_commits(project, {".gitcoord/config": GOOD, "shared/a": "with it\n"})
    assert code != 0 and "could not be judged" in out
    project.unhooked("reset", "-q", "--hard")
    code, out = person_commits(project, {".gitcoord/config": BAD["queue"]})
    assert code != 0 and "could not be judged" in out, "as bad as before"
    project.unhooked("reset", "-q", "--hard")
    code, out = person_commits(project, {".gitattributes": ""})
    assert code != 0 and "could not be judged" in out, "it corrects nothing"


def test_a_listed_approver_alone_does(project: Project) -> None:
    broken(project, "[gitcoord]\n\tapprover = bob_at_example.com\n" + BAD["a stage"])
    code, out = person_commits(project, {".gitcoord/config": GOOD})
    assert code != 0 and "could not be judged" in out


def test_a_correction_that_has_landed_is_pulled_by_anybody(project: Project) -> None:
    other = project.place / "other"
    git(project.place, "clone", "-q", str(project.remote), str(other))
    for text in (BAD["a stage"], GOOD + "# corrected\n"):
        (other / ".gitcoord/config").write_text(text)
        git(other, "commit", "-q", "-am", "by another")
        git(other, "push", "-q", "origin", "main")
        done = project.try_git("pull", "-q", "--ff-only", agent="alice")
        assert done.code == 0, done


def test_a_person_goes_back_to_the_one_before(project: Project) -> None:
    broken(project)
    done = project.person_git("revert", "--no-edit", "HEAD")
    assert done.code == 0, done
    broken(project)
    done = project.person_git("reset", "-q", "--hard", "HEAD~1")
    assert done.code == 0, done


def test_a_merge_brings_one_or_takes_one_back(project: Project) -> None:
    """The settings of a merge may come whole from its other side; the hook of the commit judges, where no other one does."""
    (project.top / ".git/hooks/reference-transaction").unlink()
    project.branch("wrong")
    project.commit({".gitcoord/config": BAD["a stage"]})
    project.branch("right", "wrong")
    project.commit({".gitcoord/config": GOOD + "# corrected\n"})
    project.switch("main")
    project.commit({"free/x": "main goes on\n"})
    assert project.world.at_terminal(".gitcoord/config").code == 0
    done = project.person_git("merge", "-q", "--no-edit", "wrong")
    assert done.code != 0 and "nothing could be judged any more" in done.out, done
    project.unhooked("merge", "--abort")
    project.unhooked("merge", "-q", "--no-edit", "wrong")
    done = project.person_git("merge", "-q", "--no-ff", "--no-edit", "right")
    assert done.code == 0, done
