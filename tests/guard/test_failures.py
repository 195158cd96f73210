"""Answers when the guard cannot judge: the exact bytes that each tool would see, and what the tool makes of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.protocol import TOOLS, Said, context, reason, understood
from tests.guard.support import GUARD, Project
from tests.ledger.test_newer_version import LATER, put_on_top

# Before an action every tool takes exit code 2 with a reason on stderr for a denial.
_GARBAGE = (b"", b"\0", b"not json", b"[]", b'"text"', b"{", b'{"a":1}{"b":2}', b"\xff\xfe{}", b"[" * 5000, b"1e999")
_SLOW_GIT = """#!/bin/sh
case "$*" in *check-attr*) exec sleep 60 ;; esac
exec {git} "$@"
"""


def denied(message: str, tool: str = "") -> Said:
    """The denial: exit code 2; of Copilot, which loses the reason of a hook that fails, the answer in its own form."""
    words = f"gitcoord: could not judge this, nothing was done: {message}"
    if tool == "copilot":
        reply = {"permissionDecision": "deny", "permissionDecisionReason": words}
        return Said(json.dumps(reply, separators=(",", ":")).encode() + b"\n", b"", 0)
    return Said(b"", f"{words}\n".encode(), 2)


@pytest.mark.parametrize("data", _GARBAGE, ids=lambda data: repr(data[:12]))
def test_garbage_in(project: Project, data: bytes) -> None:
    said = project.send(data)
    assert said.out == b"" and said.code == 2
    assert said.err.startswith(b"gitcoord: could not judge this, nothing was done: ") and said.err.count(b"\n") == 1
    assert all(understood(tool, said) == "deny" for tool in TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_shape_that_nobody_knows(project: Project, tool: str) -> None:
    """An action that is known to write, without a file that it writes to."""
    event = project.speaker(tool=tool).write("free/x")
    for key in ("tool_input", "toolArgs", "tool_info", "args"):
        if key in event:
            event[key] = {"unheard": "of"}
    name = {"codex": "apply_patch", "gemini": "write_file", "copilot": "create", "windsurf": "write_code",
            "opencode": "write"}.get(tool, "Write")  # fmt: skip
    words = f"'{name}' names no file" if tool != "codex" else "'apply_patch' has a patch that names no file"
    said = project.send(event)
    assert said == denied(f"ValueError: {words}", tool) and understood(tool, said) == "deny"


def test_a_shape_that_nobody_knows_from_a_hook_that_runs_elsewhere(project: Project, tmp_path: Path) -> None:
    """Cursor runs a person's own hooks in ~/.cursor, and tells the project only among its roots."""
    (tmp_path / ".cursor").mkdir()
    event = project.speaker(tool="cursor").write("free/x")
    event["tool_input"] = {"unheard": "of"}
    for cwd in ({"cwd": ""}, {}):
        told = {key: value for key, value in event.items() if key != "cwd"} | cwd
        assert project.send(told, cwd=tmp_path / ".cursor") == denied("ValueError: 'Write' names no file")


@pytest.mark.parametrize("tool", TOOLS)
def test_a_ledger_that_cannot_be_read(project: Project, tool: str) -> None:
    project.world.git("update-ref", "-d", "refs/heads/gitcoord")
    said = project.send(project.speaker(tool=tool).write("free/x"))
    assert said == denied(
        "the ledger (refs/heads/gitcoord) is missing\n"
        "hint: until it is repaired nothing is written here: ask a person to run: git coord fsck --repair\n"
        "hint: reading goes on; look at it: git coord fsck",
        tool,
    )
    assert understood(tool, said) == "deny"


def test_a_ledger_of_a_newer_version(project: Project) -> None:
    """Nothing is broken, so nobody is sent to repair it."""
    put_on_top(project.world.top, LATER["the next version"])
    assert project.send(project.speaker().write("free/x")) == denied(
        "a newer version of gitcoord has written this ledger: halt: version 2 is not known here\n"
        "hint: upgrade gitcoord on this side"
    )


@pytest.mark.parametrize("tool", TOOLS)
def test_a_broken_policy(tmp_path: Path, tool: str) -> None:
    project = Project(tmp_path, config="[guard]\n\tonError = warn\n\tunknown = perhaps\n")
    said = project.send(project.speaker(tool=tool).write("free/x"))
    # Not even its own `onError` counts: a policy that makes no sense is not guessed at.
    assert said == denied(
        ".gitcoord/config: guard.unknown is 'perhaps', not one of allow, warn, ask, deny\n"
        "hint: correct the file and commit it: a person can, at a terminal",
        tool,
    )
    assert understood(tool, said) == "deny"


def test_errors_let_pass_where_the_policy_says_so(tmp_path: Path) -> None:
    project = Project(tmp_path, config="[guard]\n\tonError = warn\n")
    project.claim("shared/a", agent="bob")
    assert "bob holds it" in project.denial(project.speaker(), "shared/a")  # no error: a rule's no is a no
    project.world.git("update-ref", "-d", "refs/heads/gitcoord")
    said = project.send(project.speaker().write("shared/a"))
    assert understood("claude", said) == "allow"
    assert "could not judge this, and lets it pass: the ledger" in context(said)
    assert project.send(project.speaker(tool="cursor").write("shared/a")).json == {"permission": "allow"}
    said = project.send(b"garbage")
    assert (said.out, said.code) == (b"", 0) and b"lets it pass" in said.err


@pytest.mark.parametrize("order", [("warn", "deny"), ("deny", "warn", "warn")], ids="-".join)
def test_errors_let_pass_only_where_each_tree_says_so(tmp_path: Path, order: tuple[str, ...]) -> None:
    """The ledger of the last tree cannot be read."""
    projects = []
    for number, answer in enumerate(order):
        (tmp_path / str(number)).mkdir()
        projects.append(Project(tmp_path / str(number), config=f"[guard]\n\tonError = {answer}\n"))
    projects[-1].world.git("update-ref", "-d", "refs/heads/gitcoord")
    words = " ".join(f"{project.top}/free/x" for project in projects)
    said = projects[0].send(projects[0].speaker().shell(f"echo x | tee {words}"))
    assert understood("claude", said) == "deny" and b"could not judge this, nothing was done: the ledger" in said.err, (
        said
    )


@pytest.mark.parametrize("tool", ["claude", "cursor"])
def test_a_git_that_hangs(project: Project, tmp_path: Path, tool: str) -> None:
    """The guard's own time is up before the tool's: the tool is answered."""
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text(_SLOW_GIT.format(git=real))
    (tmp_path / "bin/git").chmod(0o755)
    project.world.git("config", "gitcoord.guardSeconds", "1")
    env = {"PATH": f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"}
    said = project.send(project.speaker(tool=tool).write("shared/a"), env)
    assert said == Said(
        b"",
        b"gitcoord: could not judge this, nothing was done: it took too long\n"
        b"hint: its time is gitcoord.guardSeconds, which must be less than the tool gives its hooks\n",
        2,
    )
    assert understood(tool, said) == "deny"


def test_events_after_which_nothing_is_at_stake_only_tell(project: Project) -> None:
    project.world.git("update-ref", "-d", "refs/heads/gitcoord")
    for event in (project.speaker().stop(), project.speaker().write("free/x", after=True)):
        said = project.send(event)
        assert said.code in (0, 1) and not said.out, said


def test_a_guard_that_is_killed_says_nothing(project: Project) -> None:
    """The tool decides what follows: setup makes those fail closed that can (docs/guard.md)."""
    process = subprocess.Popen(
        GUARD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project.top
    )
    process.send_signal(signal.SIGKILL)
    out, err = process.communicate(b"{}")
    said = Said(out, err, 1)  # a shell in between would say 137; both are "some other failure"
    assert (out, err) == (b"", b"")
    assert {tool: understood(tool, said) for tool in TOOLS} == {
        "claude": "deny", "codex": "allow", "gemini": "allow", "cursor": "deny", "copilot": "deny",
        "windsurf": "allow", "opencode": "deny",
    }  # fmt: skip


def test_a_large_event(project: Project) -> None:
    event = project.speaker().write("free/x")
    event["tool_input"]["content"] = "x" * (4 << 20)
    assert understood("claude", project.send(event)) == "allow"
    event["tool_input"]["content"] = "x" * (17 << 20)
    said = project.send(event)
    assert said == denied("ValueError: the event has more than 16 MB")


# --- a ledger that cannot be read ---------------------------------------------------------------------------------


def _lose_ref(project: Project) -> None:
    project.world.git("update-ref", "-d", "refs/heads/gitcoord")


def _damage_tree(project: Project) -> None:
    oid = project.world.git("rev-parse", "refs/heads/gitcoord^{tree}")
    file = project.top / ".git/objects" / oid[:2] / oid[2:]
    file.chmod(0o644)
    file.write_bytes(b"garbage")


@pytest.mark.parametrize("harm", [_lose_ref, _damage_tree])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_broken_ledger_stops_writing_and_no_reading(
    project: Project, tool: str, harm: Callable[[Project], None]
) -> None:
    who = project.speaker(tool=tool)
    assert project.write(who, "shared/a") == "allow"  # there is a ledger with a session
    harm(project)
    looks = [
        "git coord fsck",
        "git coord status",
        "git coord log",
        "git status",
        "git log -3",
        "git diff",
        "ls",
        "cat free/x",
    ]
    for event in (who.read("free/x"), *map(who.shell, looks)):
        assert understood(tool, project.send(event)) == "allow", event
    for event in (who.write("free/x"), who.shell("echo x > free/x"), who.shell("git stash")):
        said = project.send(event)
        assert understood(tool, said) == "deny"
        assert "ask a person to run: git coord fsck --repair" in reason(tool, said)
    assert understood(tool, project.send(who.read("secret/key"))) == "deny"  # by the policy of HEAD
