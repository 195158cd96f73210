"""Uncommitted work of an ended conversation or subagent goes to the next one in the same work tree, and to no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guard.protocol import Speaker, context, reason, understood
from tests.guard.support import CONFIG, GUARD, Project
from tests.guard.test_conversations import run_tool
from tests.support import CLAIM


def go_on(project: Project, who: Speaker, path: str = "shared/a") -> str:
    """Read what another wrote, and write: allow or deny."""
    project.send(who.read(path))
    return project.write(who, path)


def change(project: Project, who: Speaker, path: str = "shared/a") -> None:
    """Write a file, as the tool reports it."""
    assert project.write(who, path) == "allow"
    (project.top / path).write_text("not committed\n")
    project.send(who.write(path, after=True))


def leave(project: Project, who: Speaker, path: str = "shared/a") -> None:
    """Write a file, and end the conversation without a commit."""
    change(project, who, path)
    project.send(who.stop(final=True))


@pytest.mark.parametrize("tool", ["claude", "codex", "gemini", "copilot", "cursor", "opencode"])
def test_the_next_conversation_goes_on(project: Project, tool: str) -> None:
    leave(project, project.speaker("c1", tool))
    second = project.speaker("c2", tool)
    told = context(project.send(second.start()))
    assert f"{tool}-c1 has ended and left uncommitted work here" in told and "git diff HEAD -- shared/a" in told
    assert project.held() == {"shared/a": f"{tool}-c2"}
    assert go_on(project, second) == "allow"
    assert project.world.coord("fsck", agent="bob").code == 0


def test_a_conversation_that_runs_already_goes_on_when_it_writes(project: Project) -> None:
    second = project.speaker("c2")
    project.send(second.start())
    leave(project, project.speaker("c1"))
    project.send(second.read("shared/a"))
    said = project.send(second.write("shared/a"))
    assert understood("claude", said) == "allow"
    assert "claude-c1 has ended and left it uncommitted" in context(said)
    assert project.held() == {"shared/a": "claude-c2"}


def test_a_claim_by_hand_goes_on(project: Project) -> None:
    leave(project, project.speaker("c1"))
    project.claim("shared/a", agent="bob")
    assert project.held() == {"shared/a": "bob"}


def test_the_age_stays_and_the_token_is_new(project: Project) -> None:
    def row() -> dict[str, Any]:
        found: dict[str, Any] = project.world.claim("list", "--all", "--json", agent="x").json["claims"][0]
        return found

    assert project.write(project.speaker("c1"), "shared/a") == "allow"
    before = row()
    leave(project, project.speaker("c1"))
    project.send(project.speaker("c2").start())
    after = row()
    assert after["token"] > before["token"] and after["agent"] == "claude-c2"
    assert (after["since"], after["base"], after["reason"]) == (before["since"], before["base"], before["reason"])


def test_the_one_that_comes_back_is_told(project: Project) -> None:
    first = project.speaker("c1")
    leave(project, first)
    project.send(project.speaker("c2").start())
    told = context(project.send(first.start()))
    assert "a later one in the same work tree goes on with it" in told
    assert "claude-c2 holds it" in project.denial(first, "shared/a")


def test_who_did_not_end_leaves_nothing(project: Project) -> None:
    first = project.speaker("c1")
    project.write(first, "shared/a")
    (project.top / "shared/a").write_text("not committed\n")
    second = project.speaker("c2")
    project.send(second.start())
    assert "claude-c1 holds it" in project.denial(second, "shared/a")
    assert project.held() == {"shared/a": "claude-c1"}


def test_a_killed_one_leaves_nothing(project: Project) -> None:
    sub = project.speaker("c1", subagent="ag-1")
    project.send(project.speaker("c1").start())
    project.send({**sub.start(), "hook_event_name": "SubagentStart"})
    project.write(sub, "shared/a")
    (project.top / "shared/a").write_text("not committed\n")
    project.world.person("kill", "claude-c1", "--reason", "wild")
    project.send(project.speaker("c2").start())
    assert project.held().get("shared/a") != "claude-c2"


def test_a_handoff_waits_for_its_reader(project: Project) -> None:
    first = project.speaker("c1")
    project.write(first, "shared/a")
    (project.top / "shared/a").write_text("not committed\n")
    sections = [word for key in ("state", "changed", "remaining", "next") for word in (f"--{key}", f"the {key} of it")]
    done = project.world.handoff("new", *sections, agent="claude-c1")
    assert done.code == 0, done
    project.send(first.stop(final=True))
    project.send(project.speaker("c2").start())
    assert project.held() == {"shared/a": "claude-c1"}


def test_another_role_gets_nothing(tmp_path: Path) -> None:
    roles = '[role "docs"]\n\treadonly = false\n[role "code"]\n\treadonly = false\n[agents]\n\tdefault = code\n'
    project = Project(tmp_path, config=CONFIG + roles)
    project.world.person("role", "claude-c2", "docs")
    leave(project, project.speaker("c1"))
    project.send(project.speaker("c2").start())
    assert project.held() == {"shared/a": "claude-c1"}
    project.send(project.speaker("c3").start())
    assert project.held() == {"shared/a": "claude-c3"}


def test_another_work_tree_gets_nothing(project: Project) -> None:
    other = project.top.parent / "other"
    project.world.git("worktree", "add", "-q", str(other))
    leave(project, project.speaker("c1"))
    (other / "shared/a").write_text("not committed there either\n")
    project.send(project.speaker("c2", cwd=other).start(), cwd=other)
    assert project.held() == {"shared/a": "claude-c1"}
    project.send(project.speaker("c3").start())
    assert project.held() == {"shared/a": "claude-c3"}


def test_claims_of_another_s_task_stay_for_its_owner(project: Project) -> None:
    project.world.coord("task", "add", "Mend", agent="boss")
    task = project.world.coord("task", "list", "--json", agent="boss").json["tasks"][0]["id"]
    project.claim("--task", task, "shared/a", agent="claude-c1")
    (project.top / "shared/a").write_text("not committed\n")
    assert project.world.coord("task", "take", task, agent="bob").code == 0
    project.world.coord("stop", "--keep", agent="claude-c1")
    project.send(project.speaker("c2").start())
    assert project.held() == {"shared/a": "claude-c1"}


@pytest.mark.parametrize("tool", ["claude", "codex", "gemini"])
def test_a_cleared_conversation_is_over(project: Project, tool: str) -> None:
    """`/clear` in a tool that does not report the end of the conversation before."""
    one, two = project.speaker("c1", tool), project.speaker("c2", tool)
    (project.top / "shared/a").write_text("not committed\n")
    said = run_tool(
        project.top,
        (GUARD, json.dumps(one.start())),
        ([*CLAIM, "shared/a"], ""),
        (GUARD, json.dumps({**two.start(), "source": "clear"})),
        (GUARD, json.dumps(two.write("shared/a"))),
    )
    assert said[1][0] == 0 and said[3] == [0, "", ""], said
    assert project.held() == {"shared/a": f"{tool}-c2"}


# --- subagents one after the other --------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["claude", "codex", "copilot", "opencode"])
def test_subagents_one_after_the_other(project: Project, tool: str) -> None:
    parent = project.speaker("c1", tool)
    one, two = (project.speaker("c1", tool, subagent=name) for name in ("ag-1", "ag-2"))
    project.send(parent.start())
    change(project, one)
    assert not reason(tool, project.send(one.subagent_stop()))
    assert project.held() == {"shared/a": f"{tool}-c1"}
    assert go_on(project, two) == "allow"
    assert not reason(tool, project.send(two.subagent_stop()))
    words = reason(tool, project.send(parent.stop()))
    if tool != "opencode":  # its plugin cannot hold a turn back
        assert "shared/a" in words
