"""A command inside a tool's conversation that the guard has not heard of says that the guard does not run."""

from __future__ import annotations

import os

import pytest

from tests.guard.support import Project
from tests.support import CLAIM, run_command

ENVIRONMENTS = {
    "claude": {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "c1"},
    "codex": {"CODEX_SESSION_ID": "c1"},
    "gemini": {"GEMINI_CLI": "1", "GEMINI_SESSION_ID": "c1"},
}


@pytest.mark.parametrize("tool", ENVIRONMENTS)
def test_said_until_the_guard_was_asked(project: Project, tool: str) -> None:
    env = ENVIRONMENTS[tool]
    for done in (project.world.claim("shared/a", agent="", env=env), project.world.coord("start", agent="", env=env)):
        assert done.code == 0 and "does not run here: no event of this conversation" in done.err, done
        assert "git coord setup --user" in done.err
        assert ("nobody judges your commits there" in done.err) == (tool == "gemini")
    project.send(project.speaker(tool=tool).read("free/x"))
    for done in (project.world.claim("shared/b", agent="", env=env), project.world.coord("start", agent="", env=env)):
        assert done.code == 0 and "does not run here" not in done.err, done
    project.send(project.speaker(tool=tool).stop(final=True))
    assert "does not run here" in project.world.claim("free/x", agent="", env=env).err


def test_nothing_is_said_outside_of_tools(project: Project) -> None:
    assert project.world.claim("shared/a", agent="bob").err == ""


@pytest.mark.parametrize("tool", ENVIRONMENTS)
def test_commits_and_status_say_it_too(project: Project, tool: str) -> None:
    env = ENVIRONMENTS[tool]
    project.world.coord("install", agent="")
    for hook in ("pre-commit", "pre-merge-commit", "pre-push"):
        line = "refs/heads/main " + "1" * 40 + " refs/heads/x " + "0" * 40
        done = run_command([*CLAIM, "--gate", hook, "origin", "x"], project.top, {**os.environ, **env}, line.encode())
        assert b"does not run here: no event of this conversation" in done.stderr, (hook, done)
    project.world.claim("shared/a", agent="", env=env)
    shown = project.world.coord("status", agent="")
    assert f"does not run it for {tool}-c1" in shown.out, shown
    assert [row["agent"] for row in project.world.coord("status", "--json", agent="").json["unguarded"]] == [
        f"{tool}-c1"
    ]
    project.send(project.speaker(tool=tool).read("free/x"))
    assert "does not run it" not in project.world.coord("status", agent="").out
    done = run_command([*CLAIM, "--gate", "pre-commit"], project.top, {**os.environ, **env}, b"")
    assert b"does not run here" not in done.stderr, done


def test_a_tool_that_names_no_conversation(project: Project) -> None:
    """Gemini CLI 0.61 sets no variable with its conversation; the guard notes its process at the start."""
    env = {"GEMINI_CLI": "1"}
    done = project.world.claim("shared/a", agent="", env=env)
    assert done.code == 2 and "its guard would tell, and does not run here: git coord setup --user" in done.err, done
    named = project.world.claim("shared/a", agent="bob", env=env)
    assert named.code == 0 and "the guard of Gemini CLI does not run here" in named.err, named
    hook = run_command([*CLAIM, "--gate", "pre-commit"], project.top, {**os.environ, **env}, b"")
    assert b"the guard of Gemini CLI does not run here" in hook.stderr, hook
