"""Codex CLI's events do not tell how a command ended; the record of the conversation, which they name, does.

`recorded/rollouts/codex.jsonl` has the lines about commands that Codex itself wrote beside the last conversation of
`recorded/codex.jsonl`; paths were renamed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gitcoord.guard import tools
from gitcoord.guard.tools.codex_rollout import failed
from gitcoord.validators.tool_event import AFTER
from tests.guard.protocol import understood
from tests.guard.support import Project
from tests.guard.test_recorded import FILES, _rows

ROLLOUT = (Path(__file__).parent / "recorded/rollouts/codex.jsonl").read_bytes()
CONFIG = '[validator "spiral"]\n\tfailures = 2\n'
LINES = ROLLOUT.splitlines()
# Which of these lines tell how a command ended, by its id.
ENDS = {json.loads(line)["payload"].get("item", {}).get("id"): at for at, line in enumerate(LINES)}


def recorded() -> list[dict[str, Any]]:
    (path,) = (path for path in FILES if path.stem == "codex")
    last = _rows(path)[1][-1]["said"]["session_id"]
    return [row["said"] for row in _rows(path)[1] if row["said"]["session_id"] == last]


# --- what Codex really wrote ------------------------------------------------------------------------------------------


def test_each_recorded_command_has_its_end_in_the_record() -> None:
    overs = [event for event in recorded() if event["hook_event_name"] == "PostToolUse"]
    ends = {event["tool_use_id"]: failed(ROLLOUT, event["tool_use_id"]) for event in overs}
    assert ends == {"call_0_0": True, "call_1_0": False, "call_2_0": True, "call_4_0": True}
    assert failed(ROLLOUT, "call_3_0") is None  # which the guard denied: only that is on record
    for event in overs:
        # Before this line the command was not over: what is told sooner is only that it was begun, or still runs.
        assert failed(b"\n".join(LINES[: ENDS[event["tool_use_id"]]]), event["tool_use_id"]) is None


def test_what_a_command_printed_is_no_word_of_its_end() -> None:
    """The second of them prints the JSON of an error, and succeeds."""
    event = next(e for e in recorded() if e.get("tool_use_id") == "call_1_0" and e["hook_event_name"] == "PostToolUse")
    assert json.loads(event["tool_response"])["error"]
    read = tools.detect(event).read(event)
    assert (read.phase, read.failed, read.transcript) == (AFTER, None, event["transcript_path"])


def test_a_recorded_conversation_runs_into_the_limit(tmp_path: Path) -> None:
    """The guard denied the third failing command when this was recorded, and does so again."""
    project = Project(tmp_path, config=CONFIG)
    rollout = tmp_path / "rollout-x.jsonl"
    answers = []
    for event in recorded():
        rollout.write_bytes(b"\n".join(LINES[: ENDS.get(event.get("tool_use_id"), 0) + 1]) + b"\n")
        said = project.send({**event, "cwd": str(project.top), "transcript_path": str(rollout)})
        if event["hook_event_name"] == "PreToolUse":
            answers.append((event["tool_use_id"], understood("codex", said)))
    assert answers == [
        ("call_0_0", "allow"),
        ("call_1_0", "allow"),
        ("call_2_0", "allow"),
        ("call_3_0", "deny"),
        ("call_4_0", "allow"),
    ]


# --- what is not as expected is not known -----------------------------------------------------------------------------


def end(id: object = "c1", code: object = 3, **other: object) -> dict[str, Any]:
    item = {"type": "CommandExecution", "id": id, "exit_code": code, **other}
    return {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}


@pytest.mark.parametrize(
    "line",
    [
        {},
        [],
        "c1",
        {**end(), "type": "response_item"},
        {"type": "event_msg", "payload": {**end()["payload"], "type": "item_started"}},
        {"type": "event_msg", "payload": ["item_completed", "c1"]},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": ["c1"]}},
        end("c12"),
        end(code="3"),
        end(code=True),
        end(code=None),
        end(type="FileChange"),
    ],
)
def test_another_line_tells_nothing(line: object) -> None:
    assert failed(json.dumps(line).encode() + b"\n", "c1") is None


@pytest.mark.parametrize("data", [b"", b"\n\n", b"c1", b"\xff c1 \xff\n", b'{"c1":\n', b"[" * 100_000 + b"c1\n"])
def test_garbage_tells_nothing(data: bytes) -> None:
    assert failed(data, "c1") is None
    assert failed(data + b"\n" + json.dumps(end()).encode(), "c1") is True
    assert failed(json.dumps(end(code=0)).encode() + b"\n" + data, "c1") is False


def test_the_last_word_counts() -> None:
    lines = [json.dumps(end(code=code)).encode() for code in (3, 0)]
    assert failed(b"\n".join(lines), "c1") is False and failed(b"\n".join(lines[::-1]), "c1") is True


class Talk:
    """A conversation in which one command is run again and again."""

    def __init__(self, project: Project, rollout: Path) -> None:
        self.project, self.rollout, self.n = project, rollout, 0

    def run(self, record: bytes | None = b"", path: str | None = "") -> str:
        """The answer to a command. `record`: the text written after it, None for a failure. `path`: another rollout."""
        self.n += 1
        who = self.project.speaker(tool="codex")
        common = {"tool_use_id": f"call_{self.n}", "transcript_path": str(self.rollout) if path == "" else path}
        answer = understood("codex", self.project.send({**who.shell("make test"), **common}))
        if answer == "allow":
            line = json.dumps(end(f"call_{self.n}")).encode() + b"\n" if record is None else record
            with self.rollout.open("ab") as file:
                file.write(line)
            over = {**who.shell("make test", after=True), **common, "tool_response": '{"exit_code": 1}'}  # as printed
            assert self.project.send(over) == (b"", b"", 0)
        return answer


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(Project(tmp_path, config=CONFIG), tmp_path / "rollout-x.jsonl")


def test_what_is_not_known_is_neither_counted_nor_forgiven(talk: Talk) -> None:
    assert [talk.run(b"") for _ in range(4)] == ["allow"] * 4
    assert talk.run(None) == talk.run(b"garbage\n") == talk.run(None) == "allow"
    assert talk.run() == "deny"


def test_a_success_is_forgiven(talk: Talk) -> None:
    talk.run(None)
    talk.run(json.dumps(end("call_2", 0)).encode() + b"\n")
    talk.run(None)
    assert talk.run() == "allow"


def test_a_long_record_is_read_from_its_end(talk: Talk) -> None:
    talk.rollout.write_bytes(b"x" * 3_000_000 + b"\n")
    talk.run(None)
    talk.run(json.dumps(end("call_2", aggregated_output="\x1b" * 65_536)).encode() + b"\n")
    assert talk.run() == "deny"


@pytest.mark.parametrize("kind", ["fifo", "directory", "missing", "none", "nul", "locked"])
def test_a_record_that_is_none(talk: Talk, tmp_path: Path, kind: str) -> None:
    """The count is lost, and the command runs."""
    place = tmp_path / "odd"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    elif kind == "locked":
        place.write_bytes(ROLLOUT)
        place.chmod(0)
    path = {"none": None, "nul": "/x\0y"}.get(kind, str(place))
    assert [talk.run(None, path) for _ in range(4)] == ["allow"] * 4
