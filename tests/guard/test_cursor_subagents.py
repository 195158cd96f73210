"""Cursor's subagents act in conversations of their own that name no parent: below whom each is put, and where nobody can tell."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.guard.protocol import Event, Said, Speaker, reason, understood
from tests.guard.support import GUARD, Project
from tests.guard.test_recorded import FILES, _rows
from tests.support import CLAIM

# An agent tool that lives on between two events, so that two of them are two processes.
_TOOL = """
import json, subprocess, sys
for line in sys.stdin:
    argv, data = json.loads(line)
    done = subprocess.run(argv, input=data.encode(), capture_output=True)
    print(json.dumps([done.stdout.decode(), done.stderr.decode(), done.returncode]), flush=True)
"""


class Window:
    """One process of Cursor."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def send(self, event: Event) -> Said:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([GUARD, json.dumps(event)]) + "\n")
        self._process.stdin.flush()
        out, err, code = json.loads(self._process.stdout.readline())
        assert "Traceback" not in err, err
        return Said(out.encode(), err.encode(), code)

    def write(self, who: Speaker, path: str) -> str:
        return understood("cursor", self.send(who.write(path)))


@contextmanager
def window(project: Project) -> Iterator[Window]:
    with subprocess.Popen(
        [sys.executable, "-c", _TOOL], cwd=project.top, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield Window(process)
        assert process.stdin is not None
        process.stdin.close()


def speakers(project: Project, *names: str) -> list[Speaker]:
    return [project.speaker(name, "cursor") for name in names]


def begins(project: Project, *who: Speaker) -> None:
    for one in who:
        assert project.send(one.prompt()) == (b'{"continue":true}\n', b"", 0)


def hands_on(project: Project, who: Speaker, id: str, **more: Any) -> None:
    assert understood("cursor", project.send(who.task(id, **more))) == "allow"
    assert project.send(who.subagent_event("subagentStart", id)).json == {"permission": "allow"}


def notes(project: Project) -> Path:
    (found,) = (project.top / ".git/gitcoord/guard/delegations").iterdir()
    return found


# --- below the parent -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", ["prompt", "start"])
def test_a_subagent_writes_what_its_parent_holds(project: Project, begin: str) -> None:
    parent, child = speakers(project, "p", "c")
    project.send(getattr(parent, begin)())
    assert project.write(parent, "shared/a") == "allow"
    hands_on(project, parent, "d1")
    assert project.write(child, "shared/b") == "allow"
    project.send(parent.write("shared/a", after=True))
    assert project.write(child, "shared/a") == "allow"
    assert project.held() == {"shared/a": "cursor-p", "shared/b": "cursor-p.d1"}
    agents = {row["agent"]: row["parent"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert agents == {"cursor-p": "", "cursor-p.d1": "cursor-p"}


def test_not_every_version_tells_that_a_subagent_begins(project: Project) -> None:
    parent, child = speakers(project, "p", "c")
    begins(project, parent)
    project.send(parent.task("d1"))
    assert project.write(child, "shared/a") == "allow" and project.held() == {"shared/a": "cursor-p.d1"}


def test_siblings_stand_in_each_others_way(project: Project) -> None:
    parent, one, two = speakers(project, "p", "c1", "c2")
    begins(project, parent)
    hands_on(project, parent, "d1")
    hands_on(project, parent, "d2")
    assert project.write(one, "shared/a") == "allow"
    assert "cursor-p.d1 holds it" in project.denial(two, "shared/a")
    assert project.write(two, "shared/b") == "allow"
    assert project.held() == {"shared/a": "cursor-p.d1", "shared/b": "cursor-p.d2"}


def test_a_subagent_of_a_subagent(project: Project) -> None:
    parent, child, grandchild = speakers(project, "p", "c", "g")
    begins(project, parent)
    project.claim("shared/a", agent="cursor-p")
    hands_on(project, parent, "d1")
    assert project.write(child, "shared/b") == "allow"
    project.send(child.write("shared/b", after=True))
    hands_on(project, child, "d2")
    for path in ("shared/a", "shared/b", "shared/new"):
        assert project.write(grandchild, path) == "allow"
    assert project.held() == {"shared/a": "cursor-p", "shared/b": "cursor-p.d1", "shared/new": "cursor-p.d1.d2"}
    project.send(child.subagent_event("subagentStop", "d2"))
    states = {row["agent"]: row["state"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert states == {"cursor-p": "open", "cursor-p.d1": "open", "cursor-p.d1.d2": "ended"}


def test_one_that_is_sent_on_is_still_itself(project: Project) -> None:
    parent, child = speakers(project, "p", "c")
    begins(project, parent)
    hands_on(project, parent, "d1")
    project.write(child, "shared/a")
    (project.top / "shared/a").write_text("not committed\n")
    for _ in range(2):  # the first time it is asked about what it leaves
        project.send(parent.subagent_event("subagentStop", "d1"))
    begins(project, parent)
    hands_on(project, parent, "d2", resume="c")
    assert project.write(child, "shared/a") == "allow"
    for _ in range(2):
        project.send(parent.subagent_event("subagentStop", "d2"))
    states = {row["agent"]: row["state"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert states["cursor-p.d1"] == "ended" and "cursor-p.d2" not in states


def test_siblings_that_took_each_others_task(project: Project) -> None:
    """The second one acts first. When the other's end is told, it keeps what it changed, and takes the rest again."""
    parent, one, two = speakers(project, "p", "c1", "c2")
    begins(project, parent)
    hands_on(project, parent, "d1")
    hands_on(project, parent, "d2")
    held = {"shared/a": "cursor-p.d1", "shared/b": "cursor-p.d2", "shared/new": "cursor-p.d1"}
    for who, path in ((two, "shared/a"), (one, "shared/b"), (two, "shared/new")):
        assert project.write(who, path) == "allow"
        if path != "shared/new":
            (project.top / path).write_text("not committed\n")
        project.send(who.write(path, after=True))
    assert project.held() == held
    for _ in range(2):
        project.send(parent.subagent_event("subagentStop", "d1"))  # of the first one, which is called after 'd2'
    assert project.held() == {"shared/a": "cursor-p.d1", "shared/b": "cursor-p.d2"}
    assert project.write(two, "shared/a") == project.write(two, "shared/new") == "allow"
    assert project.held() == held
    assert "cursor-p.d2 holds it" in project.denial(two, "shared/b")


def test_two_windows_at_once(project: Project) -> None:
    first, second, one, two = speakers(project, "p1", "p2", "c1", "c2")
    with window(project) as left, window(project) as right:
        for place, parent, id in ((left, first, "d1"), (right, second, "d2")):
            place.send(parent.prompt())
            place.send(parent.task(id))
        assert (right.write(two, "shared/b"), left.write(one, "shared/a")) == ("allow", "allow")
    assert project.held() == {"shared/a": "cursor-p1.d1", "shared/b": "cursor-p2.d2"}


def test_a_shell_of_a_subagent_is_that_subagent(project: Project) -> None:
    """Where its process hosts several conversations, Cursor's own variable tells which."""
    parent, child = speakers(project, "p", "c")
    begins(project, parent)
    hands_on(project, parent, "d1")
    project.write(child, "shared/a")
    env = {**os.environ, "CURSOR_AGENT": "1", "CURSOR_CONVERSATION_ID": "c"}
    subprocess.run([*CLAIM, "free"], cwd=project.top, env=env, check=True, capture_output=True)
    assert project.held()["free"] == "cursor-p.d1"


def test_an_event_told_twice(project: Project) -> None:
    """Cursor also runs the hooks of Claude Code's settings."""
    parent, one, two = speakers(project, "p", "c1", "c2")
    begins(project, parent)
    for event in (parent.task("d1"), one.write("shared/a")):
        for name in ("preToolUse", "PreToolUse"):
            assert understood("cursor", project.send({**event, "hook_event_name": name})) == "allow"
    project.send(parent.task("d1"))
    assert "cursor-p.d1 holds it" in project.denial(two, "shared/a")
    assert project.write(two, "shared/b") == "allow" and project.held()["shared/b"] == "cursor-c2"


# --- an agent of its own ----------------------------------------------------------------------------------------------


def held_by_the_parent(project: Project, *, seen: bool = True) -> tuple[Speaker, Speaker]:
    """A conversation that holds shared/a and has handed something on; and one that nobody has met."""
    parent, other = speakers(project, "p", "c")
    if seen:
        begins(project, parent)
    project.claim("shared/a", agent="cursor-p")
    hands_on(project, parent, "d1")
    return parent, other


def is_on_its_own(project: Project, who: Speaker) -> None:
    assert "cursor-p holds it" in project.denial(who, "shared/a")
    assert project.write(who, "shared/b") == "allow"
    assert project.held()["shared/b"] == f"cursor-{who.conversation}"


@pytest.mark.parametrize("begin", ["prompt", "start"])
def test_another_conversation_that_a_person_begins(project: Project, begin: str) -> None:
    _, other = held_by_the_parent(project)
    project.send(getattr(other, begin)())
    is_on_its_own(project, other)
    (child,) = speakers(project, "d")
    assert project.write(child, "shared/a") == "allow"  # the task still waits for whom it was meant


def test_two_parents_in_one_window(project: Project) -> None:
    _, other = held_by_the_parent(project)
    (second,) = speakers(project, "p2")
    begins(project, second)
    hands_on(project, second, "e1")
    is_on_its_own(project, other)
    project.send(second.task("e1", after=True))
    is_on_its_own(project, other)  # and it stays so


def test_a_conversation_that_acted_on_its_own_before(project: Project) -> None:
    (other,) = speakers(project, "c")
    assert project.write(other, "free/x") == "allow"
    held_by_the_parent(project)
    is_on_its_own(project, other)


@pytest.mark.parametrize("event", ["after", "stop"])
def test_a_conversation_that_was_under_way_before(project: Project, event: str) -> None:
    """What it began was not seen, only how that ended."""
    _, other = held_by_the_parent(project)
    project.send(other.read("free/x", after=True) if event == "after" else other.stop())
    is_on_its_own(project, other)


def test_a_parent_whose_beginning_was_not_seen(project: Project) -> None:
    _, other = held_by_the_parent(project, seen=False)
    is_on_its_own(project, other)


@pytest.mark.parametrize("how", ["after", "failure", "stop", "prompt"])
def test_a_task_that_is_over_catches_nobody(project: Project, how: str) -> None:
    parent, other = held_by_the_parent(project)
    project.send(
        {
            "after": parent.task("d1", after=True),
            "failure": {**parent.task("d1"), "hook_event_name": "postToolUseFailure"},
            "stop": parent.subagent_event("subagentStop", "d1"),
            "prompt": parent.prompt(),
        }[how]
    )
    is_on_its_own(project, other)


def test_a_task_that_was_denied_catches_nobody(tmp_path: Path) -> None:
    project = Project(tmp_path, config='[guard]\n\tautoclaim = true\n[validator "budget"]\n\tcalls = 1\n')
    parent, other = speakers(project, "p", "c")
    begins(project, parent)
    project.claim("shared/a", agent="cursor-p")
    project.send(parent.read("free/x"))
    assert understood("cursor", project.send(parent.task("d1"))) == "deny"
    assert "cursor-p holds it" in project.denial(other, "shared/a")


def test_a_task_that_could_not_be_judged_and_passed_still_has_its_subagent(tmp_path: Path) -> None:
    """Else that one could be taken for another's."""
    project = Project(tmp_path, config="[guard]\n\tautoclaim = true\n\tonError = warn\n")
    _, other = held_by_the_parent(project)
    (second,) = speakers(project, "p2")
    begins(project, second)
    said = project.send(second.task("e1"), {"GITCOORD_AGENT": "no name/"})
    assert understood("cursor", said) == "allow"
    assert json.loads(notes(project).read_text())["open"][-1]["id"] == "e1"
    is_on_its_own(project, other)


def test_a_task_of_a_cursor_that_was_killed_catches_nobody(project: Project) -> None:
    """Another process; and after an hour none at all."""
    parent, other, late = speakers(project, "p", "c", "c2")
    with window(project) as old:
        old.send(parent.prompt())
        old.send(parent.task("d1"))
    project.claim("shared/a", agent="cursor-p")
    is_on_its_own(project, other)
    hands_on(project, parent, "d2")
    known = json.loads(notes(project).read_text())
    for task in known["open"]:
        task["at"] -= 3601
    notes(project).write_text(json.dumps(known, sort_keys=True, separators=(",", ":")))
    assert "cursor-p holds it" in project.denial(late, "shared/a")


def test_where_a_person_speaks_is_no_subagent_whatever_it_was_taken_for(project: Project) -> None:
    _, other = held_by_the_parent(project)
    assert project.write(other, "shared/a") == "allow"
    begins(project, other)
    is_on_its_own(project, other)


def test_where_a_conversation_was_opened_counts_not_where_it_works(project: Project, tmp_path: Path) -> None:
    """One that is known in its own project is no stranger in this one."""
    elsewhere = Project(tmp_path / "elsewhere")
    held_by_the_parent(project)
    guest = elsewhere.speaker("guest", "cursor")
    begins(elsewhere, guest)
    event = {**guest.write(str(project.top / "shared/a")), "cwd": str(project.top)}
    assert "cursor-p holds it" in reason("cursor", project.send(event))


def test_events_that_come_along_decide_nothing(project: Project) -> None:
    """A completion in the editor may tell a conversation that nobody has."""
    parent, child = speakers(project, "p", "c")
    begins(project, parent)
    hands_on(project, parent, "d1")
    tab = {
        **project.speaker("tab", "cursor").read("free/x"),
        "hook_event_name": "beforeTabFileRead",
        "file_path": "free/x",
    }
    project.send({key: value for key, value in tab.items() if not key.startswith("tool_")})
    assert project.write(child, "shared/a") == "allow" and project.held() == {"shared/a": "cursor-p.d1"}


# --- notes that are lost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\0", b"{", b"[]", b'{"v":1}', b'{"v":2,"top":[]}', b"\xff" * 200_000])
def test_notes_that_make_no_sense_are_none(project: Project, data: bytes) -> None:
    parent, other = held_by_the_parent(project)
    notes(project).write_bytes(data)
    is_on_its_own(project, other)
    begins(project, parent)
    hands_on(project, parent, "d2")
    (child,) = speakers(project, "d")
    assert project.write(child, "shared/a") == "allow"


def test_where_nothing_may_be_noted_each_is_an_agent_of_its_own(project: Project) -> None:
    (project.top / ".git/gitcoord/guard").mkdir(parents=True, exist_ok=True)
    (project.top / ".git/gitcoord/guard/delegations").write_text("")
    _, other = held_by_the_parent(project)
    is_on_its_own(project, other)


# --- prompts ----------------------------------------------------------------------------------------------------------


def test_a_prompt_is_never_held_up(project: Project) -> None:
    """It is answered without the ledger; also where there is none, or where it cannot be noted who speaks."""
    (who,) = speakers(project, "p")
    project.world.git("update-ref", "-d", "refs/heads/gitcoord")
    begins(project, who)
    assert json.loads(notes(project).read_text())["top"] == ["p"]
    for change in (
        {"conversation_id": 7},
        {"workspace_roots": "x"},
        {"workspace_roots": ["/nowhere", "\0"]},
        {"cwd": "/x\0"},
    ):
        assert project.send({**who.prompt(), **change}).out == b'{"continue":true}\n'
    notes(project).unlink()
    notes_at = project.top / ".git/gitcoord/guard/delegations"
    notes_at.rmdir()
    notes_at.write_text("")
    begins(project, who)


@pytest.mark.slow
def test_a_prompt_that_takes_too_long_goes_through(project: Project) -> None:
    (who,) = speakers(project, "p")
    begins(project, who)
    with notes(project).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        said = project.send(who.prompt())
    assert (said.out, said.code) == (b'{"continue":true}\n', 0) and b"it took too long" in said.err


# --- what Cursor really said ------------------------------------------------------------------------------------------


def test_recorded_subagents_are_below_their_parents(project: Project) -> None:
    """Of the editor and the command line; one is sent on."""
    (path,) = (path for path in FILES if path.stem == "cursor")
    events = [row["said"] for row in _rows(path)[1]]
    text = json.dumps([event for event in events if event["cursor_version"] in ("3.18.25", "2026.08.11-e8db854")])
    begun: set[str] = set()
    for event in json.loads(text.replace("/home/ana/shop", str(project.top))):
        begun |= (
            {event["conversation_id"]} if event["hook_event_name"] in ("beforeSubmitPrompt", "sessionStart") else set()
        )
        project.send(event)
    known = json.loads(notes(project).read_text())
    assert set(known["top"]) == begun
    parents = {child["conversation"][:8]: (child["parent"][:8], child["id"][:13]) for child in known["children"]}
    assert parents == {"bf617dfd": ("b60ae0c1", "call-2ec9530d"), "8aa653d6": ("acff6c55", "tool_14127544")}
    agents = {row["agent"]: row["parent"] for row in project.world.coord("agents", "--json").json["agents"]}
    assert agents["cursor-b512f9b06e4c.79ee845fb970"] == "cursor-b512f9b06e4c"
    assert not any("bf617dfd" in child for child in known["alone"]) and known["open"] == []
