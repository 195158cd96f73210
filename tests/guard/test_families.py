"""Subagents are of their parent's family where their tool names it; conversations that name none are never taken for one another."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import accumulate, pairwise
from shlex import quote

import pytest

from gitcoord.base.agent_tools import TOOLS
from gitcoord.base.names import check_agent
from gitcoord.gates.judge import is_family
from gitcoord.guard.tools import NAMES
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.identity import subagent_of
from gitcoord.shell.parse import analyse
from tests.guard.protocol import Speaker, context, reason, understood
from tests.guard.support import GUARD, Project
from tests.guard.test_conversations import TOOL, run_tool
from tests.support import CLAIM, COORD

IDS = tuple(f"tool_{n}a1b2c3d4-5e6f-4a5b-8c9d-0123456789{n:02}" for n in range(12))


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top", ["a", "bob", "cursor-0123456789ab", "b" * 40, "b" * 58, "b" * 59, "b" * 60, "b" * 64])
def test_a_name_begins_with_that_of_whoever_is_above(top: str) -> None:
    line = [*accumulate(IDS, lambda actor, id: subagent_of(actor, "claude", "c", id), initial=Actor(top, "i"))]
    for above, actor in pairwise(line):
        assert check_agent(actor.agent) == actor.agent
        # Either a name of its own below it, or it acts as that one: the same in all, so that its session is the same too.
        assert actor == above or (actor.agent.startswith(f"{above.agent}.") and actor.parent == above.agent)
        assert all(is_family(one.agent, actor.agent) for one in line)
    assert line[-1] == line[-2]  # names come to an end


@pytest.mark.parametrize(("length", "own"), [(51, 12), (52, 8), (59, 4), (60, 0), (64, 0)])
def test_a_long_name_leaves_less_for_the_id(length: int, own: int) -> None:
    parent = Actor("b" * length, "i")
    one, two = (subagent_of(parent, "claude", "c", id) for id in IDS[:2])
    assert len(one.agent) - length == (own + 1 if own else 0)
    assert (one != two and one.instance != two.instance) == bool(own)


def test_a_name_ends_in_the_end_of_the_id() -> None:
    assert subagent_of(Actor("claude-0123456789ab"), "claude", "c", IDS[3]).agent == "claude-0123456789ab.012345678903"
    assert subagent_of(Actor("bob"), "claude", "c", "lock").agent == "bob.lock0"


@pytest.mark.parametrize(("tool", "name"), [(tool, f"{tool}-c1.ag1") for tool in ("claude", "codex", "opencode")])
def test_what_a_parent_holds_covers_subagents_that_their_tool_names(project: Project, tool: str, name: str) -> None:
    parent, child = (project.speaker(tool=tool, subagent=id) for id in ("", "ag-1"))
    project.claim("shared/a", agent=f"{tool}-c1")
    assert project.write(child, "shared/a") == project.write(child, "shared/b") == "allow"
    project.send(child.write("shared/b", after=True))
    assert project.write(parent, "shared/b") == "allow"
    assert project.held() == {"shared/a": f"{tool}-c1", "shared/b": name}


@pytest.mark.parametrize(("given", "holder"), [("carol.x", "carol.x.ag1"), ("b" * 60, "b" * 60)])
def test_below_a_given_name(project: Project, given: str, holder: str) -> None:
    """A very long one leaves no room: the subagent acts as its parent, and its end is not its parent's."""
    env = {"GITCOORD_AGENT": given}
    who = project.speaker(subagent="ag-1")
    assert understood("claude", project.send(who.write("shared/a"), env)) == "allow"
    assert project.held() == {"shared/a": holder}
    (project.top / "shared/a").write_text("not committed\n")
    for _ in range(2):
        project.send({**who.start(), "hook_event_name": "SubagentStop"}, env)
    states = {row["agent"]: row["state"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert states[holder] == ("ended" if holder != given else "open")


def test_whoever_is_killed_goes_on_at_no_depth(project: Project) -> None:
    project.world.claim("free/x", agent="carol")
    project.world.person("kill", "carol", "--reason", "astray")
    said = project.send(project.speaker(subagent="ag-1").write("shared/a"), {"GITCOORD_AGENT": "carol.x"})
    assert "'carol' was killed" in reason("claude", said)


# --- conversations that name no parent ----------------------------------------------------------------------------------


def parallel(project: Project, tool: str = "cursor", *, task: bool) -> tuple[Speaker, Speaker]:
    """A conversation that holds shared/a, and perhaps hands a task on; and one that appears from nowhere."""
    parent, other = (project.speaker(name, tool) for name in ("p", "c"))
    project.send(parent.start())
    assert project.write(parent, "shared/a") == "allow"
    project.send(parent.write("shared/a", after=True))
    if task:
        assert understood("cursor", project.send(parent.task("d1"))) == "allow"
        assert project.send(parent.subagent_event("subagentStart", "d1")).json == {"permission": "allow"}
    return parent, other


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("task", [False, True])
def test_two_parallel_conversations_of_cursor_are_never_one(project: Project, task: bool, begins: bool) -> None:
    """They stay two even when one has just handed a task on, and the start of the other was not reported."""
    parent, other = parallel(project, task=task)
    if begins:
        project.send(other.start())
    assert "cursor-p holds it" in project.denial(other, "shared/a")
    assert project.write(other, "shared/b") == "allow"
    project.send(other.write("shared/b", after=True))
    assert "cursor-c holds it" in project.denial(parent, "shared/b")
    if task:
        assert project.send(parent.subagent_event("subagentStop", "d1")).json == {}
        project.send(parent.task("d1", after=True))
        assert "cursor-p holds it" in project.denial(other, "shared/a")
    assert project.held() == {"shared/a": "cursor-p", "shared/b": "cursor-c"}
    agents = {row["agent"]: row["parent"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert agents == {"cursor-p": "", "cursor-c": ""}


@pytest.mark.parametrize("tool", [tool for tool in NAMES if tool != "cursor"])
def test_nor_are_those_of_any_other_tool(project: Project, tool: str) -> None:
    _, other = parallel(project, tool, task=False)
    words = project.denial(other, "shared/a")
    assert f"{tool}-p holds it" in words and "whose subagent" not in words


def test_a_conversation_of_cursor_that_names_its_parent_is_below_it(project: Project) -> None:
    """No known version does so; this is the answer to one that does."""
    _, other = parallel(project, task=True)
    named = {"parent_conversation_id": "p"}
    for path in ("shared/a", "shared/b"):
        assert understood("cursor", project.send({**other.write(path), **named})) == "allow"
    assert project.held() == {"shared/a": "cursor-p", "shared/b": "cursor-p.c"}


def test_a_subagent_of_cursor_that_is_refused_is_told_how_to_go_on(project: Project) -> None:
    """Both ways, followed literally."""
    _, other = parallel(project, task=True)
    words = project.denial(other, "shared/a")
    assert "Cursor does not tell whose subagent a conversation is" in words
    release, run = (re.search(f"hint: .*: (git {verb}.*)", words) for verb in ("claim release", "coord run"))
    assert release and run
    # The holder, in its own shell:
    line = release[1].replace("git claim", " ".join(map(quote, CLAIM)))
    (done,) = run_tool(project.top, (["env", "CURSOR_AGENT=1", "CURSOR_CONVERSATION_ID=p", "sh", "-c", line], ""))
    assert done[0] == 0, done
    assert project.write(other, "shared/a") == "allow" and project.held() == {"shared/a": "cursor-c"}
    # A person: the tool's process, and two conversations in it.
    two = [project.speaker(name, "cursor") for name in ("p2", "c2")]
    steps = [hook(event) for who in two for event in (who.write("shared/b"), who.write("shared/b", after=True))]
    tool = f"{quote(sys.executable)} -c {quote(TOOL)}"
    line = run[1].replace("git coord", " ".join(map(quote, COORD))).replace("<name>", "ana").replace("<command>", tool)
    out = subprocess.run(
        ["sh", "-c", line], input=json.dumps(steps), cwd=project.top, capture_output=True, text=True, check=True
    ).stdout
    assert [json.loads(row)[1] for row in out.splitlines()][::2] == ['{"permission":"allow"}\n'] * 2, out
    events = project.world.coord("log", "--kind", "claim", "--json").json["events"]
    assert [event["agent"] for event in events if event["event"]["items"][0][1] == "shared/b"] == ["ana"]


def test_only_another_conversation_of_cursor_could_be_a_parent(project: Project) -> None:
    project.claim("shared/a", agent="bob")
    assert "whose subagent" not in project.denial(project.speaker("c", "cursor"), "shared/a")
    project.claim("shared/b", agent="cursor-p")
    said = project.send(project.speaker("c", "cursor").write("shared/b"), {"GITCOORD_AGENT": "carol"})
    assert "cursor-p holds it" in reason("cursor", said) and "whose subagent" not in reason("cursor", said)


def test_subagents_of_gemini_act_as_the_agent_in_whose_conversation_they_are(project: Project) -> None:
    """The tool does not say which of them acts. Another conversation is another agent."""
    who, other = (project.speaker(name, "gemini") for name in ("c1", "c2"))
    project.send(who.start())
    assert project.write(who, "shared/a") == "allow"
    project.send(who.write("shared/a", after=True))
    sent = project.send(who.calls())
    assert understood(who.tool, sent) == "allow" and b"You and the agent that sent you are 'gemini-c1'" in sent.out
    assert project.write(who, "shared/a") == project.write(who, "shared/b") == "allow"
    assert "gemini-c1 holds it" in project.denial(other, "shared/b")
    assert project.send(who.calls(after=True)) == (b"", b"", 0)
    assert project.held() == {"shared/a": "gemini-c1", "shared/b": "gemini-c1"}


# --- shells -----------------------------------------------------------------------------------------------------------


def shell(path: str, **env: str) -> tuple[list[str], str]:
    return (["env", *(f"{name}={value}" for name, value in env.items()), *CLAIM, path], "")


def hook(event: object) -> tuple[list[str], str]:
    return (GUARD, json.dumps(event))


def test_a_shell_of_codex_tells_the_thread(project: Project) -> None:
    """The agent's own has the id of the session, a subagent's that of its own thread, which its events name."""
    top, child = "01a1e994-6517-7192-9a55-7315065767ba", "01a1e994-69a2-7d62-b996-cb023fcdc697"
    who = Speaker("codex", top, str(project.top), child)
    session = {"CODEX_SESSION_ID": top}
    run_tool(
        project.top,
        hook(Speaker("codex", top, str(project.top)).start()),
        hook(who.write("shared/a")),
        shell("shared/b", **session, CODEX_THREAD_ID=child),
        shell("free/x", **session, CODEX_THREAD_ID=top),
        shell("free/y", CODEX_SESSION_ID="another", CODEX_THREAD_ID=child),
        shell("free/z", **session, CODEX_THREAD_ID=child, GITCOORD_AGENT="bob"),
    )
    name = "codex-7315065767ba"
    assert project.held() == {
        "shared/a": f"{name}.cb023fcdc697", "shared/b": f"{name}.cb023fcdc697", "free/x": name, "free/y": name,
        "free/z": "bob",
    }  # fmt: skip


def test_a_shell_of_codex_without_a_start(project: Project) -> None:
    """Its hooks were not trusted when it began."""
    run_tool(
        project.top,
        shell("free/x", CODEX_SESSION_ID="s-1", CODEX_THREAD_ID="t-2"),
        shell("free/y", CODEX_THREAD_ID="s-1"),
    )
    assert project.held() == {"free/x": "codex-s1.t2", "free/y": "codex-s1"}


def test_a_shell_of_cursor_tells_the_conversation(project: Project) -> None:
    """One process hosts all of them, and was noted for the first one that began."""
    who = project.speaker("p", "cursor")
    tell = {"CURSOR_AGENT": "1"}
    run_tool(
        project.top,
        hook(who.start()),
        shell("free/x", **tell, CURSOR_CONVERSATION_ID="p"),
        shell("free/y", **tell, CURSOR_CONVERSATION_ID="c"),
        shell("free/z", **tell, CURSOR_CONVERSATION_ID="c", GITCOORD_AGENT="bob"),
    )
    assert project.held() == {"free/x": "cursor-p", "free/y": "cursor-c", "free/z": "bob"}


def test_a_subagent_whose_shell_tells_nothing_is_told_what_to_say(project: Project) -> None:
    """The environment of Claude Code's shells is the same for all of a conversation, and so is the process above them."""
    project.send(project.speaker().start())
    who = project.speaker(subagent="ag-1")
    told = context(project.send({**who.start(), "hook_event_name": "SubagentStart"}))
    words = "GITCOORD_AGENT=claude-c1.ag1 git claim"
    assert words in told
    assert understood("claude", project.send(who.shell(f"{words} shared/a"))) == "allow"
    own = words.split()[0]
    for other in (
        *(f"GITCOORD_AGENT={name} git claim shared/a" for name in ("claude-c1", "claude-c1.ag2", "claude-c1.ag1x", "")),
        f"{own}$X git claim shared/a",
        f"{own.replace('=', '+=')} git claim shared/a",
        f"export {own}; git claim shared/a",
        f"{own} GITCOORD_SESSION=3 git claim shared/a",
        f"{own} git claim shared/a; GITCOORD_AGENT=bob git claim shared/b",
        f"{own} ; cat secret/x",
        f"{own} sh script",
        f"{own} git show HEAD:secret/x",
        f"{own} git commit --no-verify -m x",
    ):
        assert understood("claude", project.send(who.shell(other))) == "deny", other
    project.claim("shared/a", agent="claude-c1.ag1")
    assert project.held() == {"shared/a": "claude-c1.ag1"}
    assert "claude-c1.ag1 holds it" in project.denial(project.speaker(subagent="ag-2"), "shared/a")
    assert "GITCOORD_AGENT" not in context(project.send(project.speaker("c2").start()))


def test_what_tells_whose_a_shell_is_is_not_to_be_changed() -> None:
    for variable in [variable.decode() for tool in TOOLS for variable in tool.ids]:
        assert "bypass" in [effect.kind for effect in analyse(f"{variable}=x git status", cwd="/r", home="/h")], (
            variable
        )
    assert analyse("ELSE=x git status", cwd="/r", home="/h") == ()
