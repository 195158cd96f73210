"""Completion in bash and zsh offers what the command lines understand, and really completes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gitcoord.cli.table import HANDOFF
from gitcoord.ledger.kinds import KINDS
from gitcoord.terminal.parser import VERBS
from tests.cli.test_man import coord_commands

COMPLETION = Path(__file__).parents[2] / "docs/completion"
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


def run(shell: str, script: str, *words: str, cwd: Path | None = None) -> list[str]:
    argv = [shell, *(["--norc", "--noprofile"] if shell == "bash" else ["-f"]), "-c", script, shell, *words]
    result = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return result.stdout.split("\n")[:-1]


# --- bash ---------------------------------------------------------------------------------------------------------


def bash_words(name: str, expression: str, *words: str) -> set[str]:
    (line,) = run("bash", f'source "{COMPLETION}/{name}.bash"; {expression}', *words) or [""]
    return set(line.split())


@needs_bash
def test_bash_knows_every_verb_and_option_of_git_claim() -> None:
    assert bash_words("git-claim", 'echo "$__gitcoord_claim_verbs"') == set(VERBS)
    for name, verb in VERBS.items():
        wanted = {f"--{option.name}" + ("" if option.kind == "flag" else "=") for option in verb.options}
        assert bash_words("git-claim", '__gitcoord_claim_options "$1"', name) == wanted


@needs_bash
def test_bash_knows_every_command_and_option_of_git_coord() -> None:
    commands = coord_commands()
    assert bash_words("git-coord", 'echo "$__gitcoord_coord_commands"') == set(commands)
    for name, options in commands.items():
        offered = {word.rstrip("=") for word in bash_words("git-coord", '__gitcoord_coord_options "$1"', name)}
        assert offered == {option for option in options if option.startswith("--")} - {"--help"}


@needs_bash
def test_bash_knows_every_verb_and_option_of_git_handoff() -> None:
    assert bash_words("git-handoff", 'echo "$__gitcoord_handoff_verbs"') == set(HANDOFF)
    for name, verb in HANDOFF.items():
        wanted = {f"--{option.name}" + ("" if option.kind == "flag" else "=") for option in verb.options}
        assert bash_words("git-handoff", '__gitcoord_handoff_options "$1"', name) == wanted


@pytest.mark.parametrize("name", ["git-coord.bash", "_git-coord"])
def test_every_kind_of_event_is_offered(name: str) -> None:
    assert " ".join(KINDS) in (COMPLETION / name).read_text()


# Completes the words given as bash would at <TAB>; `git` loads the completion of a command on its own.
_TAB = r"""
source "$1"; shift
_completion_loader() { source "$COMPLETION/$1.bash"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMP_KEY=9
__git_wrap__git_main
printf '%s\n' "${COMPREPLY[@]}"
"""


def tab(*words: str, cwd: Path) -> list[str]:
    offered = run("bash", f'COMPLETION="{COMPLETION}"\n{_TAB}', str(GIT_COMPLETION), *words, cwd=cwd)
    return [word.strip() for word in offered if word.strip()]


@needs_bash
@needs_git_completion
def test_tab_in_bash(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    for ref in ("refs/gitcoord/sessions/alice", "refs/gitcoord/sessions/bob"):
        subprocess.run([*git, "update-ref", ref, "HEAD"], check=True)
    cases = {
        "git claim rel": ["release"],
        "git claim r": ["release", "renew"],
        "git claim release --d": ["--dirty"],
        "git claim --mo": ["--mode="],
        "git claim x --mode ": ["read", "intent", "write"],
        "git claim take --mode = re": ["read"],
        "git claim release --commit ma": ["main"],
        "git claim release src": [],
        "git claim -- rel": [],
        "git -C . claim take": ["take", "takeover"],
        "git coord un": ["unhalt", "uninstall-hooks"],
        "git coord kill ": ["alice", "bob"],
        "git coord revive b": ["bob"],
        "git coord log --kind hal": ["halt"],
        "git coord rules a": ["ack"],
        "git coord log --s": ["--since="],
        "git coord worktree d": ["done"],
        "git coord worktree done --d": ["--discard-ignored"],
    }
    for line, wanted in cases.items():
        assert sorted(tab(*line.split(" "), cwd=tmp_path)) == sorted(wanted), line


# --- zsh ----------------------------------------------------------------------------------------------------------

# The completion system's own functions print what they are asked to offer.
_ZSH = """
_arguments() { print -rl -- "$@" }
_describe() { print -rl -- ${(P)@[-1]} }
_files() { : }
file=$1; shift
words=("$@"); CURRENT=$#
source $file
"""


def zsh_words(name: str, *words: str) -> list[str]:
    return run("zsh", _ZSH, str(COMPLETION / f"_{name}"), *words)


def zsh_options(name: str, *words: str) -> set[str]:
    """Option names out of specifications like `(-q --quiet)--quiet[words]` and `--ttl=[words]:...`."""
    specifications = (re.sub(r"^\([^)]*\)|^\*", "", line) for line in zsh_words(name, *words))
    found = (re.match(r"(--?[A-Za-z-]*[A-Za-z])[=+]?\[", line) for line in specifications)
    return {match[1] for match in found if match}


@needs_zsh
def test_zsh_knows_every_verb_and_option_of_git_claim() -> None:
    assert [line.partition(":")[0] for line in zsh_words("git-claim", "claim", "")] == list(VERBS)
    for name, verb in VERBS.items():
        wanted = {f"--{o.name}" for o in verb.options} | {f"-{o.short}" for o in verb.options if o.short}
        assert zsh_options("git-claim", "claim", name, "-") == wanted
    assert zsh_options("git-claim", "claim", "some/path", "-") == zsh_options("git-claim", "claim", "take", "-")


@needs_zsh
def test_zsh_knows_every_verb_and_option_of_git_handoff() -> None:
    assert [line.partition(":")[0] for line in zsh_words("git-handoff", "handoff", "")] == list(HANDOFF)
    for name, verb in HANDOFF.items():
        wanted = {f"--{o.name}" for o in verb.options} | {f"-{o.short}" for o in verb.options if o.short}
        assert zsh_options("git-handoff", "handoff", name, "-") == wanted


@needs_zsh
def test_zsh_knows_every_command_and_option_of_git_coord() -> None:
    commands = coord_commands()
    assert {line.partition(":")[0] for line in zsh_words("git-coord", "coord", "")} == set(commands)
    for name, options in commands.items():
        assert zsh_options("git-coord", "coord", name, "-") == options - {"-h", "--help"}, name
