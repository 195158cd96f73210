"""Shell commands before they run: what they would write and read is judged as any tool's writing and reading."""

from pathlib import Path

import pytest

from tests.guard.protocol import TOOLS, context, reason, understood
from tests.guard.support import GUARD, Project


@pytest.fixture
def held(project: Project) -> Project:
    """bob holds shared/a, and has changed it here."""
    project.claim("shared/a", agent="bob")
    (project.top / "shared/a").write_text("bob's\n")
    return project


def answer(project: Project, command: str, tool: str = "claude") -> tuple[str, str]:
    said = project.send(project.speaker(tool=tool).shell(command))
    verdict = understood(tool, said)
    return verdict, reason(tool, said) if verdict != "allow" else context(said)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_s_shell(held: Project, tool: str) -> None:
    verdict, words = answer(held, "cd shared && echo x >>a", tool)
    assert verdict == "deny" and "shared/a: bob holds it [held]" in words
    assert answer(held, "ls -l shared; git status", tool)[0] == "allow"


@pytest.mark.parametrize(
    "command", ["rm -rf shared", "git stash", "git checkout -- .", "git reset --hard", "git clean -fd && mv shared/a b"]
)
def test_what_would_take_another_s_work(held: Project, command: str) -> None:
    verdict, words = answer(held, command)
    assert verdict == "deny" and "bob holds it" in words


def test_git_may_rewrite_what_nobody_has_in_hand(held: Project) -> None:
    """bob's claim alone keeps nobody from a pull: he may be at work in another work tree."""
    held.world.git("checkout", "-q", "--", "shared/a")
    assert answer(held, "git stash")[0] == "allow"


def test_what_it_writes_is_claimed_and_noted(project: Project) -> None:
    assert answer(project, "sed -i s/b/c/ shared/b")[0] == "allow"
    assert project.held() == {"shared/b": "claude-c1"}
    project.send(project.speaker().shell("sed -i s/b/c/ shared/b", after=True))


def test_what_it_reads(project: Project) -> None:
    assert answer(project, "cat secret/key | head")[0] == "deny"
    assert answer(project, "head -1 <asked/key")[0] == "ask"


def test_a_question_about_reading_does_not_hide_a_held_file(held: Project) -> None:
    verdict, words = answer(held, "cat asked/key >shared/a")
    assert verdict == "deny" and "bob holds it" in words


def test_ways_around(project: Project) -> None:
    for command in ("git commit --no-verify -m x", "git -c core.hooksPath=/dev/null commit -m x", "echo x >.git/HEAD"):
        verdict, words = answer(project, command)
        assert verdict == "deny" and "[bypass]" in words, command


@pytest.mark.parametrize("wish", ["", "allow", "warn", "ask", "deny"])
def test_what_cannot_be_told(tmp_path: Path, wish: str) -> None:
    project = Project(tmp_path, config=f"[guard]\n\tunknown = {wish}\n" if wish else "")
    verdict, words = answer(project, "python3 script.py")
    assert verdict == {"": "allow", "warn": "allow"}.get(wish, wish)
    assert ("cannot be told" in words) == (wish not in ("", "allow"))


def test_without_its_parser_it_could_not_judge(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no property of the command: the answer is not that of `unknown`."""
    bare = [word.replace("sys.path.append", "str") for word in GUARD]
    monkeypatch.setattr("tests.guard.support.GUARD", bare)
    said = project.send(project.speaker().shell("cat <free/x; ls"))
    assert said.code == 2 and b"the parser for shell commands cannot be loaded" in said.err
    assert understood("claude", project.send(project.speaker().write("free/x"))) == "allow"
