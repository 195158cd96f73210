"""The quick parser and the full command line are made from one table: they must agree on every word."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.cli import typer_claim as claim
from gitcoord.cli import typer_coord as coord
from gitcoord.cli import typer_table as table
from gitcoord.terminal.parser import VERBS, NotQuick, Option, Verb, parse

Values = dict[str, str | bool | list[str]]
Parsed = tuple[str, Values, list[str]]
WRONG = "wrong"
HELP = "help"


def _commands(app: typer.Typer) -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def _options(command: Any) -> dict[str, Any]:
    return {p.name: p for p in command.params if p.param_type_name == "option"}


# --- one definition ------------------------------------------------------------------------------------------------


def test_the_same_verbs() -> None:
    assert list(_commands(claim.app)) == list(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_the_same_options(verb: str) -> None:
    there = _options(_commands(claim.app)[verb])
    assert set(there) == {option.name.replace("-", "_") for option in VERBS[verb].options}
    for option in VERBS[verb].options:
        full = there[option.name.replace("-", "_")]
        assert full.opts == [f"--{option.name}", *([f"-{option.short}"] if option.short else [])]
        assert full.is_flag == (option.kind == "flag")
        assert full.help == option.help
        if option.kind != "flag":
            assert full.required == option.required


@pytest.mark.parametrize("verb", VERBS)
def test_the_same_paths(verb: str) -> None:
    arguments = [p for p in _commands(claim.app)[verb].params if p.param_type_name == "argument"]
    wanted = VERBS[verb].paths
    if wanted == "none":
        assert not arguments
        return
    (path,) = arguments
    assert path.required == (wanted in ("one", "some"))
    assert path.nargs == (1 if wanted == "one" else -1)


@pytest.mark.parametrize("app", [claim.app, coord.make_app()], ids=["claim", "coord"])
def test_everything_has_help(app: typer.Typer) -> None:
    for name, command in _commands(app).items():
        assert command.help, name
        for option in _options(command).values():
            assert option.help and option.help.endswith("."), (name, option.name)


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_have_json_and_no_letter_twice(verb: str) -> None:
    options = VERBS[verb].options
    assert any(option.name == "json" for option in options)
    shorts = [option.short for option in options if option.short]
    assert len(shorts) == len(set(shorts))
    assert "h" not in shorts and "help" not in [option.name for option in options]


def test_git_coord_has_json_wherever_it_tells_something() -> None:
    commands = dict(_commands(coord.make_app()))
    for _ in range(2):  # commands of commands
        for name, group in list(commands.items()):
            for inner, command in getattr(group, "commands", {}).items():
                commands[f"{name} {inner}"] = command
                commands.pop(name, None)
    without = {name for name, command in commands.items() if "json" not in _options(command)}
    assert without == {"run", "dispatch", "guard", "mcp", "demo"}


# --- the same answers ----------------------------------------------------------------------------------------------


def _quick(words: list[str]) -> Parsed | str:
    try:
        return parse(words)
    except NotQuick:
        return WRONG


def _full(words: list[str]) -> Parsed | str:
    """What the full command line makes of it, up to the call of the verb."""
    seen: list[Parsed] = []

    def called(verb: str, _row: Verb, values: Values, paths: list[str]) -> int:
        seen.append((verb, values, paths))
        return 0

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(table, "call_verb", called),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = claim.main(words)
    if seen:
        assert code == 0 and len(seen) == 1
        return seen[0]
    if code == 0:
        assert "Usage: git claim" in out.getvalue()
        return HELP
    if "--json" in words:
        assert code == 2 and '"ok":false' in out.getvalue()
    else:
        assert code == 2 and err.getvalue().startswith("error: ")
    return WRONG


BOTH = (
    ["a"], ["take", "a", "b"], ["take", "--", "-a", "--", "b"], ["--", "list"], ["take", "take"], ["a", "-m", "x", "b"],
    ["a", "-mx"], ["a", "--message=x"], ["a", "--message="], ["a", "--message", "--json"], ["a", "-n", "-q"], ["--mode", "read", "a"],
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
    ["take"], ["take", "--json"], ["list", "a"], ["show"], ["show", "a", "b"], ["check"], ["disown", "a"], ["disown", "--reason", "x"],
    ["takeover", "a"], ["takeover", "a", "--token", "3", "--reason", "x"], ["takeover", "a", "--force", "--reason", "x"],
    ["a", "--nope"], ["a", "-z"], ["a", "--mode", "exclusive"], ["a", "--mode"], ["a", "-m"], ["a", "--json=yes"], ["a", "--json="],
    ["a", "--mod", "read"], ["-rf"], ["release", "--all=1"], ["take", "-rf"], ["list", "-q"], ["list", "--", "a"], ["disown", "a", "b", "--reason", "x"],
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
    """Without a verb and without a path it lists."""
    assert parse([]) == ("list", {}, [])
    assert parse(["--json"]) == ("list", {"json": True}, [])
    assert parse(["--mine"]) == ("list", {"mine": True}, [])
    assert parse(["-a"]) == ("list", {"all": True}, [])


def test_an_option_before_the_verb_does_not_turn_the_verb_into_a_path() -> None:
    """`git claim --json list` must not claim a path called 'list'."""
    assert _quick(["--json", "list"]) in (WRONG, ("list", {"json": True}, []))


def test_joined_letters_are_left_to_the_full_command_line() -> None:
    assert _quick(["a", "-qn"]) == WRONG
    assert _full(["a", "-qn"]) == ("take", {"quiet": True, "dry-run": True}, ["a"])


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


@given(
    st.lists(
        st.sampled_from(
            ["status", "log", "kill", "init", "--json", "-n", "3", "x", "--", "-h", "--path", "--fold-case", "\x1b[31m"]
        ),
        max_size=5,
    )
)
def test_random_words_do_not_crash_git_coord(words: list[str]) -> None:
    with _without_effect(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert coord.main(words) in (0, 2)


@contextlib.contextmanager
def _without_effect() -> Iterator[None]:
    def act(body: Callable[..., int], **_: object) -> int:
        return 0

    with mock.patch.object(coord, "act", act), mock.patch("gitcoord.cli.demo.main", lambda: 0):
        yield
