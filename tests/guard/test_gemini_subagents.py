"""Gemini CLI's subagents act in their parent's conversation and are never named: which actions are theirs, and what they leave."""

import json
from pathlib import Path

import pytest

from tests.guard.protocol import Speaker, context, reason, understood
from tests.guard.support import Project
from tests.guard.test_recorded import FILES, _rows

PARENT = "gemini-c1"
CHILD = "gemini-c1.generalist1"


@pytest.fixture
def who(project: Project) -> Speaker:
    """A conversation that has begun."""
    speaker = project.speaker(tool="gemini")
    project.send(speaker.start())
    return speaker


def calls(project: Project, who: Speaker, agent: str = "generalist") -> None:
    assert project.send(who.calls(agent)) == (b"", b"", 0)


def over(project: Project, who: Speaker, agent: str = "generalist") -> str:
    """What the parent is told."""
    return context(project.send(who.calls(agent, after=True)))


def changes(project: Project, who: Speaker, path: str) -> None:
    """It writes there, and commits nothing."""
    assert project.write(who, path) == "allow"
    with (project.top / path).open("a") as file:
        file.write("not committed\n")
    project.send(who.write(path, after=True))


def agents(project: Project) -> dict[str, str]:
    return {row["agent"]: row["state"] for row in project.world.coord("agents", "--json").json["agents"]}


def notes(project: Project) -> Path:
    (found,) = (project.top / ".git/gitcoord/guard/delegations").iterdir()
    return found


# --- below the parent -------------------------------------------------------------------------------------------------


def test_a_subagent_has_a_name_below_its_parents(project: Project, who: Speaker) -> None:
    changes(project, who, "shared/a")
    calls(project, who)
    assert agents(project) == {PARENT: "open", CHILD: "open"}
    assert project.write(who, "shared/a") == project.write(who, "shared/b") == "allow"
    assert project.held() == {"shared/a": PARENT, "shared/b": CHILD}
    parents = {row["agent"]: row["parent"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert parents == {PARENT: "", CHILD: PARENT}


def test_it_is_refused_what_others_hold(project: Project, who: Speaker) -> None:
    project.claim("shared/a", agent="bob")
    calls(project, who)
    assert "bob holds it" in project.denial(who, "shared/a")


def test_when_it_is_over_the_parent_acts_again(project: Project, who: Speaker) -> None:
    calls(project, who)
    project.write(who, "shared/a")
    project.claim("free", agent=CHILD)
    assert over(project, who) == ""
    assert project.held() == {} and agents(project) == {PARENT: "open", CHILD: "ended"}
    project.write(who, "shared/b")
    assert project.held() == {"shared/b": PARENT}


def test_two_in_a_row_are_two(project: Project, who: Speaker) -> None:
    for _ in range(2):
        calls(project, who)
        over(project, who)
    calls(project, who, "codebase_investigator")
    project.write(who, "shared/a")
    assert project.held() == {"shared/a": "gemini-c1.codebaseinv3"}
    assert agents(project) == {
        PARENT: "open", CHILD: "ended", "gemini-c1.generalist2": "ended", "gemini-c1.codebaseinv3": "open",
    }  # fmt: skip


def test_two_at_once_act_as_the_agent_itself(project: Project, who: Speaker) -> None:
    calls(project, who)
    calls(project, who, "reviewer")
    project.write(who, "shared/a")
    assert project.held() == {"shared/a": PARENT} and "gemini-c1.reviewer2" not in agents(project)
    over(project, who)  # now there is but one
    project.write(who, "shared/b")
    assert project.held() == {"shared/a": PARENT, "shared/b": "gemini-c1.reviewer2"}
    over(project, who, "reviewer")
    assert agents(project) == {PARENT: "open", CHILD: "ended", "gemini-c1.reviewer2": "ended"}


def test_the_end_of_one_is_not_that_of_the_other(project: Project, who: Speaker) -> None:
    calls(project, who)
    project.write(who, "shared/a")
    calls(project, who, "reviewer")
    over(project, who, "reviewer")
    assert project.held() == {"shared/a": CHILD} and agents(project) == {PARENT: "open", CHILD: "open"}


def test_another_conversation_is_nobodys_subagent(project: Project, who: Speaker) -> None:
    calls(project, who)
    project.write(project.speaker("c2", "gemini"), "shared/a")
    project.write(project.speaker("c1", "claude"), "shared/b")
    assert project.held() == {"shared/a": "gemini-c2", "shared/b": "claude-c1"}


def test_below_a_given_name(project: Project, who: Speaker) -> None:
    alice = {"GITCOORD_AGENT": "alice"}
    project.send(who.calls(), alice)
    project.send(who.write("shared/a"), alice)
    assert project.held() == {"shared/a": "alice.generalist1"}


def test_a_name_that_another_conversation_has_is_not_taken_from_it(project: Project, who: Speaker) -> None:
    """Both go by one given name, and number their subagents alike: the later one acts as the agent itself."""
    alice, other = {"GITCOORD_AGENT": "alice"}, project.speaker("c2", "gemini")
    project.send(who.calls(), alice)
    project.send(other.calls(), alice)
    assert understood("gemini", project.send(other.write("shared/a"), alice)) == "allow"
    project.send(who.write("shared/b"), alice)
    assert project.held() == {"shared/a": "alice", "shared/b": "alice.generalist1"}


def test_where_no_conversation_is_told_there_are_no_subagents(project: Project) -> None:
    """Two that tell none would be taken for one."""
    project.world.git("config", "gitcoord.agent", "carol")
    who = project.speaker("", "gemini")
    calls(project, who)
    project.write(who, "shared/a")
    assert project.held() == {"shared/a": "carol"}


def test_below_a_very_long_name_there_is_no_room(project: Project, who: Speaker) -> None:
    """It would be shortened, and then nothing tells whose family it is."""
    long = {"GITCOORD_AGENT": "a" * 60}
    project.send(who.calls(), long)
    project.send(who.write("shared/a"), long)
    assert project.held() == {"shared/a": "a" * 60}


# --- what it leaves ---------------------------------------------------------------------------------------------------


def test_what_it_committed_is_given_back_and_the_rest_is_its_parents(project: Project, who: Speaker) -> None:
    """At no time nobody holds it: it is handed over. The parent is told then, and asked about it when its turn ends."""
    calls(project, who)
    project.write(who, "shared/b")
    project.world.commit({"shared/b": "committed\n"})
    changes(project, who, "shared/a")
    project.claim("free", agent=CHILD)
    assert over(project, who) == f"gitcoord: {CHILD} left uncommitted work, which is yours now: shared/a"
    assert project.held() == {"shared/a": PARENT} and agents(project)[CHILD] == "ended"
    assert project.world.events()[-4:] == [
        f"hand over to {PARENT} by {CHILD} (h8)",
        f"accept h8 from {CHILD} by {PARENT}",
        f"release free by {CHILD}",
        f"stop session 1 of {CHILD}: stopped",
    ]
    said = project.send(who.stop())
    assert "uncommitted work that others cannot go on with: shared/a" in reason("gemini", said)


def test_the_next_one_goes_on_with_what_the_last_one_left(project: Project, who: Speaker) -> None:
    for _ in range(2):
        calls(project, who)
        changes(project, who, "shared/a")
        over(project, who)
    assert project.held() == {"shared/a": PARENT}


def test_the_parent_may_do_away_with_all_of_it(project: Project, who: Speaker) -> None:
    """A directory is claimed as a whole, which a claim of another below it would forbid."""
    calls(project, who)
    changes(project, who, "shared/a")
    over(project, who)
    assert understood("gemini", project.send(who.shell("rm -r shared"))) == "allow"


def test_the_parent_is_never_locked_out(project: Project) -> None:
    """Also where what it left could not be handed over, here since nobody may do anything at that moment."""
    who = project.speaker(tool="gemini")  # without its start, after which this process would be taken for it
    calls(project, who)
    changes(project, who, "shared/a")
    project.world.coord("halt", "--reason", "lunch", agent="bob")
    assert over(project, who) == ""
    project.world.person("unhalt")
    assert project.held() == {"shared/a": CHILD} and agents(project)[CHILD] == "ended"
    assert project.write(who, "shared/a") == "allow"


def test_a_write_that_was_under_way_when_it_was_broken_off_holds_up_nobody_of_the_family(
    project: Project, who: Speaker
) -> None:
    calls(project, who)
    assert project.write(who, "free/x") == "allow"  # and nobody tells that it is over
    project.send(who.stop())
    assert project.write(who, "free/x") == "allow"
    other = project.speaker("c2", "gemini")
    assert "is writing it at this moment" in project.denial(other, "free/x")


@pytest.mark.parametrize("path", ["shared/a", "free/x"])
def test_a_call_of_the_parent_that_runs_beside_it(project: Project, who: Speaker, path: str) -> None:
    """It is taken for the subagent's, or its end is. Neither waits for the other; at most it reads once more than needed."""
    assert project.write(who, path) == "allow"  # of the parent
    calls(project, who)
    (project.top / path).write_text("of the parent\n")
    project.send(who.write(path, after=True))
    assert project.write(who, path) == "allow"  # of either of them
    over(project, who)
    (project.top / path).write_text("of either\n")
    project.send(who.write(path, after=True))
    assert f"{CHILD} changed it since you last read it" in project.denial(who, path)
    assert project.write(who, path) == "allow"
    project.send(who.write(path, after=True))
    other = project.speaker("c2", "claude")
    if path == "free/x":  # it is known that all of them are over
        assert project.write(other, path) == "allow"


def test_what_it_changed_its_parent_has_not_seen(project: Project, who: Speaker) -> None:
    """Told once, as of any other agent: the parent would write back what it read before."""
    project.send(who.read("free/x"))
    calls(project, who)
    changes(project, who, "free/x")
    over(project, who)
    assert f"{CHILD} changed it since you last read it" in project.denial(who, "free/x")
    assert project.write(who, "free/x") == "allow"


# --- how it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["stop", "final", "start", "prompt"])
def test_no_subagent_outlives_a_turn(project: Project, who: Speaker, how: str) -> None:
    """Broken off, its end is never told."""
    calls(project, who)
    changes(project, who, "shared/a")
    ends = {"stop": who.stop(), "final": who.stop(final=True), "start": who.start(), "prompt": who.prompt()}
    said = project.send(ends[how])
    assert said.code == 0 and project.held() == {"shared/a": PARENT}
    assert ("which is yours now: shared/a" in context(said)) == (how == "prompt")  # a person waits for no other word
    assert ("shared/a" in reason("gemini", said)) == (how == "stop")  # the turn's end asks about it at once
    assert agents(project)[CHILD] == "ended"
    project.write(who, "shared/b")
    assert project.held()["shared/b"] == PARENT
    calls(project, who)
    assert agents(project)["gemini-c1.generalist2"] == "open"


def test_one_that_was_killed_is_over_for_its_parent(project: Project, who: Speaker) -> None:
    calls(project, who)
    project.world.coord("kill", CHILD, "--reason", "astray", agent="bob")
    assert f"'{CHILD}' was killed" in project.denial(who, "free/x")
    assert project.send(who.calls(after=True)) == (b"", b"", 0)
    assert project.write(who, "free/x") == "allow"


def test_after_an_hour_it_is_over(project: Project, who: Speaker) -> None:
    calls(project, who)
    known = json.loads(notes(project).read_text())
    known["open"][0]["at"] -= 3601
    notes(project).write_text(json.dumps(known, sort_keys=True, separators=(",", ":")))
    project.write(who, "shared/a")
    assert project.held() == {"shared/a": PARENT}


def test_one_whose_call_was_denied_never_was(tmp_path: Path) -> None:
    project = Project(tmp_path, config='[guard]\n\tautoclaim = true\n[validator "budget"]\n\tcalls = 1\n')
    who = project.speaker(tool="gemini")
    project.send(who.start())
    project.send(who.read("free/x"))
    assert understood("gemini", project.send(who.calls(at="2026-10-01T00:00:01Z"))) == "deny"
    assert CHILD not in agents(project) and not (project.top / ".git/gitcoord/guard/delegations").exists()


def test_the_call_of_a_second_one_is_the_parents_own(tmp_path: Path) -> None:
    """It counts against the parent's budget."""
    project = Project(tmp_path, config='[guard]\n\tautoclaim = true\n[validator "budget"]\n\tcalls = 1\n')
    who = project.speaker(tool="gemini")
    calls(project, who)
    assert understood("gemini", project.send(who.calls("reviewer", at="2026-10-01T00:00:01Z"))) == "deny"
    assert understood("gemini", project.send({**who.read("free/x"), "timestamp": "2026-10-01T00:00:02Z"})) == "allow"


def test_one_whose_call_could_not_be_judged_and_passed_acts_as_the_agent_itself(tmp_path: Path) -> None:
    project = Project(tmp_path, config="[guard]\n\tautoclaim = true\n\tonError = warn\n")
    who = project.speaker(tool="gemini")
    assert understood("gemini", project.send(who.calls(), {"GITCOORD_AGENT": "no name/"})) == "allow"
    project.write(who, "shared/a")
    assert project.held() == {"shared/a": PARENT}


# --- notes that are lost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"{", b"[]", b'{"v":1}', b'{"v":2,"last":1,"open":[]}', b"\xff" * 200_000]
)
def test_notes_that_make_no_sense_are_none(project: Project, who: Speaker, data: bytes) -> None:
    calls(project, who)
    notes(project).write_bytes(data)
    project.write(who, "shared/a")
    assert project.held() == {"shared/a": PARENT}
    assert over(project, who) == ""
    calls(project, who)
    project.write(who, "shared/b")
    assert project.held() == {"shared/a": PARENT, "shared/b": CHILD}


def test_where_nothing_may_be_noted_it_acts_as_the_agent_itself(project: Project, who: Speaker) -> None:
    (project.top / ".git/gitcoord/guard").mkdir(parents=True, exist_ok=True)
    (project.top / ".git/gitcoord/guard/delegations").write_text("")
    calls(project, who)
    project.write(who, "shared/a")
    assert over(project, who) == "" and project.held() == {"shared/a": PARENT}
    assert agents(project) == {PARENT: "open"}


def test_where_gitcoord_is_not_set_up(tmp_path: Path) -> None:
    project = Project(tmp_path, init=False)
    who = project.speaker(tool="gemini")
    assert project.send(who.calls()) == project.send(who.calls(after=True)) == project.send(who.stop()) == (b"", b"", 0)
    assert not (project.top / ".git/gitcoord").exists()


# --- what Gemini CLI really said ----------------------------------------------------------------------------------------


def test_a_recorded_conversation(project: Project) -> None:
    (path,) = (path for path in FILES if path.stem == "gemini")
    text = json.dumps([row["said"] for row in _rows(path)[1]]).replace("/home/ana/shop", str(project.top))
    parent = "gemini-5fcdbd88ed7a"
    events = [event for event in json.loads(text) if event["session_id"].endswith("5fcdbd88ed7a")]
    called = [at for at, event in enumerate(events) if event.get("tool_name") == "invoke_agent"]
    for event in events[: called[0] + 1]:
        assert project.send(event).code == 0
    # What its subagents do is told in the same form and the same conversation.
    project.send({**events[2], "tool_input": {"file_path": str(project.top / "shared/new"), "content": "x"}})
    assert project.held()["shared/new"] == f"{parent}.generalist1"
    for event in events[called[0] + 1 :]:
        assert project.send(event).code == 0
    assert agents(project) == {parent: "ended", f"{parent}.generalist1": "ended"}
    assert json.loads(notes(project).read_text()) == {"last": 1, "open": [], "v": 1}


def test_a_call_names_nobody_but_the_agent_that_is_called() -> None:
    """Should Gemini CLI come to tell who acts, or which call is over, we want to know: docs/guard.md says what follows from it."""
    (path,) = (path for path in FILES if path.stem == "gemini")
    called = [row["said"] for row in _rows(path)[1] if row["said"].get("tool_name") == "invoke_agent"][:2]
    assert [event["hook_event_name"] for event in called] == ["BeforeTool", "AfterTool"]
    base = {"session_id", "transcript_path", "cwd", "hook_event_name", "timestamp", "tool_name", "tool_input"}
    assert [set(event) for event in called] == [base, base | {"tool_response"}]
    assert all(set(event["tool_input"]) == {"agent_name", "prompt"} for event in called)


def test_a_recorded_turn_that_was_broken_off(project: Project) -> None:
    """With Esc, while its subagent was at work: neither that one's end nor the turn's is told, only what the person says next."""
    (path,) = (path for path in FILES if path.stem == "gemini")
    text = json.dumps([row["said"] for row in _rows(path)[1]]).replace("/home/ana/shop", str(project.top))
    events = [event for event in json.loads(text) if event["session_id"].endswith("315c6ce9b368")]
    names = [event.get("tool_name") or event["hook_event_name"] for event in events]
    begun, spoken = names.index("invoke_agent"), names.index("BeforeAgent", names.index("invoke_agent"))
    assert names[begun:spoken] == ["invoke_agent", "write_file", "write_file"]  # before and after a write of its own
    parent = "gemini-315c6ce9b368"
    for event in events[:spoken]:
        assert project.send(event).code == 0
        if event["hook_event_name"] == "BeforeTool" and event["tool_name"] == "write_file":
            (project.top / event["tool_input"]["file_path"]).write_text(event["tool_input"]["content"])
    assert project.held() == {"shared/left": f"{parent}.generalist1"}
    assert "which is yours now: shared/left" in context(project.send(events[spoken]))
    assert project.send(events[spoken + 1]).code == 0
    assert project.held() == {"shared/left": parent, "shared/mine": parent}


def test_a_prompt_is_never_held_up(project: Project, who: Speaker) -> None:
    calls(project, who)
    (project.top / ".git/gitcoord/guard/delegations").chmod(0)
    try:
        assert project.send(who.prompt()) == (b"", b"", 0)
    finally:
        (project.top / ".git/gitcoord/guard/delegations").chmod(0o755)
    project.world.coord("halt", "--reason", "stop", agent="bob")
    said = project.send(who.prompt())
    assert said.code == 0 and b"decision" not in said.out
