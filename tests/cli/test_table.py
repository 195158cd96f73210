"""Every verb is a whole row of the table, and its help, its group and its heading come out of it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import import_module
from inspect import signature

import pytest

from gitcoord import __version__
from gitcoord.cli import help
from gitcoord.cli.table import COMMANDS, expand, table_of
from gitcoord.cli.table.coord import BARE, GROUPS, HEADINGS
from gitcoord.terminal.parser import Verb, parse
from tests.cli.support import World
from tests.support import ROOT

ROWS = {f"{command} {name}": verb for command in COMMANDS for name, verb in table_of(command).items()}
# What it prints is not its own: that of the program that it launches, a protocol of another's, or a show for people.
NOT_ITS_OWN = {"coord run", "coord dispatch", "coord guard", "coord mcp", "coord demo"}
KIND = re.compile(r"flag|texts?|duration|number|[a-z]+(\|[a-z]+)+")
LABEL = re.compile(r"[A-Z][A-Z.-]*[A-Z](\.\.\.)?")


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_whole(name: str) -> None:
    verb = ROWS[name]
    assert verb.help.endswith((".", "?")) and "\n" not in verb.help
    assert verb.opens in ("none", "read", "write") and verb.life in ("one_shot", "work", "long_lived")
    assert all(LABEL.fullmatch(word.strip("[]")) for word in verb.words.replace("-- ", "").split()), verb.words
    names = [option.name for option in verb.options]
    shorts = [option.short for option in verb.options if option.short]
    assert len(names) == len(set(names)) and len(shorts) == len(set(shorts))
    assert "help" not in names and "version" not in names and "h" not in shorts
    for option in verb.options:
        assert KIND.fullmatch(option.kind) and option.help.endswith("."), option.name
    assert ("json" in names) == (name not in NOT_ITS_OWN)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_has_its_handler(name: str) -> None:
    module, _, function = ROWS[name].handler.partition(":")
    handler = getattr(import_module(f"gitcoord.{module}"), function)
    assert len(signature(handler).parameters) == 3


@pytest.mark.parametrize("name", ROWS)
def test_every_example_is_understood(name: str) -> None:
    command, _, verb = name.partition(" ")
    words = shlex.split((ROWS[name].example or verb).partition(" && ")[0].partition(" < ")[0])
    assert parse(table_of(command), expand(command, words))[0] == verb


def test_verbs_stand_under_headings_and_fit_a_line() -> None:
    table = table_of("coord")
    tops = list(dict.fromkeys(name.split()[0] for name in table))
    assert " ".join(HEADINGS.values()).split() == tops
    longest = 80 - len("  uninstall-hooks  ")
    assert all(len(GROUPS[name] if name in GROUPS else table[name].help) <= longest for name in tops)
    groups = {" ".join(name.split()[:depth]) for name in table_of("coord") for depth in range(1, len(name.split()))}
    assert groups == set(GROUPS)


# Loads the handlers' modules as the installed commands do: on the bare interpreter, where there is no library.
_BARE = """
import sys
sys.path.insert(0, {root!r})
for name in {modules!r}:
    __import__("gitcoord." + name)
print(*sys.modules)
"""


def test_quick_verbs_need_no_library() -> None:
    modules = sorted({verb.handler.partition(":")[0] for verb in ROWS.values() if not verb.needs})
    program = _BARE.format(root=str(ROOT), modules=modules)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not {"typer", "click", "rich", "pygit2", "dulwich", "mcp", "pydantic", "starlette", "uvicorn"} & set(
        done.stdout.split()
    )
    slow = {name for name, verb in ROWS.items() if verb.needs}
    assert slow == {
        "coord setup", "coord teardown", "coord install-hooks", "coord repositories", "coord server install", "coord server status", "coord demo", "coord doctor", "coord audit", "coord drill",  # find what was installed
        "coord run", "coord dispatch", "coord watch", "coord fsck", "coord mcp", "coord page",  # dulwich, pygit2, mcp, starlette
    }  # fmt: skip


@pytest.mark.parametrize(
    "words", ["status", "log", "agents", "resources", "approvals", "deploys", "worktree list", "init", "once --list"]
)
def test_looking_loads_no_full_command_line(world: World, words: str) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from gitcoord.cli.entry import main; "
        "code = main('coord', sys.argv[1:]); sys.exit(code or 'typer' in sys.modules)"
    )
    argv = [sys.executable, "-I", "-S", "-c", program, *words.split()]  # no fork: it would have everything loaded
    done = subprocess.run(argv, cwd=world.top, env=world.environ("alice", {}), capture_output=True, check=False)
    assert done.returncode == 0, done


# --- the help -------------------------------------------------------------------------------------------------------


def test_the_help_of_git_coord_is_grouped_and_whole(world: World) -> None:
    for words in ((), ("-h",), ("--help",)):
        done = world.coord(*words)
        assert done.code == 0 and all(len(line) <= 80 for line in done.out.splitlines())
        assert [line[:-1] for line in done.out.splitlines() if line.endswith(":") and line != "Options:"] == [*HEADINGS]
        assert "..." not in done.out.replace("[ARGS]...", "")


@pytest.mark.parametrize("name", ROWS)
def test_the_help_of_every_verb_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *words = name.split()
    assert help.main(command, [*words, "-h"], lambda verb, values, words: 1) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: git {name} [OPTIONS]")
    assert f"Example:\n    git {command} {ROWS[name].example or ' '.join(words)}\n" in out
    for option in ROWS[name].options:
        assert f"--{option.name}" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_version(world: World, command: str) -> None:
    done = getattr(world, command)("--version")
    assert (done.code, done.out, done.err) == (0, f"gitcoord {__version__}\n", "")


def test_a_slip_is_met_with_a_suggestion(world: World) -> None:
    done = world.coord("stauts")
    assert done.code == 2 and "'status'" in done.err and done.err.endswith("hint: git coord -h\n")


@pytest.mark.parametrize(
    "words, hint",
    [
        ("coord task t99", "git coord task show t99"),
        ("handoff h9", "git handoff show h9"),
        ("claim --release src/a.py", "git claim release src/a.py"),
        ("coord note src/a.py -m", "git coord note -h"),
    ],
)
def test_the_hint_of_a_slip_is_the_command_that_was_meant(world: World, words: str, hint: str) -> None:
    command, *rest = words.split()
    done = getattr(world, command)(*rest)
    assert done.code == 2 and done.err.splitlines()[1] == f"hint: {hint}", done


# --- groups ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [group for group in BARE if " " not in group])
def test_a_groups_name_with_options(world: World, group: str) -> None:
    """`git coord journal --json` is `git coord journal show --json`, as without the option."""
    alone, whole = world.coord(group, "--json"), world.coord(*BARE[group], "--json")
    assert (alone.code, alone.json) == (whole.code, whole.json) and alone.json["ok"]
    assert world.coord(group).code == 0
    assert world.coord(group, "-h").out.startswith(f"Usage: git coord {group} ")


def test_other_options_and_wrong_ones(world: World) -> None:
    assert world.coord("journal", "--number", "1", "--json").json["entries"][0]["kind"] == "init"
    assert world.coord("task", "--mine", "--json").json["tasks"] == []
    assert world.coord("rules", "--who", "--json").code == 0
    wrong = world.coord("journal", "--nonsense", "--json")
    assert wrong.code == 2 and wrong.json["error"] == "usage"


def test_rows_are_found_by_their_names() -> None:
    assert isinstance(ROWS["coord server key add"], Verb) and len(ROWS) > 80
