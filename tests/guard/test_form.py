"""The form of the guard's answers, over all of its reasons: what did not happen, who holds it, and commands that work as they stand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.protocol import Event, Speaker, context, reason, understood
from tests.guard.support import ATTRIBUTES, CONFIG, Project
from tests.support import git

Make = Callable[[Project, Speaker], Event]
CONFIG_HERE = f"{CONFIG}\tdenyRead = /etc/ssl\n"
FORBIDDEN = ("--no-verify", "core.hooksPath", "takeover", "teardown --force")


def _wrote(project: Project, who: Speaker, path: str) -> None:
    """The agent's tool writes a file and reports it."""
    assert project.write(who, path) == "allow"
    project.world.write(path, f"of {who.conversation}\n")
    project.send(who.write(path, after=True))


def _held(project: Project, who: Speaker) -> Event:
    project.claim("-m", "new login", "--expect", "20m", "free/x", agent="bob")
    return who.write("free/x")


def _held_without_end(project: Project, who: Speaker) -> Event:
    project.claim("free", agent="bob")
    return who.shell("rm -r free")


def _uncommitted(project: Project, who: Speaker) -> Event:
    _wrote(project, project.speaker("c-two"), "free/x")
    return who.write("free/x")


def _staged(project: Project, who: Speaker) -> Event:
    _wrote(project, project.speaker("c-two"), "free/x")
    return who.shell("git add -A && git commit -m all")


def _branch(project: Project, who: Speaker) -> Event:
    project.send(project.speaker("c-two").start())
    return who.shell("git switch -c topic")


def _changed(project: Project, who: Speaker) -> Event:
    project.send(who.read("free/x"))
    _wrote(project, project.speaker("c-two"), "free/x")
    project.world.git("commit", "-qam", "two's")
    return who.write("free/x")


def _pending(project: Project, who: Speaker) -> Event:
    project.send(who.read("free/x"))
    project.write(project.speaker("c-two"), "free/x")
    return who.write("free/x")


def _copy(project: Project, who: Speaker) -> Event:
    tree = project.top.parent / "linked"
    git(project.top, "worktree", "add", "-q", str(tree))
    return who._replace(cwd=str(tree)).write(f"{project.top}/free/x")


def _killed(project: Project, who: Speaker) -> Event:
    project.send(who.start())
    project.world.person("kill", "claude-cone", "--reason", "it ran wild")
    return who.write("free/x")


def _halted(project: Project, who: Speaker) -> Event:
    project.world.person("halt", "--reason", "stop it all")
    return who.write("free/x")


def _broken(project: Project, who: Speaker) -> Event:
    project.world.git("update-ref", "refs/heads/gitcoord", "HEAD")
    return who.write("free/x")


def shell(command: str) -> Make:
    return lambda project, who: who.shell(command)


def write(path: str) -> Make:
    return lambda project, who: who.write(path)


CASES: dict[str, Make] = {
    "held": _held, "held-without-end": _held_without_end, "uncommitted": _uncommitted, "staged": _staged, "branch": _branch,
    "changed": _changed, "pending": _pending, "copy": _copy, "broken": _broken, "killed": _killed, "halted": _halted,
    "read": lambda project, who: who.read("secret/key"), "asked": lambda project, who: who.read("asked/plan"),
    "private place": lambda project, who: who.read("/etc/ssl/certs"),
    "policy": write(".gitcoord/config"), "attributes": write(".gitattributes"), "git's own": write(".git/config"),
    "settings": write(".claude/settings.json"), "skipped hooks": shell("git commit --no-verify -m x"),
    "takeover": shell("git claim takeover shared/a --token 1 --force --reason x"),
    "another's name": shell("GITCOORD_AGENT=bob git claim shared/a"), "ledger": shell("git update-ref refs/heads/gitcoord HEAD"),
    "claims": shell("git update-ref -d refs/claims/shared/a"), "repository": shell("rm -rf .git"),
    "everything": shell("find . -delete"), "NUL": shell("git status\0rm free/x"),
    "unclaimed": write("shared/a"), "unknown": shell("make"), "gemini: no hooks": shell("git commit -am x"),
}  # fmt: skip
HINTS = re.compile(r"hint: (?:.*: )?(git [a-z].*)")


@pytest.mark.parametrize("name", CASES)
def test_form(tmp_path: Path, name: str) -> None:
    config = {"unclaimed": CONFIG.replace("true", "false"), "unknown": f"{CONFIG}\tunknown = deny\n"}.get(
        name, CONFIG_HERE
    )
    tool = "gemini" if name.startswith("gemini") else "claude"
    project = Project(tmp_path, attributes=ATTRIBUTES, config=config)
    project.world.write(".claude/settings.json", '{"hooks": "git coord guard"}')
    who = project.speaker("c-one", tool)
    _wrote(project, who, "free/mine")
    said = project.send(CASES[name](project, who))
    assert understood(tool, said) in ("deny", "ask"), said
    lines = reason(tool, said).rstrip("\n").split("\n")
    text = "\n".join(lines)
    assert re.match(r"gitcoord: .+, nothing was done($|:)", lines[0]), text
    kinds = [
        0 if line.startswith("  ") else 1 if line.startswith(("why: ", "other work: ")) else 2 for line in lines[1:]
    ]
    assert kinds == sorted(kinds) and all(
        line.startswith("hint: ") for line, kind in zip(lines[1:], kinds) if kind == 2
    ), text
    hints = [line for line in lines if line.startswith("hint: ")]
    assert 1 <= len(hints) <= 2, text
    assert not any(word in text for word in FORBIDDEN), text
    for command in (found[1] for hint in hints if (found := HINTS.fullmatch(hint))):
        assert "<" not in command, f"{command!r} does not work as it stands"
        assert shlex.split(command)


def test_hints_work_literally(project: Project) -> None:
    """The commands that the agent itself is to run next, run as they stand."""
    who = project.speaker("c-one")
    _wrote(project, who, "free/mine")
    hints = HINTS.findall(reason("claude", project.send(_staged(project, who))))
    assert hints == ['git coord commit -m "..." -- free/mine', "git coord worktree add claude-cone"]
    for hint in hints:
        words = shlex.split(hint)[2:]
        assert project.world.coord(*words, agent="claude-cone").code == 0, hint
    assert project.world.git("show", "--format=", "--name-only", "HEAD") == "free/mine"


def test_told_afterwards(project: Project) -> None:
    one, two = project.speaker("c-one"), project.speaker("c-two")
    _wrote(project, two, "free/x")
    _wrote(project, one, "free/mine")
    project.send(one.shell("make fmt"))
    project.world.write("free/x", "formatted\n")
    lines = context(project.send(one.shell("make fmt", after=True))).split("\n")
    assert lines[0] == "gitcoord: while this command ran, files changed that are not yours to change"
    assert lines[-1].endswith('git coord commit -m "..." -- free/mine')
