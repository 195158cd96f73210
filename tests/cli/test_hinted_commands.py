"""Every hint leads somewhere: the command that it names exists, and following it helps or says whom to ask."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitcoord.cli.table import expand, table_of
from gitcoord.terminal.parser import NotQuick, parse
from tests.cli.support import PERSON, Done
from tests.gates.support import Project
from tests.support import CLAIM, COORD, HANDOFF, ROOT

COMMAND = re.compile(r"git (claim|coord|handoff)((?: [^;,]*)?)(?=[;,]|$)")

TOLD = re.compile(r"(?:^|\w: |&& )(git (?:claim|coord|handoff) .+)")
NO_COMMANDS = ("git claim, git coord and git handoff are on PATH", "git coord landx")

# --- every hint in the sources names commands that exist


def _text(node: ast.AST) -> str:
    """A string as it is shown; what is filled in is a word."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    return ""


def _texts(root: ast.AST) -> Iterator[str]:
    parts = {id(part) for node in ast.walk(root) if isinstance(node, ast.JoinedStr) for part in node.values}
    yield from (_text(node) for node in ast.walk(root) if id(node) not in parts)


def hints_in(source: str) -> Iterator[str]:
    """The hints of refusals, errors and of what is printed."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            roots = [keyword.value for keyword in node.keywords if keyword.arg == "hints"]
            roots += node.args if name == "hint" else node.args[2:] if name in ("refused", "Refusal") else []
            yield from (text for root in roots for text in _texts(root) if text)


def told_in(source: str) -> Iterator[str]:
    """Texts that tell a command, in whatever place: alone, after a colon or after another command. Doctor, audit, page and overview have such."""
    for text in _texts(ast.parse(source)):
        yield from (match[1] for match in TOLD.finditer(text) if "\n" not in text)


def wrong(hint: str) -> list[str]:
    """The commands in a hint that the table does not know so. `-h` is help, wherever it stands."""
    found = []
    for match in COMMAND.finditer(hint):
        try:
            words = expand(match[1], shlex.split(match[2].replace("...", "x")))
            if words[-1:] != ["-h"]:
                parse(table_of(match[1]), words)
        except (NotQuick, ValueError):
            found.append(match[0])
    return found


def test_every_hinted_command_exists_with_these_words() -> None:
    found = {
        str(path.relative_to(ROOT)): [
            each
            for read in (hints_in, told_in)
            for hint in read(path.read_text())
            if hint not in NO_COMMANDS
            for each in wrong(hint)
        ]
        for path in sorted((ROOT / "gitcoord").rglob("*.py"))
    }
    assert {name: rows for name, rows in found.items() if rows} == {}


def test_a_told_command_is_found_wherever_it_is_told() -> None:
    assert list(told_in("ok('x', BAD, 'on the server: git coord mend')")) == ["git coord mend"]


@pytest.mark.parametrize(
    "hint", ["git coord mend", "try: git claim --now a", "git coord task release", "git coord init --remote; ask bob"]
)
def test_a_hint_that_leads_nowhere_is_found(hint: str) -> None:
    assert wrong(hint) and list(hints_in(f"raise refused('x', 'y', {hint!r})")) == [hint]


# --- refusals met in real repositories, and their hints followed to the letter

CONFIG = """[gitcoord]
\tapprover = ada_at_example.com
[role "reader"]
\treadonly = true
[agent "rita"]
\trole = reader
[agent "boss"]
\trole = boss
[role "boss"]
\toverseer = true
"""
ATTRIBUTES = "shared/** gitcoord-claim\nguarded gitcoord-guard=checkpoint\nblocked gitcoord-guard=block\n"
PROGRAMS = {"claim": CLAIM, "coord": COORD, "handoff": HANDOFF}
# A person, or the one who can end it, is named; or what is there can be waited for; or the work itself is wrong.
ASKS = re.compile(
    r"\bask\b|a person|another (person|agent)|its owner|the holder|whose role may|administrator|approv|--wait|correct it"
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, ATTRIBUTES, CONFIG)


def hints_of(done: Done) -> list[str]:
    lines = (done.out + done.err).splitlines()
    return [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]


def commands_in(hint: str) -> list[list[str]]:
    """The commands of a hint that can be typed as they stand: nothing is left to fill in."""
    found = [match[0] for match in re.finditer(r"git [a-z-]+(?: [^;,]+)?", hint)]
    return [shlex.split(words) for words in found if "<" not in words and "'...'" not in words]


def follow(project: Project, words: list[str], agent: str) -> Done:
    if agent == PERSON:
        argv = PROGRAMS.get(words[1], ["git", words[1]])
        return project.world.at_terminal(*words[2:], argv=argv)
    if words[1] in PROGRAMS:
        if "--wait" in words:
            words = [*words[: words.index("--wait") + 1], "0s", *words[words.index("--wait") + 2 :]]
        return project.world.run(PROGRAMS[words[1]], tuple(words[2:]), agent)
    return project.try_git(*words[1:], agent=agent)


def leads_somewhere(project: Project, done: Done, agent: str, seen: tuple[str, ...] = ()) -> None:
    """Some hint of this refusal helps when it is followed, or names somebody to ask. No circle of hints is walked.

    Wrong usage (2) is helped by words.
    """
    hints = hints_of(done)
    assert hints, f"a refusal without a hint: {done}"
    if done.code == 2 or any(ASKS.search(hint) for hint in hints):
        return
    tried = []
    for hint in hints:
        for words in commands_in(hint):
            line = shlex.join(words)
            assert line not in seen, f"a circle of hints: {seen}, {line}"
            next_done = follow(project, words, agent)
            if next_done.code == 0:
                return
            tried.append((line, next_done))
    assert tried, f"nothing to follow and nobody to ask: {hints}"
    for line, next_done in tried:
        leads_somewhere(project, next_done, agent, (*seen, line))


def _claimed(project: Project, path: str = "shared/a", agent: str = "bob") -> None:
    project.claim(path, agent=agent)


def _claim(project: Project, *words: str, agent: str = "alice") -> Done:
    return project.world.claim(*words, agent=agent)


def _coord(*words: str, agent: str = "alice", before: Callable[[Project], object] | None = None) -> Callable[..., Done]:
    def act(project: Project) -> Done:
        if before is not None:
            before(project)
        return project.coord(*words, agent=agent)

    return act


def _staged(path: str) -> Callable[[Project], Done]:
    return lambda project: project.try_commit({path: "new\n"}, "alice")


def _held(project: Project) -> Done:
    _claimed(project)
    return _claim(project, "shared/a")


def _commit_held(project: Project) -> Done:
    _claimed(project)
    return project.try_commit({"shared/a": "new\n"}, "alice")


def _lineage(project: Project) -> Done:
    project.work("bob", "bobs", {"free/x": "bob's\n"})
    project.switch("main")
    return project.try_commit({"free/x": "mine\n"}, "alice")


def _halted(project: Project) -> Done:
    assert project.as_person("halt").code == 0
    return _claim(project, "free/x")


def _killed(project: Project) -> Done:
    _claimed(project, "free/x", "alice")
    assert project.as_person("kill", "alice").code == 0
    return _claim(project, "free/x")


def _refused_merge(project: Project) -> Done:
    project.branch("side")
    project.commit({"shared/a": "theirs\n"})
    project.switch("main")
    return project.try_git("merge", "-q", "side", agent="alice")


def _dirty_release(project: Project) -> Done:
    _claimed(project, "free/x", "alice")
    project.write({"free/x": "new\n"})
    return _claim(project, "release", "free/x")


def _dirty_stop(project: Project) -> Done:
    _claimed(project, "free/x", "alice")
    project.write({"free/x": "new\n"})
    return project.coord("stop", agent="alice")


def _takeover(project: Project) -> Done:
    _claimed(project)
    return _claim(project, "takeover", "shared/a", "--token", "3", "--force", "--reason", "x")


SCENES: dict[str, Callable[[Project], Done]] = {
    "held": _held, "commit held": _commit_held, "unclaimed": _staged("shared/a"), "checkpoint": _staged("guarded"),
    "blocked": _staged("blocked"), "own-files": _staged(".gitcoord/config"), "lineage": _lineage, "halted": _halted,
    "killed": _killed, "merge": _refused_merge, "dirty release": _dirty_release, "dirty stop": _dirty_stop,
    "role": lambda project: _claim(project, "free/x", agent="rita"),
    "release of nothing": lambda project: _claim(project, "release", "free/x"),
    "takeover": _takeover,
    "check unclaimed": lambda project: _claim(project, "check", "shared/a"),
    "outside": lambda project: _claim(project, "../x"), "misspelt": lambda project: _claim(project, "relaese"),
    "nobody": lambda project: _claim(project, "free/x", agent=""),
    "kill": _coord("kill", "bob", before=_claimed), "kill nobody": _coord("kill", "nobody"), "halt": _coord("halt"),
    "unhalt": _coord("unhalt", before=lambda project: project.as_person("halt")),
    "approve": _coord("approve", "1"), "role set": _coord("role", "bob", "reader"),
    "uninstall": _coord("uninstall-hooks"), "teardown": _coord("teardown", "--yes"),
    "task": _coord("task", "done", "t9"), "gate": _coord("gate", "nonsense"),
    "deploy": _coord("deploy", "nowhere", "--", "true"), "handoff": lambda p: p.world.handoff("accept", "h9"),
    "why": _coord("log", "--kind", "nonsense"), "no such remote": _coord("init", "--remote", "nowhere"),
    "push ledger": lambda project: project.try_git("update-ref", "refs/heads/gitcoord", "HEAD", agent="alice"),
}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES.values(), ids=list(SCENES))
def test_the_hints_of_a_refusal_help_or_say_whom_to_ask(project: Project, scene: Callable[[Project], Done]) -> None:
    done = scene(project)
    assert done.code != 0, done
    leads_somewhere(project, done, "alice")


def test_a_person_is_led_out_of_a_kill_and_a_halt(project: Project) -> None:
    """Followed to the letter, hint by hint."""
    assert project.as_person("start").code == 0
    assert project.coord("kill", PERSON, agent="boss").code == 0
    assert project.coord("halt", agent="boss").code == 0
    for _ in range(4):
        done = project.as_person("start")
        if done.code == 0:
            return
        hint = hints_of(done)[0]
        words = shlex.split(hint[hint.index("git ") :])
        refused = project.as_person(*words[2:])
        if refused.code:
            again = hints_of(refused)[0]
            assert project.as_person(*shlex.split(again[again.index("git ") :])[2:]).code == 0, refused
    raise AssertionError("a circle of hints")
