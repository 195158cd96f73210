"""Completion offers what the table has and what is stored, and the shells' scripts ask for it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from gitcoord.cli import docs
from gitcoord.cli.complete import offers
from gitcoord.cli.table import COMMANDS, table_of
from gitcoord.ledger.kinds import KINDS
from tests.cli.support import World
from tests.support import COORD, ROOT

COMPLETION = ROOT / "docs/completion"
GIT_COMPLETION = next(
    (
        path
        for path in map(
            Path,
            (
                "/usr/share/bash-completion/completions/git",
                "/usr/local/etc/bash_completion.d/git-completion.bash",
                "/opt/homebrew/etc/bash_completion.d/git-completion.bash",
            ),
        )
        if path.exists()
    ),
    None,
)
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
needs_git_completion = pytest.mark.skipif(GIT_COMPLETION is None, reason="git's own completion is not here")


def offered(command: str, line: str) -> list[str]:
    """The completions that the table offers; kinds of values that would be looked up stand in brackets."""
    return list(offers(command, line.split(" "), lambda what: {f"[{what}]": ""} if what else {}))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_verb_and_option_is_offered(command: str) -> None:
    table = table_of(command)
    assert offered(command, "") == list(dict.fromkeys(name.split()[0] for name in table))
    for name, verb in table.items():
        group, _, own = name.rpartition(" ")
        assert own in offered(command, f"{group} ".lstrip())
        wanted = [f"--{option.name}" + ("" if option.kind == "flag" else "=") for option in verb.options]
        assert offered(command, f"{name} -") == wanted


def test_every_word_but_names_texts_and_files_is_looked_up() -> None:
    """A label that completion does not know is one of these."""
    free = {"NAME", "KEY", "TITLE", "FILE", "PATH", "COMMAND", "REPOSITORY", "KEY-FILE", "VERSION", "BASE..HEAD"}
    for command in COMMANDS:
        for name, verb in table_of(command).items():
            words = verb.words.replace("-- ", "").split()
            for index, label in enumerate(words):
                found = offered(command, f"{name} {'x ' * index}")
                assert len(found) == 1 or (not found and label.strip("[.]") in free), (name, label)


@pytest.mark.parametrize(
    ("command", "line", "wanted"),
    [
        ("claim", "x --mode ", ["read", "intent", "write"]),
        ("claim", "take --mode=", ["read", "intent", "write"]),
        ("claim", "--mode=", ["read", "intent", "write"]),
        ("claim", "release --commit ", ["[commits]"]),
        ("claim", "release -m ", ["[claims]"]),
        ("claim", "release --dirty src ", ["[claims]"]),
        ("claim", "release -- ", ["[claims]"]),
        ("claim", "release -- -", ["[claims]"]),
        ("claim", "take ", []),
        ("claim", "-m ", []),
        ("coord", "task take ", ["[tasks]"]),
        ("coord", "task take t1 ", []),
        ("coord", "task join t1 ", ["[tasks]"]),
        ("coord", "role alice ", ["[roles]"]),
        ("coord", "log --agent=", ["[agents]"]),
        ("coord", "worktree done ", ["[worktrees]"]),
        ("coord", "server key ", ["add", "rotate", "revoke", "list"]),
        ("coord", "run ", []),
        ("coord", "nonsense ", []),
        ("coord", "task nonsense ", []),
        ("handoff", "accept ", ["[handoffs]"]),
    ],
)
def test_what_is_offered(command: str, line: str, wanted: list[str]) -> None:
    assert offered(command, line) == wanted


@pytest.fixture
def world(git_repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A repository with something of everything, and `git coord` on PATH."""
    world = World(git_repo, ledger=True)
    bin = tmp_path_factory.mktemp("bin")
    (bin / "git-coord").write_text(f'#!/bin/sh\nexec {shlex.join(COORD)} "$@"\n')
    (bin / "git-coord").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("GITCOORD_AGENT", "alice")
    world.take("src/a.py", "-m", "fix")
    world.take("docs", agent="bob")
    return world


def complete(world: World, line: str) -> list[str]:
    done = subprocess.run([*COORD, "complete", *line.split(" ")], cwd=world.top, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return [word.rstrip("\t") for word in done.stdout.splitlines()]


def test_what_is_stored_is_offered(world: World) -> None:
    task = world.coord("task", "add", "Fix it", "--json", agent="bob").json["tasks"][0]["id"]
    world.write(
        ".gitcoord/config",
        '[role "reviewer"]\n\twrite = docs\n[deploy "prod"]\n\tverify = true\n[sequence "m"]\n\tpattern = m/*\n',
    )
    world.commit({})
    said = {"state": "a", "changed": "b", "remaining": "c", "next": "d"}
    new = world.handoff("new", *(f"--{key}={text} and more" for key, text in said.items()), "--json", agent="bob").json
    cases = {
        "claim release ": ["src/a.py\tfix"],
        "coord kill ": ["alice", "bob"],
        "coord task take ": [f"{task}\tFix it (open)"],
        "coord role alice ": ["reviewer"],
        "coord deploy ": ["prod"],
        "coord number ": ["m"],
        "coord log --kind=hal": ["halt"],
        "claim release --commit=ma": ["main"],
        "handoff accept ": [f"{new['id']}\tfrom bob: d and more"],
        "handoff new --task ": [f"{task}\tFix it (open)"],
    }
    for line, wanted in cases.items():
        assert complete(world, line) == wanted, line
    found = world.coord("complete", "--json", "claim", "release", "").json
    assert found == {"ok": True, "words": [{"word": "src/a.py", "help": "fix"}]}


def test_without_a_repository_nothing_is_offered_and_nothing_is_said(tmp_path: Path, world: World) -> None:
    for line in (("claim", "release", ""), ("coord", "kill", ""), ("nonsense", "")):
        done = world.coord("complete", *line, env={"GIT_DIR": str(tmp_path)})
        assert (done.code, done.out, done.err) == (0, "", "")


# --- the shells' scripts ------------------------------------------------------------------------------------------


def test_the_scripts_are_made_anew_by_the_module(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs/man", tmp_path / "docs/man")
    (tmp_path / "docs/completion").mkdir()
    docs.write(tmp_path)
    made = {path.name: path.read_text() for path in (tmp_path / "docs/completion").iterdir()}
    assert made == {path.name: path.read_text() for path in COMPLETION.iterdir()}


def test_the_scripts_are_installed() -> None:
    shared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "shared-data"
    ]
    places = {f"docs/completion/{path.name}" for path in COMPLETION.iterdir()}
    assert {name for name in shared if name.startswith("docs/completion/")} == places
    text = (ROOT / "install.sh").read_text()
    for place in shared.values():
        assert place in text or not place.startswith(("share/bash-completion/", "share/zsh/"))


def run(shell: str, script: str, *words: str, cwd: Path) -> list[str]:
    argv = [shell, *(["--norc", "--noprofile"] if shell == "bash" else ["-f"]), "-c", script, shell, *words]
    result = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return [line.strip() for line in result.stdout.split("\n") if line.strip()]


# Completes the words given as bash would at <TAB>; `git` loads the completion of a command on its own.
_TAB = r"""
source "$1"; shift
_completion_loader() { source "$COMPLETION/$1.bash"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMP_KEY=9
__git_wrap__git_main
printf '%s\n' "${COMPREPLY[@]}"
"""
LINES = {
    "git claim rel": ["release"],
    "git claim r": ["release", "renew"],
    "git claim release --d": ["--dirty"],
    "git claim --mo": ["--mode="],
    "git claim x --mode ": ["read", "intent", "write"],
    "git claim release ": ["src/a.py"],
    "git claim take src": [],
    "git coord un": ["unhalt", "uninstall-hooks"],
    "git coord revive b": ["bob"],
    "git coord log --kind hal": ["halt"],
    "git coord worktree done --d": ["--discard-ignored"],
    "git handoff with": ["withdraw"],
}


@needs_bash
@needs_git_completion
def test_tab_in_bash(world: World) -> None:
    lines = {**LINES, "git claim take --mode = re": ["read"], "git -C . claim take": ["take", "takeover"]}
    for line, wanted in lines.items():
        script = f'COMPLETION="{COMPLETION}"\n{_TAB}'
        assert sorted(run("bash", script, str(GIT_COMPLETION), *line.split(" "), cwd=world.top)) == sorted(wanted), line


# The completion system's own functions print what they are asked to offer.
_ZSH = """
_describe() { [[ $1 == -o ]] && shift; print -rl -- "${(@)${(@P)2}%%:*}" }
_files() { : }
compset() { : }
file=$1; shift
words=("$@"); CURRENT=$#; PREFIX=$words[-1]
source $file
"""


@needs_zsh
def test_tab_in_zsh(world: World) -> None:
    for line, wanted in {**LINES, "git claim take --mode=re": ["read"]}.items():
        _, command, *words = line.split(" ")
        found = run("zsh", _ZSH, str(COMPLETION / f"_git-{command}"), command, *words, cwd=world.top)
        assert sorted(found) == sorted(wanted), line


def test_every_kind_of_event_is_offered(world: World) -> None:
    assert sorted(complete(world, "coord log --kind ")) == sorted(KINDS)
