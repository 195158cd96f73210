"""No message, hint, hook or page that a command shows names a way around a gate."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

WAYS = re.compile(
    r"--no-verify(?!-surface)|core\.hookspath ?=|-c core\.hookspath|\.enabled ?=|the hooks off|(delete|remove) \$0",
    re.I,
)
EXCEPT = ("gitcoord/cli/demo/",)  # shows that the guard denies one
PAGES = ("gitcoord/guard/setup/files", "docs/man", "docs/completion", "githooks")


def sentences(source: str) -> Iterator[tuple[int, str]]:
    """The texts of a module that may be shown to somebody: strings of several words that are no docstrings."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if " " in node.value.strip():
                yield node.lineno, node.value


def named(lines: Iterator[tuple[int, str]]) -> list[str]:
    return [
        f"{number}: {text}" for number, text in lines if WAYS.search(text) and not text.lstrip(" -").startswith("Never")
    ]


def modules() -> list[str]:
    names = (str(path.relative_to(ROOT)) for path in sorted((ROOT / "gitcoord").rglob("*.py")))
    return [name for name in names if not name.startswith(EXCEPT)]


def test_no_message_names_a_way_around() -> None:
    found = {name: named(sentences((ROOT / name).read_text())) for name in modules()}
    assert {name: rows for name, rows in found.items() if rows} == {}


@pytest.mark.parametrize("place", PAGES)
def test_no_hook_and_no_page_names_a_way_around(place: str) -> None:
    files = [path for path in sorted((ROOT / place).rglob("*")) if path.is_file()]
    assert files
    found = {path.name: named(_lines(path)) for path in files}
    assert {name: rows for name, rows in found.items() if rows} == {}


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    yield from enumerate(path.read_text().replace("\\-", "-").splitlines(), 1)


@pytest.mark.parametrize(
    "text",
    [
        'hint("commit with git commit --no-verify")', 'hint(f"{x}: git -c core.hooksPath=/dev/null push")',
        'hint("git config hook.x.enabled=false")', 'hint("a person may do so with the hooks off")',
    ],
)  # fmt: skip
def test_ways_around_are_recognised(text: str) -> None:
    assert named(sentences(text))
