"""Everything together: `git coord setup`, the installed hooks, the real git-claim behind them."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.gates.places import CHAIN, NEWER, WAYS, pretend
from tests.support import CLAIM, COORD, UNHOOKED, git

pytestmark = pytest.mark.both_gits


class Place(World):
    """A repository that was set up in one step, with the commands on PATH."""

    def __init__(self, place: Path, way: str = CHAIN) -> None:
        top = place / "project"
        git(place, "init", "-q", "-b", "main", str(top))
        super().__init__(top)
        commands = place / "bin"
        commands.mkdir()
        for name, argv in (("git-claim", CLAIM), ("git-coord", COORD)):
            (commands / name).write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
            (commands / name).chmod(0o755)
        if way == CHAIN and NEWER:
            pretend(commands, CHAIN)
        self.env = {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}

    def sh(self, *words: str, agent: str = "alice") -> Done:
        env = {**os.environ, **self.env, "GITCOORD_AGENT": agent}
        done = subprocess.run(["git", *words], cwd=self.top, env=env, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def beat(self, agent: str = "alice") -> str:
        return self.sh("cat-file", "blob", f"refs/gitcoord/sessions/{agent}").out


@pytest.fixture(params=WAYS)
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    made = Place(tmp_path, request.param)
    assert made.sh("coord", "setup", "--yes").code == 0
    return made


def _mark(place: Place) -> None:
    (place.top / ".gitattributes").write_text("src/** gitcoord-claim\n")
    place.git("add", "-A")
    place.git(*UNHOOKED, "commit", "-q", "-m", "policy")


def test_set_up_claim_commit_release(place: Place) -> None:
    _mark(place)
    place.write("src/a.py", "new\n")
    refused = place.sh("commit", "-qam", "work")
    assert refused.code == 1 and "[unclaimed]" in refused.err
    assert place.sh("claim", "src/a.py").code == 0
    assert place.sh("commit", "-qam", "work").code == 0
    assert place.sh("log", "-1", "--format=%(trailers:key=Agent,valueonly)").out.strip() == "alice"
    assert place.sh("claim", "release", "src/a.py").code == 0
    assert place.sh("coord", "fsck").code == 0


def test_the_starter_policy_is_committed_without_ado(place: Place) -> None:
    """There is no older policy that could speak against it; from then on it guards itself."""
    place.git("add", "-A")
    first = place.sh("commit", "-qm", "policy")
    assert first.code == 0, first
    (place.top / ".gitcoord/rules.md").write_text("none\n")
    again = place.sh("commit", "-qam", "no rules")
    assert again.code == 1 and "[own-files]" in again.err and "[unclaimed]" in again.err
    assert place.sh("coord", "policy", "check").code == 0


def test_a_commit_is_a_heartbeat(place: Place) -> None:
    """The session ref is taken away; only the commit's hooks can have put it back."""
    assert place.sh("claim", "other").code == 0
    before = place.beat()
    place.git(*UNHOOKED, "update-ref", "-d", "refs/gitcoord/sessions/alice")
    place.write("free", "x\n")
    place.git("add", "-A")
    assert place.sh("commit", "-qm", "x", "--no-verify").code == 0
    assert before and '"agent":"alice"' in place.beat()


def test_torn_down_nothing_is_judged(place: Place) -> None:
    _mark(place)
    assert place.sh("coord", "teardown", "--yes", agent="").code == 0
    place.write("src/a.py", "new\n")
    assert place.sh("commit", "-qam", "work", agent="").code == 0
