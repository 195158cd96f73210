"""Tools whose shells switch git's hooks off: what only a hook would judge does not go through there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.gates.support import Project as Hooked
from tests.guard.protocol import reason, understood
from tests.guard.support import Project
from tests.support import COORD

# As the shell of Gemini CLI has them.
HOOKS_OFF = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": ""}
JUDGED = (
    "commit -am x",
    "merge topic",
    "push origin main",
    "pull",
    "rebase main",
    "cherry-pick topic",
    "revert HEAD",
    "am x.patch",
)


@pytest.mark.parametrize("command", JUDGED)
def test_gemini_does_not_commit_merge_or_push_unjudged(project: Project, command: str) -> None:
    who = project.speaker(tool="gemini")
    for line in (f"git {command}", f"cd shared && git {command}", f"env -u GIT_CONFIG_COUNT true; git {command}"):
        said = project.send(who.shell(line))
        assert understood("gemini", said) == "deny", line
        words = reason("gemini", said)
        assert "git's hooks are switched off" in words and "git coord commit -m" in words
    assert understood("claude", project.send(project.speaker().shell("git commit -am x"))) == "allow"


def test_what_judges_itself_or_changes_nothing_goes_through(project: Project) -> None:
    who = project.speaker(tool="gemini")
    for command in (
        "git status",
        "git log",
        "git merge --abort",
        "git coord commit -m x -- free/x",
        "git claim shared/a",
    ):
        assert understood("gemini", project.send(who.shell(command))) == "allow", command
    for command in ("commit -am x", "push origin main"):
        for words in ("env -u GIT_CONFIG_COUNT", "env -u GIT_CONFIG_COUNT -u GIT_CONFIG_GLOBAL"):
            assert understood("gemini", project.send(who.shell(f"{words} git {command}"))) == "allow"
    assert understood("gemini", project.send(who.shell("env -u GIT_CONFIG_GLOBAL git commit -am x"))) == "deny"
    # Elsewhere the same words only change git's settings.
    said = project.send(project.speaker().shell("env -u GIT_CONFIG_COUNT git commit -am x"))
    assert understood("claude", said) == "deny"


def test_any_tool_whose_environment_switches_the_hooks_off(project: Project) -> None:
    event = project.speaker().shell("git commit -am x")
    assert understood("claude", project.send(event, HOOKS_OFF)) == "deny"
    assert understood("claude", project.send(event, {**HOOKS_OFF, "GIT_CONFIG_KEY_0": "user.name"})) == "allow"


def test_the_hinted_commands_are_judged(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path)
    hooked.world.claim("shared/a", agent="bob")
    (hooked.top / "shared/a").write_text("x\n")
    env = {**os.environ, **HOOKS_OFF, "GITCOORD_AGENT": "gemini-c1"}
    for argv in (
        [*COORD, "commit", "-m", "x", "--", "shared/a"],
        ["env", "-u", "GIT_CONFIG_COUNT", "git", "commit", "-qam", "x"],
    ):
        done = subprocess.run(argv, cwd=hooked.top, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "bob" in done.stderr, done
