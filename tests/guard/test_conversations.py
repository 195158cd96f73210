"""Starts and ends of conversations, subagents, and one identity for everything below one tool's process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gates.support import Project as Hooked
from tests.guard.protocol import TOOLS, Speaker, context, reason, understood
from tests.guard.support import GUARD, Project
from tests.support import CLAIM

CONVERSATION = "0b7f4c1e-5a52-4c1b-9f0e-2f6a1d3c4b5a"
# An agent tool: it runs what it is told one after the other, hooks with something on their input, and tells what came out.
TOOL = """
import json, subprocess, sys
for argv, data in json.load(sys.stdin):
    done = subprocess.run(argv, input=data.encode(), capture_output=True)
    print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode()]), flush=True)
"""


def run_tool(top: Path, *steps: tuple[list[str], str]) -> list[list[object]]:
    done = subprocess.run(
        [sys.executable, "-c", TOOL], input=json.dumps(steps).encode(), cwd=top, capture_output=True, check=True,
        env={name: value for name, value in os.environ.items() if name != "GITCOORD_AGENT"},
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- one identity -------------------------------------------------------------------------------------------------


def test_guard_claim_and_commit_are_one_agent(tmp_path: Path) -> None:
    """The hook through a shell, the claim in the agent's shell, and git's hooks below its commit."""
    hooked = Hooked(tmp_path)
    who = Speaker("claude", CONVERSATION, str(hooked.top))
    (hooked.top / "shared/a").write_text("changed\n")
    hook = ["sh", "-c", '"$@"; exit $?', "sh", *GUARD]
    script = 'set -e; cd shared; "$@" claim a; git commit -qm one -- a; git log -1 --format=%B'
    said = run_tool(
        hooked.top,
        (hook, json.dumps(who.start())),
        (["sh", "-c", script.replace('"$@" claim', '"$@"'), "sh", *CLAIM], ""),
        (hook, json.dumps(who.write("shared/a"))),
        (hook, json.dumps(who.stop(final=True))),
        ([*CLAIM, "shared/b"], ""),
    )
    start, shell, write, _, after = said
    name = "claude-2f6a1d3c4b5a"
    assert f"You are '{name}'" in context_of(start)
    assert shell[0] == 0 and f"Agent: {name}" in str(shell[1]), shell
    assert write == [0, "", ""]
    assert "nobody is named here" in str(after[2])  # the conversation is over: nobody acts any more
    assert hooked.world.events()[-1] == f"stop session 1 of {name}: stopped"


def context_of(said: list[object]) -> str:
    return str(json.loads(str(said[1]))["hookSpecificOutput"]["additionalContext"])


def test_of_a_process_with_two_conversations_nobody_knows_whose_shell_it_is(project: Project) -> None:
    one, two = project.speaker("c1", "cursor"), project.speaker("c2", "cursor")
    said = run_tool(
        project.top, (GUARD, json.dumps(one.start())), ([*CLAIM, "shared/a"], ""), (GUARD, json.dumps(two.start())),
        ([*CLAIM, "shared/b"], ""),
    )  # fmt: skip
    assert said[1][0] == 0 and project.held() == {"shared/a": "cursor-c1"}
    assert said[3][0] == 2 and "nobody is named here" in str(said[3][2])


def test_a_given_name_counts_more(project: Project) -> None:
    project.send(project.speaker().write("shared/a"), {"GITCOORD_AGENT": "alice"})
    project.send(project.speaker("c2", subagent="s-1").write("shared/b"), {"GITCOORD_AGENT": "alice"})
    assert project.held() == {"shared/a": "alice", "shared/b": "alice.s1"}


def test_a_tool_that_does_not_say_who(project: Project) -> None:
    event = project.speaker().write("free/x")
    event["session_id"] = ""
    said = project.send(event)
    assert understood("claude", said) == "deny" and "cannot tell who acts" in reason("claude", said)
    project.world.git("config", "gitcoord.agent", "carol")
    assert understood("claude", project.send(event)) == "allow"


# --- starts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "windsurf"])
def test_a_start_tells_what_start_tells(project: Project, tool: str) -> None:
    project.world.coord("task", "add", "Mend the parser", agent="bob")
    told = context(project.send(project.speaker(tool=tool).start()))
    name = f"{tool}-c1"
    assert told.splitlines()[0] == f"gitcoord coordinates who writes here. You are '{name}'."
    brief = project.world.coord("start", "--brief", agent=name).out.splitlines()
    assert told.splitlines()[1:] == brief[1:]


def test_a_subagent_of_gemini_is_told_in_its_prompt(project: Project) -> None:
    project.claim("-m", "new login", "free/x", agent="bob")
    event = project.speaker(tool="gemini").shell("true")
    event |= {"tool_name": "invoke_agent", "tool_input": {"agent_name": "generalist", "prompt": "Mend it."}}
    given = project.send(event).json["hookSpecificOutput"]["tool_input"]["prompt"]
    assert given.startswith(
        "Mend it.\n\ngitcoord coordinates who writes here. You and the agent that sent you are 'gemini-c1'."
    )
    assert "bob holds free/x: new login" in given


def test_a_start_that_fails_stops_nothing(project: Project) -> None:
    project.world.person("halt", "--reason", "lunch")
    said = project.send(project.speaker().start())
    assert said.code == 0 and "gitcoord: everything was halted by ada_at_example.com: lunch" in context(said)


# --- ends ---------------------------------------------------------------------------------------------------------


def test_a_turn_gives_back_what_is_committed(project: Project) -> None:
    who = project.speaker()
    project.claim("free", agent="claude-c1")  # taken by hand: it stays
    for path in ("shared/a", "shared/b"):
        project.write(who, path)
    project.world.commit({"shared/a": "mine\n"})
    assert project.send(who.stop()) == (b"", b"", 0)
    assert project.held() == {"free": "claude-c1"}


@pytest.mark.parametrize("tool", ["claude", "codex", "gemini", "copilot", "cursor"])
def test_uncommitted_work_is_asked_about_once(project: Project, tool: str) -> None:
    who = project.speaker(tool=tool)
    project.write(who, "shared/a")
    (project.top / "shared/a").write_text("not committed\n")
    words = reason(tool, project.send(who.stop()))
    assert "uncommitted work that others cannot go on with: shared/a" in words and "git handoff new" in words
    assert not reason(tool, project.send(who.stop()))
    assert project.held() == {"shared/a": f"{tool}-c1"}


def test_what_a_validator_lets_go_at_the_end_is_on_record_once(tmp_path: Path) -> None:
    config = '[validator "house"]\n\tcommand = exit 1\n\ton = stop\n[rollout]\n\thouse = monitor\n'
    project = Project(tmp_path, config=config)
    for _ in range(2):
        assert project.send(project.speaker().stop()) == (b"", b"", 0)
    assert [subject for subject in project.world.events() if "notice" in subject] == [
        "notice at guard: house by claude-c1"
    ]


def test_sent_back_already(project: Project) -> None:
    who = project.speaker()
    project.write(who, "shared/a")
    (project.top / "shared/a").write_text("not committed\n")
    assert project.send({**who.stop(), "stop_hook_active": True}) == (b"", b"", 0)


def test_the_end_of_a_conversation(project: Project) -> None:
    who = project.speaker()
    for path in ("shared/a", "shared/b"):
        project.write(who, path)
    (project.top / "shared/a").write_text("not committed\n")
    assert project.send(who.stop(final=True)).code == 0
    assert project.held() == {"shared/a": "claude-c1"}  # until its ttl, or until the conversation goes on
    assert project.world.events()[-1].startswith("stop session 1 of claude-c1")
    assert project.write(who, "shared/b") == "allow"


# --- subagents ----------------------------------------------------------------------------------------------------


def test_siblings_stand_in_each_others_way(project: Project) -> None:
    one, two = (project.speaker(subagent=name) for name in ("ag-1", "ag-2"))
    assert project.write(one, "shared/a") == "allow"
    assert project.held() == {"shared/a": "claude-c1.ag1"}
    assert "claude-c1.ag1 holds it" in project.denial(two, "shared/a")
    project.claim("shared/b", agent="claude-c1")
    assert project.write(two, "shared/b") == "allow"  # what the parent holds covers it
    assert project.held()["shared/b"] == "claude-c1"


def test_a_subagent_begins_and_ends(project: Project) -> None:
    project.send(project.speaker().start())
    who = project.speaker(subagent="ag-1")
    base = {**who.start(), "hook_event_name": "SubagentStart"}
    told = context(project.send(base))
    assert "You are 'claude-c1.ag1', and what 'claude-c1' holds is yours to write too." in told
    project.write(who, "shared/a")
    project.send({**who.start(), "hook_event_name": "SubagentStop"})
    assert project.held() == {}
    states = {row["agent"]: row["state"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert states["claude-c1.ag1"] == "ended" and states["claude-c1"] == "open"


def test_copilot_is_told_once(project: Project) -> None:
    """It runs its own hook and the one of Claude Code's settings, each with the event in another form."""
    own = project.speaker(tool="copilot").start()
    alike = {
        "hook_event_name": "SessionStart",
        "session_id": "c1",
        "timestamp": "2026-11-17T03:34:31.320Z",
        "source": "new",
    }
    assert "You are 'copilot-c1'" in context(project.send(own))
    assert context(project.send({**alike, "cwd": str(project.top)})) == ""
