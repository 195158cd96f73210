"""The heartbeat hook: a commit keeps claims alive, never fails, and is silent where gitcoord is not set up."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import CLAIM, World
from tests.support import git

HOOK = Path(__file__).parents[2] / "githooks" / "post-commit"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with the hook in it, and `git-claim` on the path of whoever commits."""
    top = tmp_path / "project"
    git(tmp_path, "init", "-q", str(top))
    shutil.copy(HOOK, top / ".git" / "hooks" / "post-commit")
    commands = tmp_path / "bin"
    commands.mkdir()
    shim = commands / "git-claim"
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in CLAIM)
    shim.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    shim.chmod(0o755)
    return top


def commit(repo: Path, name: str) -> "subprocess.CompletedProcess[str]":
    (repo / name).write_text(name)
    git(repo, "add", name)
    path = f"{repo.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "GITCOORD_AGENT": "alice"}
    return subprocess.run(["git", "commit", "-qm", name], cwd=repo, env=env, capture_output=True, text=True)


def session(repo: Path) -> str:
    done = subprocess.run(
        ["git", "cat-file", "blob", "refs/gitcoord/sessions/alice"], cwd=repo, capture_output=True, text=True
    )
    return done.stdout


def test_without_gitcoord_it_does_nothing(repo: Path) -> None:
    done = commit(repo, "a")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (repo / ".git" / "gitcoord").exists()


def test_a_commit_is_a_heartbeat(repo: Path) -> None:
    """The session ref is taken away; only the commit's hook can have put it back."""
    world = World(repo).init()
    assert world.claim("src", agent="alice").code == 0
    before = session(repo)
    git(repo, "update-ref", "-d", "refs/gitcoord/sessions/alice")
    done = commit(repo, "a")
    assert (done.returncode, done.stderr) == (0, "")
    assert before and '"agent":"alice"' in session(repo)
