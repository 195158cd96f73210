"""The quick parser and the full command line are made from one table: they must agree on every word."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.cli import help
from gitcoord.cli.entry import call_verb
from gitcoord.cli.table import COMMANDS, expand, table_of
from gitcoord.cli.table.claim import VERBS
from gitcoord.terminal.parser import NotQuick, Option, Verb
from gitcoord.terminal.parser import parse as parse_row

Values = dict[str, str | bool | list[str]]
Parsed = tuple[str, Values, list[str]]
WRONG = "wrong"
HELP = "help"


# --- one definition ------------------------------------------------------------------------------------------------


def _commands(group: Any, name: str = "") -> dict[str, Any]:
    """Each command of the full command line, by its words."""
    found: dict[str, Any] = {}
    for word, command in group.commands.items():
        words = f"{name} {word}".strip()
        found |= _commands(command, words) if hasattr(command, "commands") else {words: command}
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_verbs_options_and_words(command: str) -> None:
    table, full = table_of(command), _commands(help.full_command(command, "", call_verb))
    assert set(full) == set(table)
    for name, verb in table.items():
        assert full[name].help == verb.help
        there = {
            parameter.opts[0]: parameter for parameter in full[name].params if parameter.param_type_name == "option"
        }
        assert [*there] == [f"--{option.name}" for option in verb.options]
        for option in verb.options:
            made = there[f"--{option.name}"]
            others = [f"--{option.also}"] if option.also else []
            assert made.opts[1:] == [*others, *([f"-{option.short}"] if option.short else [])]
            assert made.help == option.help and made.is_flag == (option.kind == "flag")
            assert made.required == option.required or option.kind == "flag"


# --- the same answers ----------------------------------------------------------------------------------------------


def parse(words: list[str], command: str = "claim") -> Parsed:
    return parse_row(table_of(command), expand(command, words))


def _quick(words: list[str], command: str = "claim") -> Parsed | str:
    """The full command line does not tell which words came after `--`."""
    try:
        verb, values, found = parse(words, command)
        return verb, {key: value for key, value in values.items() if key != "--"}, found
    except NotQuick:
        return WRONG


def _full(words: list[str], command: str = "claim") -> Parsed | str:
    """Parse with the full command line, up to the call of the verb."""
    seen: list[Parsed] = []

    def called(verb: Verb, values: Values, found: list[str]) -> int:
        seen.append((next(name for name, row in table_of(command).items() if row is verb), values, found))
        return 0

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = help.main(command, words, called)
    if seen:
        assert code == 0 and len(seen) == 1
        return seen[0]
    if code == 0:
        assert f"Usage: git {command}" in out.getvalue()
        return HELP
    if "--json" in words:
        assert code == 2 and '"ok":false' in out.getvalue()
    else:
        assert code == 2 and err.getvalue().startswith("error: ")
    return WRONG


BOTH = (
    ["a"], ["take", "a", "b"], ["take", "--", "-a", "--", "b"], ["--", "list"], ["take", "take"], ["a", "-m", "x", "b"],
    ["a", "-mx"], ["a", "--message=x"], ["a", "--message="], ["a", "--message", "--json"], ["a", "-n", "-q"], ["a", "-qn"], ["a", "-nqmx"], ["a", "-qnm", "x"], ["--mode", "read", "a"],
    ["a", "--ttl", "-5m"], ["a", "--ttl=1h", "--ttl=2h"], ["release"], ["release", "-a"], ["release", "a", "--commit", "HEAD", "--dirty"],
    ["renew"], ["renew", "--ttl", "5m", "a", "b"], ["list"], ["list", "--mine", "-a", "--json"], ["show", "a"], ["show", "--json", "--", "-x"],
    ["check", "a", "b", "-q"], ["disown", "a", "--reason", "x"], ["takeover", "a", "--token", "3", "--force", "--reason", "x"],
    ["-"], [""], ["take", ""], ["a", "--nonce", ""], ["a", "-m", ""],
)  # fmt: skip


@pytest.mark.parametrize("words", BOTH, ids=" ".join)
def test_both_understand_the_same(words: list[str]) -> None:
    quick = _quick(words)
    assert quick != WRONG
    assert _full(words) == quick


NEITHER = (
    ["list", "a"], ["show"], ["show", "a", "b"], ["check"], ["disown", "a"], ["disown", "--reason", "x"],
    ["takeover", "a"], ["takeover", "a", "--token", "3", "--reason", "x"], ["takeover", "a", "--force", "--reason", "x"],
    ["a", "--nope"], ["a", "-z"], ["a", "--mode", "exclusive"], ["a", "--mode"], ["a", "-m"], ["a", "--json=yes"], ["a", "--json="],
    ["a", "--mod", "read"], ["-rf"], ["release", "--all=1"], ["take", "-rf"], ["list", "-q"], ["a", "-qz"], ["a", "-qm"], ["list", "--", "a"], ["disown", "a", "b", "--reason", "x"],
)  # fmt: skip


@pytest.mark.parametrize("words", NEITHER, ids=" ".join)
def test_both_reject_the_same(words: list[str]) -> None:
    assert _quick(words) == WRONG
    assert _full(words) == WRONG


@pytest.mark.parametrize(
    "words", [["-h"], ["--help"], *([verb, "-h"] for verb in VERBS), ["take", "a", "--help"]], ids=" ".join
)
def test_help_is_left_to_the_full_command_line(words: list[str]) -> None:
    assert _quick(words) == WRONG
    assert _full(words) == HELP


def test_what_only_the_quick_parser_does() -> None:
    """It lists, without a verb and without a path."""
    assert parse([]) == ("list", {}, [])
    assert parse(["--json"]) == ("list", {"json": True}, [])
    assert parse(["--mine"]) == ("list", {"mine": True}, [])
    assert parse(["-a"]) == ("list", {"all": True}, [])


def test_an_option_before_the_verb_does_not_turn_the_verb_into_a_path() -> None:
    """`git claim --json list` must not claim a path called 'list'."""
    assert _quick(["--json", "list"]) in (WRONG, ("list", {"json": True}, []))


def test_words_after_two_dashes_are_told_apart() -> None:
    assert parse(["a", "-qm", "--", "b", "--", "c", "--", "-d"]) == (
        "take", {"quiet": True, "message": "--", "--": ["c", "--", "-d"]}, ["a", "b", "c", "--", "-d"],
    )  # fmt: skip


# --- any words at all ----------------------------------------------------------------------------------------------


def _words() -> st.SearchStrategy[list[str]]:
    flags = sorted(
        {f"--{o.name}" for v in VERBS.values() for o in v.options}
        | {f"-{o.short}" for v in VERBS.values() for o in v.options if o.short}
    )
    known = st.sampled_from(
        [
            *VERBS,
            *flags,
            "--",
            "-",
            "--help",
            "-h",
            "read",
            "5m",
            "a",
            "src/b",
            "@gpu",
            "--json=x",
            "--ttl=5m",
            "-mx",
            "-qn",
            "--no",
            "=",
        ]
    )
    text = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
    return st.lists(st.one_of(known, text), max_size=7)


def _takes_value(option: Option) -> bool:
    return option.kind != "flag"


@given(_words())
def test_random_words_crash_neither_parser_and_what_the_quick_one_takes_the_full_one_takes_alike(
    words: list[str],
) -> None:
    quick = _quick(words)
    full = _full(words) if words else HELP
    if quick == WRONG or isinstance(quick, str):
        return
    verb, values, _ = quick
    names = {option.name: option for option in VERBS[verb].options}
    assert set(values) <= set(names)
    assert all((value is True) != _takes_value(names[name]) for name, value in values.items())
    if words and words[0] in VERBS:
        assert full == quick


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["run", "claude", "-p", "--json", "x"], ("run", {}, ["claude", "-p", "--json", "x"])),
        (["run", "--as", "a", "--", "claude", "-p"], ("run", {"as": "a"}, ["claude", "-p"])),
        (["dispatch", "--max=2", "sh", "--", "-c"], ("dispatch", {"max": "2"}, ["sh", "--", "-c"])),
        (["deploy", "prod", "--json", "--", "make", "--json"], ("deploy", {"json": True}, ["prod", "make", "--json"])),
        (["once", "--list"], ("once", {"list": True}, [])),
        (["server", "key", "revoke", "/r", "a"], ("server key revoke", {}, ["/r", "a"])),
        (["run"], WRONG),
        (["deploy", "prod"], WRONG),
        (["role"], WRONG),
        (["role", "a", "b", "c"], WRONG),
        (["server", "key"], WRONG),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_and_words_of_git_coord(words: list[str], wanted: Parsed | str) -> None:
    assert _quick(words, "coord") == _full(words, "coord") == wanted


_COORD = [
    "status",
    "log",
    "kill",
    "task",
    "add",
    "take",
    "run",
    "deploy",
    "once",
    "server",
    "key",
    "role",
    "--json",
    "-n",
    "3",
    "x",
]


@given(
    st.lists(
        st.sampled_from([*_COORD, "--", "-h", "--path", "--fold-case", "--as", "--list", "-m", "\x1b[31m"]), max_size=6
    )
)
def test_the_same_for_git_coord(words: list[str]) -> None:
    quick = _quick(words, "coord")
    full = _full(words, "coord")
    if quick != WRONG:
        assert full == quick
