"""Any event is answered, and a write to a held path is never allowed by accident. In process, by hypothesis."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.guard.hook import Invocation, reply_to
from gitcoord.guard.tools import NAMES, detect, load
from gitcoord.validators.tool_event import BEFORE, Reply
from tests.guard.protocol import Event, Said, Speaker, understood
from tests.guard.support import Project

_KEYS = (
    "hook_event_name", "hookEventName", "tool_name", "tool_input", "toolName", "toolArgs", "tool_info", "opencode", "event",
    "agent_action_name", "cursor_version", "session_id", "sessionId", "cwd", "turn_id", "agent_id", "timestamp", "file_path",
    "command", "path", "args", "tool", "parent", "session", "workspace_roots", "transcript_path", "toolResult",
)  # fmt: skip
_WORDS = (
    "PreToolUse", "BeforeTool", "preToolUse", "pre_write_code", "before", "Write", "Edit", "Bash", "apply_patch", "write",
    "SessionStart", "Stop", "SubagentStop", "shared/a", "echo > shared/a", "", ".", "..", "\0", "\ud800", "*** Add File: ",
)  # fmt: skip
_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.sampled_from(_WORDS), st.text(max_size=8)
)
_NAMES = st.one_of(st.sampled_from(_KEYS), st.text(max_size=4))
_VALUES = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4))
_EVENTS = st.dictionaries(_NAMES, _VALUES, max_size=10)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which bob holds shared/a and free, and others come by many ways."""
    project = Project(tmp_path_factory.mktemp("fuzz"))
    project.claim("--ttl", "1d", "shared/a", "free", agent="bob")
    (project.top / "link").symlink_to("shared/a")
    (project.top / "dir").symlink_to("shared")
    before = os.getcwd()
    yield project.top
    os.chdir(before)


def answer(top: Path, data: bytes) -> Reply:
    """The guard in this process."""
    os.chdir(top)
    invocation = Invocation({os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()})
    try:
        return reply_to(invocation, lambda: data)
    finally:
        for ctx in invocation.opened.values():
            ctx.store.close()


def said(reply: Reply) -> Said:
    return Said(reply.out, reply.err, reply.code)


def allows(data: Any, reply: Reply) -> bool:
    return understood(detect(data).NAME, said(reply)) == "allow"


@given(data=st.binary(max_size=64) | _VALUES.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_answered(held: Path, data: bytes) -> None:
    reply = answer(held, data)
    assert reply.code in (0, 1, 2)
    assert reply.code == 0 or reply.err.strip()


@given(data=_EVENTS)
def test_an_event_that_names_what_is_held(held: Path, data: Event) -> None:
    """An event that can be read as a write of a held file is denied; one that cannot be read is denied too."""
    reply = answer(held, json.dumps(data).encode())
    tool = detect(data)
    try:
        event = tool.read(json.loads(json.dumps(data)))
    except ValueError:
        assert reply.code == 2 or reply.err or b'"permissionDecision":"deny"' in reply.out
        return
    if event.phase == BEFORE and "shared/a" in event.writes and event.cwd in ("", "."):
        assert not allows(data, reply)


_PATHS = st.sampled_from(
    (
        "shared/a",
        "./shared/a",
        "shared//a",
        "shared/../shared/a",
        "link",
        "dir/a",
        "dir/../shared/a",
        "free/x",
        "free/new/file",
    )
)
_CWDS = st.sampled_from(("top", "below", "none", "number", "missing"))


@given(
    tool=st.sampled_from(NAMES), path=_PATHS, absolute=st.booleans(), cwd=_CWDS, subagent=st.sampled_from(("", "s1", "\ud800", "lock")),
    conversation=st.text(max_size=12), more=st.dictionaries(st.text(max_size=6), _VALUES, max_size=3),
)  # fmt: skip
def test_a_held_file_by_any_name(
    held: Path, tool: str, path: str, absolute: bool, cwd: str, subagent: str, conversation: str, more: Event
) -> None:
    """Every tool's own form of the event, with any further fields and any directory."""
    place = f"{held}/{path}" if absolute or cwd in ("below", "number") else path
    event = Speaker(tool, conversation, str(held), subagent).write(place)
    event = {**more, **event}
    if cwd == "below":
        event["cwd"] = str(held / "shared")
    elif cwd == "number":
        event["cwd"] = 7
    elif cwd == "missing":
        event["cwd"] = "/nowhere/at/all"
    elif cwd == "none":
        event.pop("cwd")
    if tool == "windsurf" and cwd != "top":
        event["tool_info"].pop("cwd")
    assert load(tool).read(json.loads(json.dumps(event))).writes == (place,)
    if tool == detect(event).NAME:
        assert not allows(event, answer(held, json.dumps(event).encode()))


def test_a_defect_of_the_parser_is_no_leave(held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in it counts as could not judge: `[guard] onError` decides, not `unknown`."""

    def broken(command: str) -> object:
        raise KeyError(command)

    monkeypatch.setattr("gitcoord.shell.parse.parse", broken)
    event = Speaker("claude", "c1", str(held)).shell("echo x")
    reply = answer(held, json.dumps(event).encode())
    assert reply.code == 2 and b"the shell command: it could not be followed (KeyError)" in reply.err
