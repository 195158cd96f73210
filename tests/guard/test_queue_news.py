"""The guard's answers tell of the queue: a claim that is the agent's now, and who waits for what it holds."""

from __future__ import annotations

import json

import pytest

from tests.guard.support import Project
from tests.support import UNHOOKED


@pytest.mark.parametrize("tool", ["claude", "codex", "gemini", "cursor", "copilot", "opencode", "windsurf"])
def test_a_queued_claim_is_told_at_the_next_tool_call(project: Project, tool: str) -> None:
    """Tools that take no text before a call get it after the call."""
    env = {"GITCOORD_AGENT": "bob"}
    who = project.speaker(tool=tool)
    project.claim("shared/a", agent="alice")
    assert project.world.claim("--queue", "shared/a", agent="bob").code == 3
    project.claim("release", "shared/a", agent="alice")
    said = [project.send(who.write("free/x", after=after), env) for after in (False, True)]
    told = [said_part for said_part in said if b"shared/a is yours, token " in said_part.out + said_part.err]
    assert len(told) == 1, said
    assert project.world.claim("list", agent="bob").err == "", "told, so confirmed"


def test_the_holder_is_told_once_who_waits(project: Project) -> None:
    who, env = project.speaker(), {"GITCOORD_AGENT": "alice"}
    project.claim("shared/a", agent="alice")
    assert project.send(who.write("free/x"), env).out == b""
    project.world.claim("--queue", "shared", "-m", "moving it", agent="bob")
    said = project.send(who.write("free/x"), env).out
    assert b"gitcoord: bob waits for shared, which you hold, since " in said and b"moving it" in said
    assert project.send(who.write("free/x"), env).out == b""


def test_a_denial_tells_too(project: Project) -> None:
    env = {"GITCOORD_AGENT": "alice"}
    project.claim("shared/a", agent="alice")
    project.claim("shared/b", agent="carol")
    project.world.claim("--queue", "shared/a", agent="bob")
    said = project.send(project.speaker(tool="gemini").write("shared/b"), env)
    assert b"carol holds it" in said.out + said.err and b"bob waits for shared/a" in said.out + said.err


def test_a_start_has_at_most_25_lines_with_all_its_news(project: Project) -> None:
    project.world.write(".gitcoord/rules.md", "".join(f"{number}. Do it.\n" for number in range(1, 20)))
    project.world.git("add", "-A")
    project.world.git(*UNHOOKED, "commit", "-qm", "rules")
    names = [f"n{number}" for number in range(12)]
    project.claim(*(f"shared/{name}" for name in names), agent="alice")
    for name in names:
        project.world.claim("--queue", f"shared/{name}", agent="bob")
        project.claim(f"free/{name}", agent=f"other-{name}")
    project.claim("release", "--all", agent="alice")
    text = json.loads(project.send(project.speaker().start(), {"GITCOORD_AGENT": "bob"}).out)
    lines = text["hookSpecificOutput"]["additionalContext"].splitlines()
    assert len(lines) <= 25 and "gitcoord: 4 more of the queue: git claim list" in lines, lines
    assert "the other rules are in " in "".join(lines) and "other-n0 holds free/n0" in lines
