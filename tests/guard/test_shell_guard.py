"""Shell commands before they run: what they would write and read is judged as any tool's writing and reading."""

from __future__ import annotations

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
    """bob's claim alone does not forbid a pull: he may work in another work tree."""
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
    for again in range(2):
        verdict, words = answer(project, "python3 script.py")
        assert verdict == {"": "allow", "warn": "allow"}.get(wish, wish)
        assert ("what this command writes cannot be told" in words) == (not again or wish not in ("", "allow")), words
    said = project.world.coord("doctor", "--json").out
    assert "what 2 commands write could not be told, 2 times: python3 runs a program, which may do anything" in said, (
        said
    )


@pytest.mark.parametrize(
    "command", ["make fmt", "npm run build", "npm test", "cargo build", "pytest -q", "go test ./...", "yarn run gen"]
)
def test_builders_are_stopped_where_the_policy_stops_the_unknown(tmp_path: Path, command: str) -> None:
    for wish in ("allow", "warn", "ask", "deny"):
        project = Project(tmp_path / wish, config=f"[guard]\n\tunknown = {wish}\n")
        verdict, words = answer(project, command)
        assert verdict == {"warn": "allow"}.get(wish, wish), words
        assert ("cannot be told" in words) == (wish in ("ask", "deny"))
        assert answer(project, "make --version; npm ls; git status; ls")[0] == "allow"


def test_without_its_parser_it_could_not_judge(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing parser is no property of the command: the answer is not that of `unknown`."""
    bare = [word.replace("sys.path.append", "str") for word in GUARD]
    monkeypatch.setattr("tests.guard.support.GUARD", bare)
    said = project.send(project.speaker().shell("cat <free/x; ls"))
    assert said.code == 2 and b"the parser for shell commands cannot be loaded" in said.err
    assert understood("claude", project.send(project.speaker().write("free/x"))) == "allow"


def test_the_repository_itself_is_not_taken_away(project: Project) -> None:
    """bob has nothing in hand here, and would lose all the same."""
    project.claim("shared/a", agent="bob")
    top = project.top
    for command in (f"rm -rf {top}", "cd ..; rm -rf project", "rm -rf ..", f"mv {top} /elsewhere", "rm -rf /"):
        verdict, words = answer(project, command)
        assert verdict == "deny" and "the repository lies there" in words, command
    assert answer(project, "rm -rf build ../other")[0] == "allow"


def test_nor_the_directory_with_the_settings_that_call_the_guard(project: Project) -> None:
    for name in (".claude/settings.json", ".github/hooks/gitcoord.json"):
        (project.top / name).parent.mkdir(parents=True)
        (project.top / name).write_text('"git coord guard"')
    for command in (
        "rm -rf .claude",
        "mv .claude x",
        "git rm -r .claude",
        "rm -rf .github",
    ):
        verdict, words = answer(project, command)
        assert verdict == "deny" and "settings that call this guard" in words, command
    assert answer(project, "mkdir -p .claude/skills && ls .claude && rm -rf .claude/skills")[0] == "allow"


def test_what_may_not_be_read_is_not_moved_to_where_it_may(project: Project) -> None:
    (project.top / "secret").mkdir()
    for command in ("mv secret/key x", "git mv secret x", "ln -s secret x; cat x/key"):
        verdict, words = answer(project, command)
        assert verdict == "deny" and "[read]" in words, command
    (project.top / "link").symlink_to("secret/key")
    assert answer(project, "rm link")[0] == "allow"


def test_a_directory_that_is_there_is_not_written(held: Project) -> None:
    assert answer(held, "mkdir -p shared && echo x > free/x")[0] == "allow"
    assert held.held() == {"shared/a": "bob"}


@pytest.mark.parametrize("mode", ["read", "intent"])
@pytest.mark.parametrize("path", ["free/x", "free/new"])
def test_what_another_relies_on_is_held_alone_and_within_its_directory(project: Project, path: str, mode: str) -> None:
    """As in every gate: whatever is marked, in whichever mode it is held, also a file that is still to be made."""
    assert project.world.claim(path, "--mode", mode, agent="bob").code == 0
    for command in (f"echo x > {path}", "rm -rf free"):
        verdict, words = answer(project, command)
        assert verdict == "deny" and "bob holds it" in words, command


def test_pathspecs_of_git(held: Project) -> None:
    for command in ("git checkout HEAD -- 'shared/*'", "cd free && git restore :/shared/a", "git rm -q 'shared/?'"):
        verdict, words = answer(held, command)
        assert verdict == "deny" and "bob holds it" in words, command


def test_what_git_leaves_as_it_is_is_not_judged(held: Project) -> None:
    """A file that a command names by its directory, and that it does not touch."""
    held.world.git("checkout", "-q", "--", "shared/a")
    for command in ("git checkout HEAD -- 'shared/*'", "git restore shared", "find shared -name '*.md' -delete"):
        assert answer(held, command)[0] == "allow", command


def test_a_command_that_takes_too_long_to_read(held: Project) -> None:
    held.world.git("config", "gitcoord.guardSeconds", "1")
    said = held.send(held.speaker().shell("echo " + "'a' " * 250_000 + "; echo x > shared/a"))
    assert said.code == 2 and b"it took too long" in said.err
