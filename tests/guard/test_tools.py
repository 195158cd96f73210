"""Events of the agent tools: recorded ones, the exact bytes of each answer, and arbitrary ones.

A sample has the event as the tool sends it, what is read out of it, and the replies to five answers. Its `version` is the tool's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.guard import tools
from gitcoord.guard.tools import claude, codex, copilot, cursor, gemini, opencode, windsurf
from gitcoord.guard.tools import common as words
from gitcoord.validators.tally import fingerprint
from gitcoord.validators.tool_event import AFTER, ALLOW, ASK, BEFORE, DENY, PHASES, Answer, Reply, ToolEvent

SAMPLES = sorted((Path(__file__).parent / "samples").rglob("*.json"))
REASON = 'src/app.py is held by "bob" for 12 min more.\nTake other work: git coord task next'
CONTEXT = "You are ana-1 here.\nRead .gitcoord/rules.md – all of it."
ANSWERS = {
    "allow": Answer(),
    "deny": Answer(DENY, REASON),
    "ask": Answer(ASK, REASON),
    "context": Answer(ALLOW, "", CONTEXT),
}


def _sample(path: Path) -> Any:
    return json.loads(path.read_text())


def _reply(recorded: dict[str, Any]) -> Reply:
    return Reply(recorded.get("out", "").encode(), recorded.get("err", "").encode(), recorded.get("code", 0))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_samples(path: Path) -> None:
    sample = _sample(path)
    data = words.parse(json.dumps(sample["input"]))
    tool = tools.detect(data)
    assert path.parent.name == tool.NAME
    event = tool.read(sample["input"])
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in event._asdict().items()}
    blank = ToolEvent("", "")._asdict()
    assert {name: value for name, value in told.items() if value not in (blank[name], []) and name != "input"} == (
        sample["event"]
    )
    for name, answer in ANSWERS.items():
        assert tool.answer(event, answer) == _reply(sample["replies"][name]), name
    assert tool.fail("gitcoord could not judge this", sample["input"]) == _reply(sample["replies"]["fail"])


@pytest.mark.parametrize("name", tools.NAMES)
def test_each_tool_is_sampled(name: str) -> None:
    tool = tools.load(name)
    mine = [_sample(path) for path in SAMPLES if path.parent.name == name]
    assert name == tool.NAME
    if name == "windsurf":  # of the others newer events are recorded: test_recorded.py
        versions = {sample["version"].rpartition(".")[0] for sample in mine}
        assert {f"Sampled of version {version}." in str(tool.__doc__) for version in versions} == {True}
    assert any(sample["event"].get("writes") for sample in mine)
    assert any(sample["event"].get("command") for sample in mine)
    assert any(sample["event"]["phase"] == AFTER for sample in mine)


def test_each_word_that_tells_a_tool_is_enough() -> None:
    """The tool is recognised, whatever else an event lacks."""
    words_of = {
        "cursor": ({"cursor_version": "2"}, {"conversation_id": "c", "workspace_roots": []}),
        "windsurf": ({"agent_action_name": "pre_read_code"},),
        "copilot": (
            {"toolName": "edit"},
            {"sessionId": "s", "source": "new"},
            {"sessionId": "s", "reason": "complete"},
        ),
        "opencode": ({"opencode": 1},),
        "gemini": ({"hook_event_name": "BeforeTool"}, {"hook_event_name": "AfterAgent"}),
        "codex": (
            {"turn_id": "t"},
            {"transcript_path": "/home/ana/.codex/sessions/x"},
            {"transcript_path": "/s/rollout-1"},
        ),
        "claude": ({"hook_event_name": "PreToolUse"}, {"hook_event_name": "SessionStart", "transcript_path": "/t"}),
    }
    assert set(words_of) == set(tools.NAMES)
    for name, events in words_of.items():
        for event in events:
            assert name == tools.detect(event).NAME, event


@pytest.mark.parametrize("name", tools.NAMES)
def test_all_events_of_a_conversation_come_out_as_one_tool(name: str) -> None:
    """Else its start and its edits would be two agents."""
    mine = {_sample(path)["event"]["conversation"] for path in SAMPLES if path.parent.name == name}
    assert len(mine) <= 2  # the samples of one tool are of one conversation (and of Copilot's editor)


@pytest.mark.parametrize("path", [p for p in SAMPLES if _sample(p)["event"]["phase"] == BEFORE], ids=lambda p: p.stem)
def test_a_denial_is_never_taken_for_anything_else(path: Path) -> None:
    """This holds for any reason, and for none."""
    tool = tools.load(path.parent.name)
    event = tool.read(_sample(path)["input"])
    for reason in ("", " \n", "half \udce9 pair", '"}', "\x1b[2J"):
        reply = tool.answer(event, Answer(DENY, reason))
        if reply.code == 2:
            assert reply.err.strip() and not reply.out
            continue
        said = json.loads(reply.out)
        said = said.get("hookSpecificOutput", said)
        verdicts = {said.get(key) for key in ("permissionDecision", "permission", "decision")} - {None}
        reasons = [said[key] for key in ("permissionDecisionReason", "agent_message", "reason") if key in said]
        assert verdicts == {"deny"} and all(text.strip() for text in reasons) and reasons
        assert reply.out.isascii() and b"\\ud" not in reply.out


@pytest.mark.parametrize("name", tools.NAMES)
def test_without_an_event_everything_is_denied(name: str) -> None:
    for data in ({}, {"hook_event_name": ""}):
        reply = tools.load(name).fail("no event", data)
        assert reply == Reply(err=b"no event\n", code=2)
    assert tools.fail("no event") == Reply(err=b"no event\n", code=2)


# --- whatever comes --------------------------------------------------------------------------------------------------

KEYS = [
    "hook_event_name", "tool_name", "tool_input", "toolName", "toolArgs", "cursor_version", "agent_action_name",
    "tool_info", "opencode", "event", "tool", "args", "turn_id", "timestamp", "transcript_path", "source", "cwd",
    "session_id", "sessionId", "file_path", "path", "command", "edits", "workspace_roots", "tool_response", "tool_output",
    "toolResult", "loop_count", "agent_id", "error", "metadata", "content", "hookEventName", "conversation_id",
]  # fmt: skip
WORDS = [
    "PreToolUse",
    "BeforeTool",
    "preToolUse",
    "beforeReadFile",
    "pre_write_code",
    "before",
    "after",
    "Edit",
    "Bash",
]
WORDS += ["write_file", "apply_patch", "edit", "ApplyPatch", "{", '{"path": 1}', "mcp__x__move_file", "SessionStart"]
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(WORDS)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=10,
)


def _judged(data: object) -> None:
    """Assert that reading raises ValueError only, and returns the promised types."""
    try:
        tool = tools.detect(data)
    except ValueError:
        assert not isinstance(data, dict)
        return
    assert isinstance(data, dict)
    try:
        event = tool.read(data)
    except ValueError:
        reply = tool.fail("x", data)
        in_own_form = tool.NAME == "copilot" and b'"permissionDecision":"deny"' in reply.out
        assert (reply.code == 2 and reply.err) or in_own_form, "what could not be read was let through"
        return
    assert event.tool == tool.NAME and event.phase in PHASES
    for value in (
        *event.writes,
        *event.reads,
        event.command,
        event.cwd,
        event.conversation,
        event.subagent,
        event.name,
    ):
        assert isinstance(value, str)
    assert isinstance(event.input, dict) and type(event.spent) is int
    assert event.failed in (True, False, None)  # None: some tools do not say
    for answer in ANSWERS.values():
        assert isinstance(tool.answer(event, answer), Reply)
    tool.fail("x", data)


@given(values)
def test_any_json(data: object) -> None:
    _judged(data)


@given(st.sampled_from(SAMPLES), st.data())
def test_a_sample_with_something_else_in_it(path: Path, data: st.DataObject) -> None:
    event = _sample(path)["input"]
    for _ in range(data.draw(st.integers(1, 3))):
        spot = event
        key = data.draw(st.sampled_from(sorted(spot)))
        while isinstance(spot[key], dict) and spot[key] and data.draw(st.booleans()):
            spot = spot[key]
            key = data.draw(st.sampled_from(sorted(spot)))
        if data.draw(st.booleans()):
            spot[key] = data.draw(values)
        elif len(spot) > 1:
            del spot[key]
    _judged(event)


@given(st.text(max_size=60) | values.map(json.dumps))
def test_any_text_is_json_or_refused(text: str) -> None:
    try:
        value = words.parse(text)
    except ValueError:
        return
    assert value == json.loads(text.strip(" \t\r\n\ufeff"), strict=False)


def test_json_that_two_readers_could_take_differently_is_refused() -> None:
    for text in ('{"a":1,"a":2}', "NaN", "[1] 2", "", "[" * 100_000, "9" * 5000, '{"a"', "'a'"):
        with pytest.raises(ValueError):
            words.parse(text)


WRITES = [
    (tool.NAME, action, key)
    for tool in (claude, codex, gemini, cursor, copilot, windsurf, opencode)
    for action, (kind, *keys) in tool.ACTIONS.items()
    if kind == words.WRITE
    for key in keys
]


def _event(tool: str, action: str, args: object) -> dict[str, Any]:
    if tool == "windsurf":
        return {"agent_action_name": f"pre_{action}", "tool_info": args}
    if tool == "copilot":
        return {"sessionId": "s", "toolName": action, "toolArgs": json.dumps(args)}
    if tool == "opencode":
        return {"opencode": 1, "event": "before", "tool": action, "args": args}
    name = {"gemini": "BeforeTool", "cursor": "preToolUse"}.get(tool, "PreToolUse")
    mark = {"cursor": {"cursor_version": "2"}, "codex": {"turn_id": "1"}}.get(tool, {})
    return {"hook_event_name": name, "tool_name": action, "tool_input": args, **mark}


paths = st.text(min_size=1, max_size=12).filter(lambda path: "\0" not in path)


@given(st.sampled_from(WRITES), paths, st.dictionaries(st.sampled_from(["content", "old_string", "x"]), leaves))
def test_no_path_of_a_write_is_lost(which: tuple[str, str, str], path: str, rest: dict[str, Any]) -> None:
    tool, action, key = which
    data = _event(tool, action, {**rest, key: path})
    found = tools.detect(data)
    assert tool == found.NAME
    assert path in found.read(data).writes


@pytest.mark.parametrize("wrong", [None, "", 7, ["a", 7], {"x": "a"}, "a\0b"])
def test_a_write_without_a_path_is_not_let_through(wrong: object) -> None:
    for tool, action, key in WRITES:
        data = _event(tool, action, {key: wrong})
        with pytest.raises(ValueError, match=action):
            tools.detect(data).read(data)


def test_two_patches_of_one_file_are_two_edits() -> None:
    """This holds where the arguments are the patch itself: else the third one would count as a repetition."""
    head = "*** Begin Patch\n*** Update File: a\n"
    one, two = (copilot.read({"sessionId": "s", "toolName": "apply_patch", "toolArgs": head + end}) for end in "xy")
    assert one.writes == two.writes == ("a",)
    assert fingerprint(one) != fingerprint(two)


lines = st.sampled_from(["@@", "+x", "-x", " context", "*** End of File", "+*** Add File: not/this"])
heads = st.sampled_from(
    ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ", "*** Update File:"]
)
names = st.from_regex(r"[a-z.][a-z /.é-]{0,8}[a-z]", fullmatch=True)


@given(st.lists(st.tuples(st.sampled_from(["", " ", "\t  "]), heads, names, st.lists(lines, max_size=3)), min_size=1))
def test_all_files_of_a_patch_are_found(hunks: list[tuple[str, str, str, list[str]]]) -> None:
    text = "*** Begin Patch\n"
    for indent, head, name, inner in hunks:
        text += f"{indent}{head}{name}\r\n" + "".join(line + "\n" for line in inner)
    data = _event("codex", "apply_patch", {"command": text + "*** End Patch"})
    assert set(codex.read(data).writes) == {name.strip() for _, _, name, _ in hunks}
    shell = _event("codex", "Bash", {"command": f"apply_patch <<'EOF'\n{text}\nEOF"})
    assert set(codex.read(shell).writes) == {name.strip() for _, _, name, _ in hunks}


def test_a_search_reads_where_its_pattern_leads() -> None:
    def reads(tool: str, action: str, **args: object) -> tuple[str, ...]:
        data = _event(tool, action, args)
        return tools.detect(data).read(data).reads

    assert reads("claude", "Grep", pattern="k", glob="secret/**") == ("secret",)
    assert reads("claude", "Grep", pattern="k", path="/r", glob="secret/key") == ("/r", "/r/secret/key")
    assert reads("claude", "Grep", pattern="k", path="src", glob="a/b/*.py") == ("src", "src/a/b")
    assert reads("gemini", "grep_search", pattern="k", include_pattern="secret/{a,b}/*") == ("secret",)
    assert reads("opencode", "grep", pattern="k", include="secret/*") == ("secret",)
    for anywhere in ("*.py", "**/key", "!secret/**", "{a,b}/x", ""):
        assert reads("claude", "Grep", pattern="k", glob=anywhere) == ()


def test_an_unknown_action_that_writes_is_told_by_its_arguments() -> None:
    event = claude.read(_event("claude", "Rewrite", {"file_path": "a.py", "content": "x"}))
    assert event.writes == ("a.py",)
    assert claude.read(_event("claude", "FileSystem", {"file_path": "a.py"})).writes == ()


def test_an_unknown_event_about_an_action_is_not_let_through() -> None:
    for data in (
        {"hook_event_name": "BeforeToolUse", "tool_name": "Edit", "tool_input": {"file_path": "a"}},
        {"hook_event_name": "beforeFileEdit", "cursor_version": "3"},
        {"agent_action_name": "pre_delete_code", "tool_info": {"file_path": "a"}},
        {"opencode": 2, "event": "before"},
        {"opencode": 1, "event": "between"},
    ):
        tool = tools.detect(data)
        with pytest.raises(ValueError):
            tool.read(data)
        assert tool.fail("x", data).code == 2
