"""Subagents of any depth are of their parent's family; and which of a family a shell belongs to."""

import json
from itertools import pairwise

import pytest

from gitcoord.core.judge import is_family
from gitcoord.core.sessions import Actor
from gitcoord.core.shell import bypass
from gitcoord.hot import identity
from gitcoord.hot.identity import below, down
from gitcoord.names import check_agent
from tests.guard.protocol import Speaker, context, understood
from tests.guard.support import GUARD, Project
from tests.guard.test_conversations import run_tool
from tests.support import CLAIM

IDS = tuple(f"tool_{n}a1b2c3d4-5e6f-4a5b-8c9d-0123456789{n:02}" for n in range(12))


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top", ["a", "bob", "cursor-0123456789ab", "b" * 40, "b" * 58, "b" * 59, "b" * 60, "b" * 64])
def test_a_name_begins_with_that_of_whoever_is_above(top: str) -> None:
    line = [down(Actor(top, "i"), "cursor", "c", IDS[:depth]) for depth in range(len(IDS) + 1)]
    for above, actor in pairwise(line):
        assert check_agent(actor.agent) == actor.agent
        # Either a name of its own below it, or it acts as that one: the same in all, so that its session is the same too.
        assert actor == above or (actor.agent.startswith(f"{above.agent}.") and actor.parent == above.agent)
        assert all(is_family(one.agent, actor.agent) for one in line)
    assert line[-1] == line[-2]  # names come to an end


@pytest.mark.parametrize(("length", "own"), [(51, 12), (52, 8), (59, 4), (60, 0), (64, 0)])
def test_a_long_name_leaves_less_for_the_id(length: int, own: int) -> None:
    parent = Actor("b" * length, "i")
    one, two = (below(parent, "cursor", "c", id) for id in IDS[:2])
    assert len(one.agent) - length == (own + 1 if own else 0)
    assert (one != two and one.instance != two.instance) == bool(own)


def test_names_of_three_levels_are_as_they_were() -> None:
    actor = down(Actor("cursor-0123456789ab"), "cursor", "c", IDS[:3])
    assert actor.agent == "cursor-0123456789ab.012345678900.012345678901.012345678902"
    assert below(Actor("bob"), "claude", "c", "lock").agent == "bob.lock0"


def test_what_a_parent_holds_covers_subagents_of_any_depth(project: Project) -> None:
    """Each calls the next, in Cursor, whose subagents act in conversations of their own."""
    talks = [project.speaker(f"conversation-{n}", "cursor") for n in range(7)]
    project.send(talks[0].start())
    assert project.write(talks[0], "shared/a") == "allow"
    project.send(talks[0].write("shared/a", after=True))
    for n, (who, next) in enumerate(pairwise(talks)):
        project.send(who.task(IDS[n]))
        assert project.write(next, "shared/a") == "allow"
        project.send(next.write("shared/a", after=True))
    assert project.write(talks[4], "shared/b") == "allow"  # the last one that has a name of its own
    project.send(talks[4].write("shared/b", after=True))
    holder = project.held()["shared/b"]
    assert len(holder) == 64 and project.held()["shared/a"] == "cursor-onversation0"
    assert project.write(talks[6], "shared/b") == "allow"
    # The end of one that has none is not the end of whoever it acted as.
    project.send(talks[6].write("shared/b", after=True))
    project.send(talks[4].subagent_event("subagentStop", IDS[4]))
    assert project.held()["shared/b"] == holder
    states = {row["agent"]: row["state"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert states[holder] == "open"


def test_whoever_is_killed_goes_on_at_no_depth(project: Project) -> None:
    talks = [project.speaker(f"c{n}", "cursor") for n in range(6)]
    project.send(talks[0].start())
    for n, (who, next) in enumerate(pairwise(talks)):
        project.send(who.task(IDS[n]))
        assert project.write(next, "free/x") == "allow"
        project.send(next.write("free/x", after=True))
    project.world.coord("kill", "cursor-c0", "--reason", "astray", agent="bob")
    assert "'cursor-c0' was killed" in project.denial(talks[5], "free/x")


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


def test_a_shell_of_gemini_is_that_of_whoever_is_under_way(project: Project) -> None:
    who = project.speaker(tool="gemini")
    said = run_tool(
        project.top,
        hook(who.start()),
        shell("free/x", GEMINI_CLI="1"),
        hook(who.calls()),
        shell("shared/a", GEMINI_CLI="1"),
        hook(who.calls("reviewer")),
        shell("shared/b", GEMINI_CLI="1"),  # of two at once nobody can tell whose it is
        hook(who.calls("reviewer", after=True)),
        shell("free/y", GEMINI_CLI="1"),
        hook(who.calls(after=True)),
        shell("free/z", GEMINI_CLI="1"),
    )
    assert [row[0] for row in said] == [0] * len(said), said
    events = project.world.coord("log", "--kind", "claim", "--json").json["events"]
    takers = {event["event"]["items"][0][1]: event["agent"] for event in events}
    assert takers == {
        "free/x": "gemini-c1", "shared/a": "gemini-c1.generalist1", "shared/b": "gemini-c1",
        "free/y": "gemini-c1.generalist1", "free/z": "gemini-c1",
    }  # fmt: skip
    # What it held by hand and did not change was given back when it was over.
    assert project.held() == {"free/x": "gemini-c1", "shared/b": "gemini-c1", "free/z": "gemini-c1"}


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
    known = {variable.decode() for _, _, ids in identity._TOOLS for variable in ids}
    assert known == set(bypass._WHO)
