"""Effects of shell commands: the table, and commands that are broken, too long or too deep."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitcoord.base.errors import TimedOut
from gitcoord.shell import parse as bash
from gitcoord.shell import words
from gitcoord.shell.braces import braces
from gitcoord.shell.commands.dispatch import FAMILY
from gitcoord.shell.commands.table import TABLE as PLAIN
from gitcoord.shell.effects import FAILED, KINDS, UNKNOWN, FileEffect
from gitcoord.shell.glob import escape, matches
from gitcoord.shell.parse import analyse
from gitcoord.shell.state import NOT_KNOWN, ShellState, Value, value_of
from gitcoord.shell.syntax import BROKEN, Word
from tests.guard import shelldoc
from tests.guard.shelltable import HELD_OUT, MADE_WITH, Place, Row, rows, scores

ROOT = Path(__file__).parents[2]
TABLE = [*rows(MADE_WITH), *rows(HELD_OUT)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("shell"))


def _kinds(command: str) -> list[str]:
    return [effect.kind for effect in analyse(command, cwd="/repo", home="/home/me")]


def _details(command: str) -> str:
    return "\n".join(effect.detail for effect in analyse(command, cwd="/repo", home="/home/me"))


def test_the_tables(place: Place) -> None:
    wrong = [f"{row.line}: {row.command!r}" for row in TABLE if place.answered(row) != place.expected(row)]
    assert wrong == []


def test_every_sort_of_effect_is_in_the_table() -> None:
    assert len(rows(MADE_WITH)) >= 150
    assert len(rows(HELD_OUT)) >= 60
    assert {kind for row in TABLE for kind, _ in row.effects} == {*KINDS}
    assert any(not row.effects for row in TABLE)
    commands = [row.command for row in TABLE]
    assert len(commands) == len({*commands})


def test_a_wrong_row_is_noticed(place: Place) -> None:
    row = Row("", "rm src/app.py", (("write", "src/app.py"),), 0)
    assert place.answered(row) != place.expected(row)


def test_the_page_has_the_same_tables(place: Place) -> None:
    """Also the counts that it states. `python -m tests.guard.shelldoc` writes the tables."""
    text = shelldoc.PAGE.read_text()
    assert shelldoc.page(text) == text
    for file, name in ((MADE_WITH, "made with"), (HELD_OUT, "after these were fixed")):
        score = scores(place, rows(file))
        stated = next(line for line in text.splitlines() if line.startswith("| the one") and name in line)
        assert f"| {score['rows'].right} of {len(rows(file))} | {score['all'].right} | 100 % | 100 % |" in stated


def test_the_time_is_up_while_it_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout is no property of the command: the rest was not read, so it is not judged, rather than 'unknown'."""

    def late(command: str) -> None:
        raise TimedOut("it took too long")

    monkeypatch.setattr(bash, "parse", late)
    with pytest.raises(TimedOut):
        analyse("echo a; rm src/app.py", cwd="/repo", home="/home/me")


@pytest.mark.parametrize("long", ["echo " + "a " * 300_000, "cat <<EOF\n" + "a $x\n" * 100_000 + "EOF\n"])
def test_what_comes_behind_a_very_long_command(long: str) -> None:
    """Its words are not copied for each of them: that would take longer than any deadline."""
    found = analyse(f"{long}\necho x > b", cwd="/repo", home="/home/me")
    assert ("write", "/repo/b") in [(effect.kind, effect.path) for effect in found]


def test_what_an_effect_shows() -> None:
    assert analyse("cat < 'a b' | tee -a out", cwd="/repo", home="/home/me") == (
        FileEffect("read", "/repo/a b", "< 'a b'", "a redirection reads it"),
        FileEffect("write", "/repo/out", "out", "tee writes it"),
    )


# --- the parser in the bare interpreter ------------------------------------------------------------------------------


def _bare(body: str, *paths: Path) -> str:
    program = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}\nfrom gitcoord.shell.parse import analyse\n{body}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_parser_brings_no_heavy_module_along() -> None:
    import tree_sitter

    site = Path(tree_sitter.__file__).parents[1]
    body = (
        "print([(e.kind, e.path) for e in analyse('echo > a && rm b', cwd='/r', home='/h')])\n"
        "print(sorted(n for n in sys.modules if n in ('re', 'enum', 'typing', 'os', 'collections')))\n"
        "import re, enum; print(re.sub('a', 'b', 'a'), enum.IntEnum.__name__)"
    )
    assert _bare(body, ROOT, site) == "[('write', '/r/a'), ('delete', '/r/b')]\n[]\nb IntEnum\n"


def test_without_the_parser_nothing_is_taken_for_harmless() -> None:
    body = "print([(e.kind, e.detail) for e in analyse('echo hi; ls', cwd='/r', home='/h')])"
    assert "'unknown', 'the parser for shell commands cannot be loaded (ImportError)'" in _bare(body, ROOT)


def test_the_installed_command_finds_the_parser(tmp_path: Path) -> None:
    """As install.sh makes it: a bundle, a bare interpreter, and site-packages as the only further place."""
    from gitcoord.startup.bundle import build, program

    source = tmp_path / "source/gitcoord"
    for package in ("base", "git", "shell", "startup"):
        shutil.copytree(ROOT / "gitcoord" / package, source / package)
    (source / "cli").mkdir()
    (source / "cli/entry.py").write_text('"""What the bundle begins with."""\n')
    for name in ("__init__", "cli/__init__"):
        shutil.copy(ROOT / f"gitcoord/{name}.py", source / f"{name}.py")
    (tmp_path / "bundle").write_bytes(build(tmp_path / "source"))
    import tree_sitter

    site = Path(tree_sitter.__file__).parents[1]
    (tmp_path / "site").mkdir()
    for name in ("tree_sitter", "tree_sitter_bash"):
        (tmp_path / "site" / name).symlink_to(site / name)
    text = program(tmp_path / "site", tmp_path / "bundle", Path("python"), "claim")
    head = text.partition("from gitcoord.cli.entry")[0]
    body = (
        "gitcoord.preload('shell')\nfrom gitcoord.shell.parse import analyse\n"
        "print([(e.kind, e.path) for e in analyse('echo > a && git stash', cwd='/r', home='/h')])"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", head + body], capture_output=True, text=True, check=False)
    assert done.stdout == "[('write', '/r/a'), ('unknown', '/r')]\n", done.stderr


# --- broken, too long, too deep --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["if (", "rm 'a", "echo $(", "((", "cat <<EOF", ")", "a && && b", "for", "{", "`", "case x in", "a\0b"]
)
def test_what_cannot_be_parsed_is_said_to_be_so(command: str) -> None:
    assert UNKNOWN in _kinds(command)


def test_too_long() -> None:
    assert _kinds("rm a; " * 200_000) == [UNKNOWN]
    assert "too long" in _details("echo '" + "x" * (1 << 20) + "'")


@pytest.mark.parametrize(
    "command",
    [
        "(" * 500 + "rm a" + ")" * 500,
        "$(" * 500 + "rm a" + ")" * 500,
        "if true; then " * 500 + "rm a" + "; fi" * 500,
        "echo " + '"$(echo ' * 300 + "a" + ')"' * 300,
        "bash -c '" * 1 + "f() { g; }; g() { f; }; f" + "'",
        "sudo " * 500 + "rm a;",
        "eval " * 500 + "rm a;",
        "alias a=b b=a; a x",
        "; ".join(f"f{n}() {'{ ' * 15}f{n + 1}{'; }' * 15}" for n in range(60)) + "; f0",
    ],
)
def test_too_deep(command: str) -> None:
    assert UNKNOWN in _kinds(command)
    assert "could not be followed" not in _details(command)


@pytest.mark.parametrize(
    "command",
    [
        "for a in {1..9}; do for b in {1..9}; do for c in {1..9}; do for d in {1..9}; do rm $a$b$c$d; done; done; done; done",
        "touch {1..9}{1..9}{1..9}{1..9}{1..9}{1..9}",
        "rm " + "{a,b}" * 40,
        "rm " + "{" * 3000,
        "x=1; " + "if a; then x=$x$x; else x=2$x; fi; " * 200 + "rm $x",
        "while a; do x=$x/b; cd $x; rm $x; done",
        "a() { b; b; }; b() { c; c; }; c() { d; d; }; d() { e; e; }; e() { a; a; }; " + "a; " * 400,
        "; ".join(f"rm f{n}" for n in range(3000)),
    ],
)
def test_what_explodes_stays_bounded(command: str) -> None:
    effects = analyse(command, cwd="/repo", home="/home/me")
    assert any(effect.kind == UNKNOWN for effect in effects) or "while" not in command
    assert len(effects) <= 1001
    assert all(len(effect.word) <= 210 for effect in effects)
    assert "could not be followed" not in _details(command)


@pytest.mark.parametrize(
    "form", ["{0}", "{0} -x", "{0} -f", "{0} --", "{0} ''", "{0} | {0}", "sudo {0}", "find . -exec {0} ;"]
)
def test_a_command_with_nothing_to_do(form: str) -> None:
    """A program that is called without what it needs does nothing; that is no reason not to follow it."""
    for name in [*FAMILY, *PLAIN]:
        assert "could not be followed" not in _details(form.format(name)), name


def test_a_long_row_is_no_deep_one() -> None:
    assert _kinds(" && ".join(["rm a"] * 900)) == ["delete"]


def test_a_defect_lets_nothing_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(command: str) -> object:
        raise KeyError(command)

    monkeypatch.setattr(bash, "parse", broken)
    assert _kinds("rm a") == [FAILED]


def test_a_word_that_goes_on_into_the_next_line() -> None:
    """The grammar takes a line that begins with a backslash for more words of the line before."""
    found = analyse("echo a\n\\rm b", cwd="/repo", home="/home/me")
    assert [(effect.kind, effect.path) for effect in found] == [("delete", "/repo/b")]
    assert bash.parse("echo a\n\\rm b").kind != BROKEN


# --- the parts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*.py", "a.py", True), ("*.py", ".py", True), ("a?c", "abc", True), ("a?c", "ac", False), ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False), ("[[:digit:]]", "7", True), ("a\\*", "a*", True), ("a\\*", "ab", False), ("*a*b*", "xaxxbx", True),
        ("[", "[", True), ("", "", True), ("**", "", True), ("[]]", "]", True),
    ],
)  # fmt: skip
def test_patterns(pattern: str, name: str, fits: bool) -> None:
    assert matches(pattern, name) == fits


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=20))
def test_an_escaped_name_matches_itself_only(name: str) -> None:
    assert matches(escape(name), name)
    assert not matches(escape(name), name + "x")


@pytest.mark.parametrize(
    ("word", "texts"),
    [
        ("a{b,c}d", ["abd", "acd"]), ("{1..3}", ["1", "2", "3"]), ("{01..3}", ["01", "02", "03"]), ("{a..c}", ["a", "b", "c"]),
        ("{3..1}", ["3", "2", "1"]), ("{1..9..4}", ["1", "5", "9"]), ("{a}", ["{a}"]), ("{}", ["{}"]), ("x{a,{b,c}}", ["xa", "xb", "xc"]),
        ("{a,b", ["{a,b"]), ("{,x}", ["", "x"]), ("'{a,b}'", ["{a,b}"]), ("{a,'b,c'}", ["a", "b,c"]), ("{--5..2}", ["{--5..2}"]),
    ],
)  # fmt: skip
def test_braces_are_those_of_bash(word: str, texts: list[str]) -> None:
    made = ["".join(part.text for part in parts) for parts in braces(words.split_word(Word((word,), word)))]
    assert made == texts
    if "" not in texts:
        done = subprocess.run(["bash", "-c", f"printf '%s\\n' {word}"], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == texts


@pytest.mark.parametrize(
    "word",
    ["a\\ b", "'a b'", '"a b"', "$'a\\tb'", "$'\\x41\\102\\u0043\\e'", '"a\\$b\\"c\\d"', "a'b'\"c\"d", "'a'\\''b'", "$'it\\'s'", "$'\\cA'", "a\\\nb", '"a\\\nb"'],
)  # fmt: skip
def test_quotes_are_those_of_bash(word: str) -> None:
    made = "".join(part.text for part in words.split_word(Word((word,), word)))
    done = subprocess.run(["bash", "-c", f"printf '%s' {word}"], capture_output=True, text=True, check=True)
    assert made == done.stdout


def test_where_paths_meet() -> None:
    one, two = ShellState(("/a",), {"x": value_of("1")}), ShellState(("/b",), {"x": value_of("2"), "y": value_of("3")})
    met = ShellState((), {})
    met.merge([one, two])
    assert met.cwds == ("/a", "/b")
    assert met.variables == {"x": value_of("1", "2"), "y": NOT_KNOWN}
    lost = ShellState((), {})
    lost.merge([ShellState(("/a",), {}), ShellState((), {"x": Value((), ("/d",))})])
    assert lost.cwds == ()
    assert lost.variables == {"x": NOT_KNOWN}
