"""The words with which the guard denies: what did not happen, who holds it, and a command that works as it stands."""

from __future__ import annotations

import shlex

import pytest

from tests.guard.protocol import reason
from tests.guard.support import Project
from tests.support import COORD, HANDOFF


def test_who_holds_it_and_how_long_still(project: Project) -> None:
    project.claim("shared/a", "--expect", "20m", "-m", "new login", agent="bob")
    words = project.denial(project.speaker(), "shared/a").splitlines()
    assert words[0] == "gitcoord: Write is refused, nothing was done"
    assert words[1].startswith("  shared/a: bob holds it") and "expected 20m more" in words[2].replace("19m59s", "20m")
    assert words[-2:] == [
        "hint: wait for it: git claim --wait 10m shared/a",
        "hint: or go on meanwhile: git claim --queue shared/a",
    ]


def test_one_next_command_for_several_held_files(project: Project) -> None:
    project.claim("shared/a", "shared/b", agent="bob")
    words = reason("claude", project.send(project.speaker().shell("sed -i s/a/b/ shared/a shared/b")))
    assert [line for line in words.splitlines() if line.startswith("hint: ")] == [
        "hint: wait for it: git claim --wait 10m shared/a shared/b",
        "hint: or go on meanwhile: git claim --queue shared/a shared/b",
    ]


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("git commit --no-verify -am x", "git coord commit -m"),
        ("git claim takeover shared/a --token 1 --force --reason x", "git claim list --all"),
        ("rm -rf .git/hooks", "git's own commands"),
        ("GITCOORD_AGENT=bob git claim shared/a", "without that variable"),
        ("git update-ref refs/heads/gitcoord HEAD", "git claim"),
    ],
)
def test_a_way_around_names_what_is_allowed(project: Project, command: str, hint: str) -> None:
    words = reason("claude", project.send(project.speaker().shell(command)))
    assert any(line.startswith("hint: ") and hint in line for line in words.splitlines()), words


def test_a_changed_file_says_since_when(project: Project) -> None:
    one, two = project.speaker("c1"), project.speaker("c2")
    project.send(two.read("free/x"))
    project.write(one, "free/x")
    (project.top / "free/x").write_text("changed\n")
    project.send(one.write("free/x", after=True))
    project.world.git("commit", "-qam", "done")
    words = project.denial(two, "free/x")
    assert "changed it since you last read it, " in words and " ago [changed]\nhint: read it again, then write" in words


def test_the_hints_of_a_stop_work_as_they_stand(project: Project) -> None:
    who = project.speaker()
    project.write(who, "shared/a")
    (project.top / "shared/a").write_text("not committed\n")
    words = reason("claude", project.send(who.stop()))
    hints = [line.partition(": git ")[2] for line in words.splitlines() if ": git " in line]
    commit, handoff = (shlex.split(hint) for hint in hints)
    assert commit[:2] == ["coord", "commit"] and handoff[:2] == ["handoff", "new"]
    assert project.world.run(HANDOFF, tuple(handoff[1:]), "claude-c1").code == 0
    project.world.handoff(
        "withdraw",
        "h" + project.world.git("log", "-1", "--format=%(trailers:key=Seq,valueonly)", "gitcoord").strip(),
        agent="claude-c1",
    )
    assert project.world.run(COORD, tuple(commit[1:]), "claude-c1").code == 0


def test_nothing_that_codex_adds_ends_up_in_a_hint(project: Project) -> None:
    project.claim("shared/a", agent="bob")
    words = project.denial(project.speaker(tool="codex"), "shared/a")
    assert not words.splitlines()[-1].startswith("hint:")
