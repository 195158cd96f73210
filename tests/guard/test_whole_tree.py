"""Deletion of everything, settings that would switch the guard off, and commands that hide what they run."""

from __future__ import annotations

import pytest

from tests.guard.protocol import TOOLS, reason, understood
from tests.guard.support import Project

WHOLE = (
    "find . -delete", "find . -mindepth 1 -delete", "find . -type f -delete", "find . -name .git -exec rm -rf {} +",
    "find . -name '.git' -prune -exec rm -rf {} \\;", "find . -type d -name '.g*' -exec rm -rf {} +", "rsync -a --delete /tmp/empty/ ./",
    "rsync -a --delete-before /tmp/empty/ .", "ls -A | xargs rm -rf", "ls -a1 | xargs -I{} rm -rf {}", "find . | xargs rm -rf",
    "find . -maxdepth 1 -print0 | xargs -0 rm -rf", "cd free && find .. -delete",
)  # fmt: skip
PARTS = (
    "find . -name '*.pyc' -delete", "find . -name node_modules -exec rm -rf {} +", "find free -delete", "find . -empty -delete",
    "find . -name .git -prune -o -name '*.orig' -delete", "find . -not -path './.git/*' -name '*.bak' -delete", "find . -type l -delete",
    "find . -type f", "ls -A", "ls -A | xargs echo", "ls -A | grep tmp | xargs rm -f", "rsync -a --delete --exclude .git /tmp/x/ ./",
    "rsync -a --delete free/ /tmp/copy/", "rm -rf free",
)  # fmt: skip
SETTINGS = {
    "claude": ".claude/settings.local.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json",
    "copilot": ".github/hooks/other.json",
}  # fmt: skip


@pytest.mark.parametrize("command", WHOLE)
def test_the_whole_tree_is_not_deleted(project: Project, command: str) -> None:
    for tool in ("claude", "gemini"):
        assert understood(tool, project.send(project.speaker(tool=tool).shell(command))) == "deny"


@pytest.mark.parametrize("command", PARTS)
def test_a_part_may_be(project: Project, command: str) -> None:
    assert understood("claude", project.send(project.speaker().shell(command))) == "allow"


def test_all_below_a_directory_is_deleted(project: Project) -> None:
    """A deletion of a whole tree by find is judged like `rm -rf`."""
    project.claim("shared/a", agent="bob")
    for command in ("find shared -delete", "find shared -type f -exec rm {} +", "find shared | xargs rm"):
        said = project.send(project.speaker().shell(command))
        assert understood("claude", said) == "deny" and "bob" in reason("claude", said), command


@pytest.mark.parametrize("tool", SETTINGS)
def test_settings_that_are_not_there_yet(project: Project, tool: str) -> None:
    path, who = SETTINGS[tool], project.speaker(tool=tool)
    off = '{"disableAllHooks": true}'
    outside = project.top.parent / "off.json"
    outside.write_text(off)
    for command in (
        f"echo '{off}' > {path}",
        f"cp {outside} {path}",
        f"printf '{{\"disable\\u0041llH\\u006foks\": 1}}' > {path}",
    ):
        assert understood(tool, project.send(who.shell(command))) == "deny", command
    if tool == "claude":
        event = who.write(path)
        assert understood(tool, project.send(event)) == "allow"
        event["tool_input"]["content"] = off
        assert understood(tool, project.send(event)) == "deny"
    assert understood(tool, project.send(who.shell(f'echo \'{{"theme": "dark"}}\' > {path}'))) == "allow"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_command_with_nul(project: Project, tool: str) -> None:
    assert understood(tool, project.send(project.speaker(tool=tool).shell("ls\0 free; echo x > shared/a"))) == "deny"
