"""The job that docs/hooks.md gives for CI: its own lines, in a clone as each service makes it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.gates.support import Project
from tests.gates.test_whole import Place
from tests.support import git

PAGE = Path(__file__).parents[2] / "docs/hooks.md"
ALL = "+refs/heads/*:refs/remotes/origin/*"


def lines(service: str) -> str:
    """The git commands of the job."""
    block = PAGE.read_text().partition(f"\n{service}")[2].partition("```yaml\n")[2].partition("```")[0]
    found = [line.strip().removeprefix("- ") for line in block.splitlines()]
    return "\n".join(line for line in found if line.startswith("git ") and " clone " not in line)


def job(place: Path, project: Project, service: str, branch: str, commands: Place) -> Done:
    """GitHub's checkout fetches all branches, GitLab's the one that is judged; both leave HEAD detached."""
    clone = place / f"clone-{service}-{branch}"
    if not clone.exists():
        git(place, "init", "-q", str(clone))
        git(clone, "remote", "add", "origin", str(project.remote))
        git(clone, "fetch", "-q", "origin", ALL if service == "GitHub" else ALL.replace("*", branch))
        git(clone, "checkout", "-q", "--detach", f"refs/remotes/origin/{branch}")
    script = lines(service).replace("${{ github.base_ref }}", "main")
    env = {**os.environ, **commands.env, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    done = subprocess.run(["sh", "-ec", script], cwd=clone, env=env, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("service", ["GitHub", "GitLab"])
def test_the_job_judges_what_a_branch_brings(tmp_path: Path, service: str) -> None:
    (tmp_path / "other").mkdir()
    commands, project = Place(tmp_path / "other"), Project(tmp_path)
    project.work("alice", "good", {"shared/a": "released\n"})
    project.branch("bad")
    project.commit({"shared/b": "unclaimed\n"})
    project.branch("unrelated")
    project.commit({"free/x": "free\n"})
    project.unhooked("push", "-q", "origin", "good", "bad", "unrelated", "gitcoord")
    for branch in ("good", "unrelated"):
        assert job(tmp_path, project, service, branch, commands).code == 0
    for _ in range(2):  # runners keep their clones
        done = job(tmp_path, project, service, "bad", commands)
        assert done.code == 1 and "shared/b" in done.err and "[unclaimed]" in done.err, done
