"""Many shell commands: those of this machine's scripts and those a grammar makes, mutations of them, and some run for real."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st

from gitcoord.shell.effects import BUILD, CAREFUL, FAILED, KINDS, SHARED, UNKNOWN, FileEffect
from gitcoord.shell.parse import analyse
from gitcoord.startup.treesitter import parser
from tests.guard import shell_recall, shellgen
from tests.guard.shelltable import HELD_OUT, MADE_WITH, rows

SOAK = bool(os.environ.get("GITCOORD_SOAK"))
MANY = 10_000
PLACES = ("/etc", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/share", "/var/lib/dpkg/info", "/usr/local")
ENDINGS = (".sh", ".bash", ".postinst", ".preinst", ".prerm", ".postrm")
STATEMENTS = ("command", "redirected_statement", "pipeline", "list", "for_statement", "while_statement", "if_statement",
              "case_statement", "subshell", "declaration_command", "test_command", "variable_assignment")  # fmt: skip


def _scripts() -> Iterator[bytes]:
    for place in PLACES:
        for top, directories, names in os.walk(place):
            directories.sort()
            for name in sorted(names):
                try:
                    with open(f"{top}/{name}", "rb") as file:
                        head = file.read(64) if name.endswith(ENDINGS) or "." not in name else b""
                        if name.endswith(ENDINGS) or head.startswith(b"#!") and b"sh" in head.partition(b"\n")[0]:
                            yield head + file.read(200_000)
                except OSError:
                    continue


def recorded(most: int) -> list[str]:
    """Distinct commands as they stand in scripts of this machine."""
    found: dict[str, None] = {}
    for script in _scripts():
        stack = [parser().parse(script).root_node]
        while stack:
            node = stack.pop()
            if node.type in STATEMENTS and node.end_byte - node.start_byte < 2000:
                found.setdefault(script[node.start_byte : node.end_byte].decode("utf-8", "replace"))
            stack += node.children
        if len(found) > most:
            break
    return list(found)[:most]


def _followed(command: str, cwd: str = "/nowhere/repo") -> tuple[FileEffect, ...]:
    """The effects; a defect would show as an exception that was caught."""
    effects = analyse(command, cwd=cwd, home="/nowhere/home")
    assert not any(effect.kind == FAILED for effect in effects), command
    kinds = (*KINDS, *SHARED, BUILD, CAREFUL)
    assert all(e.kind in kinds and (e.path == "" or e.path.startswith("/")) for e in effects), command
    return effects


def test_ten_thousand_commands_without_an_exception() -> None:
    commands = {*recorded(100_000 if SOAK else 4000)}
    for command in shellgen.commands(1, MANY, depth=2 if SOAK else 1):
        if len(commands) >= MANY and not SOAK:
            break
        commands.add(command)
    assert len(commands) >= MANY
    for command in sorted(commands):
        _followed(command)


# --- mutations -------------------------------------------------------------------------------------------------------

SEEDS = [row.command for file in (MADE_WITH, HELD_OUT) for row in rows(file)]
BITS = ("'", '"', "`", "$(", "${", "$((", ")", "}", "|", "&", ";", "\n", "<", ">", "<<EOF\n", "\\", "{a,b}", "{1..9}", "*", "[", "~", "\0", "é", "\ud800",
        "if ", "then ", "fi", "do ", "done", "function ", "() {", "bash -c ", "eval ", "xargs ", "cd ", "-", "--", "=", "$x", "$'\\x")  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 4))
        text = text[:at] + draw(st.sampled_from(("", *BITS))) + text[at + cut :]
    return text


@settings(max_examples=2000 if SOAK else 300, deadline=None)
@given(mutated())
def test_a_mutated_command_is_never_an_error(command: str) -> None:
    _followed(command)


def test_mutated_commands_where_files_are(tmp_path: Path) -> None:
    """In a repository with files, archives and patches, which the parser looks into. The long form holds that none takes a second."""
    shell_recall.tree(tmp_path)
    seeds = [row.command for row in shell_recall.rows()] + SEEDS
    random = Random(21)
    slowest = 0.0, ""
    for _ in range(10_000 if SOAK else 400):
        text = random.choice(seeds)
        for _ in range(random.randint(1, 4)):
            at = random.randint(0, len(text))
            other = random.choice(seeds)
            piece = random.choice(
                [*BITS, other[: random.randint(0, len(other))], "src/a.py", " | xargs rm", "find . -name '*' "]
            )
            text = text[:at] + piece + text[at + random.randint(0, 4) :]
        begun = process_time()
        _followed(text, str(tmp_path))
        slowest = max(slowest, (process_time() - begun, text))
    assert not SOAK or slowest[0] < 1, slowest


@settings(max_examples=1000 if SOAK else 150, deadline=None)
@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from(BITS)).map("".join), st.binary().map(lambda data: data.decode("latin-1"))
    )
)
def test_no_text_is_an_error(command: str) -> None:
    _followed(command)


# --- against the shell itself ----------------------------------------------------------------------------------------

FILES = ("a.txt", "b.txt", "src/app.py", "src/util.py", "docs/a.md", "docs/b c.md")
State = dict[str, tuple[int, bytes]]


def _state(top: Path) -> State:
    found: State = {}
    for place, directories, names in os.walk(top):
        for name in (*directories, *names):
            path = f"{place}/{name}"
            mode = os.lstat(path).st_mode
            if os.path.islink(path):
                content = os.readlink(path).encode()
            else:
                content = Path(path).read_bytes() if os.path.isfile(path) else b""
            found[path] = mode, content
    return found


def _covers(effect: FileEffect, path: str) -> bool:
    at_or_below = path == effect.path or path.startswith(effect.path + "/")
    return (
        at_or_below
        if effect.kind in ("write", "delete", "bypass")
        else effect.kind == UNKNOWN and (at_or_below or not effect.path)
    )


def _changed(top: Path, command: str) -> list[str]:
    before = _state(top)
    environment = {"PATH": os.environ["PATH"], "HOME": str(top / "home"), "LC_ALL": "C"}
    subprocess.run(
        ["bash", "-c", command],
        cwd=top / "work",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    after = _state(top)
    return [path for path in {*before, *after} if before.get(path) != after.get(path)]


def test_what_the_shell_changes_was_foretold(tmp_path: Path) -> None:
    """Every change is among the effects, or an unknown effect is reported; most are among the effects by name."""
    changes = by_name = 0
    for number, command in enumerate(shellgen.commands(9, 3000 if SOAK else 250, depth=3)):
        top = tmp_path / str(number)
        for name in FILES:
            (top / "work" / name).parent.mkdir(parents=True, exist_ok=True)
            (top / "work" / name).write_text("x\n")
        for name in ("work/build", "work/empty", "home"):
            (top / name).mkdir()
        effects = analyse(command, cwd=str(top / "work"), home=str(top / "home"))
        for path in _changed(top, command):
            # A directory on the way to a file that is written is no change of its own.
            if os.path.isdir(path) and any(effect.path.startswith(path + "/") for effect in effects):
                continue
            telling = [effect for effect in effects if _covers(effect, path)]
            assert telling, (command, path)
            changes += 1
            by_name += any(effect.kind != UNKNOWN for effect in telling)
    assert changes > 250
    assert by_name > 0.75 * changes


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    changed = _changed(tmp_path, "echo > a; echo > b")
    effects = analyse("echo > a", cwd=str(tmp_path / "work"), home="")
    assert [path for path in changed if not any(_covers(effect, path) for effect in effects)] == [
        str(tmp_path / "work/b")
    ]
