"""README and pages: their commands are understood, the picture is what the commands print, and the words are the project's."""

from __future__ import annotations

import ast
import re
import shlex
from html import unescape
from pathlib import Path

import pytest

from gitcoord.cli.table import COMMANDS, expand, table_of
from gitcoord.terminal.parser import parse
from tests.picture import FILE, record, without_colours
from tests.support import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_on_a_page_exists(page: Path) -> None:
    for command, word in re.findall(r"(?:`|^|\$ )git (coord|handoff) ([a-z-]+)", page.read_text(), re.M):
        assert any(name.split()[0] == word for name in table_of(command)), f"git {command} {word}"


def test_the_commands_of_the_readme_are_understood() -> None:
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S))
    parts = [part for line in blocks.splitlines() for part in line.partition(" #")[0].split(" && ")]
    commands = [words[1:] for part in parts if (words := shlex.split(part))[:1] == ["git"] and words[1] in COMMANDS]
    assert len(commands) > 5
    for command, *words in commands:
        parse(table_of(command), expand(command, words))


def _shape(line: str) -> str:
    """A line without what differs from run to run: times, ids, and the columns that these move."""
    line = re.sub(r"[0-9a-f]{12}", "ID", line)
    return re.sub(r" +", " ", re.sub(r"\d+[hms](\d+s)?( ago| left)?|\bnow\b(?!:)", "TIME", line)).strip()


def test_the_picture_is_what_the_commands_print() -> None:
    """To update it: python -m tests.picture."""
    shown = [unescape(re.sub("<[^>]*>", "", text)) for text in re.findall(r"<text[^>]*>(.*?)</text>", FILE.read_text())]
    now = [without_colours(line) for line in record()]
    assert [_shape(line) for line in shown] == [_shape(line) for line in now if line]


def test_every_link_leads_somewhere() -> None:
    pages = {page: page.read_text() for page in PAGES}
    headings = {
        page: {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines() if line.startswith("#")}
        for page, text in pages.items()
    }  # fmt: skip
    for page, text in pages.items():
        for target, anchor in re.findall(r"\]\(((?!https?:)[^)#]*)(?:#([^)]*))?\)", text):
            found = (page.parent / target).resolve() if target else page
            assert found.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in headings.get(found, {anchor}), f"{page.name}: {target}#{anchor}"


# --- words ------------------------------------------------------------------------------------------------------------

# Riddles and second words for one thing; docs/glossary.md has the words to use.
BANNED = re.compile(
    r"\b(f[ae]lls? silent|heard of|stands? in the way|stand beside|told .not now.|sync branch|heal(s|ed)?|mend(s|ed)?|"
    r"that (is|are) no files?|unless (given|set|said)|whoever)\b",
    re.IGNORECASE,
)
MEN = sorted((ROOT / "docs/man").iterdir())


@pytest.mark.parametrize("page", [*PAGES, *MEN], ids=lambda page: page.name)
def test_a_page_uses_the_projects_words(page: Path) -> None:
    assert [line for line in page.read_text().splitlines() if BANNED.search(line)] == []


def _texts(source: str) -> list[str]:
    """The texts in a module that are no docstrings: messages, help and templates."""
    tree = ast.parse(source)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in alone]
    return [node.value for node in nodes if isinstance(node.value, str)]


def test_messages_use_the_projects_words() -> None:
    for module in (ROOT / "gitcoord").rglob("*.py"):
        for text in _texts(module.read_text()):
            assert not BANNED.search(text), f"{module.relative_to(ROOT)}: {text[:100]}"


def test_the_check_of_words_can_fail() -> None:
    assert BANNED.search("a holder that fell silent") and not BANNED.search("recommend, untold, a file")


# Work is released when it has landed; `land` does that.
EARLY = re.compile(
    r"(as soon as|once|when) the work is committed|\bcommit it and release|Then release it", re.IGNORECASE
)
SHIPPED = [
    *PAGES,
    *MEN,
    *(path for path in (ROOT / "gitcoord").rglob("*") if path.suffix in (".md", ".js", ".py", ".toml")),
]


def test_no_text_says_that_committed_work_is_released() -> None:
    assert [path for path in SHIPPED if EARLY.search(" ".join(path.read_text().split()))] == []
    for name in ("SKILL.md", "section.md"):
        assert "git coord land" in (ROOT / "gitcoord/guard/setup/files" / name).read_text()


PUZZLE = re.compile(r'^ *r?"""(What|Who|Whoever|Whom|Whose)\b.*', re.MULTILINE)


@pytest.mark.parametrize("package", ["gitcoord", "tests"])
def test_a_docstring_names_the_thing(package: str) -> None:
    """It begins with a noun or a verb, not with a question word."""
    for module in (ROOT / package).rglob("*.py"):
        assert PUZZLE.findall(module.read_text()) == [], module


def test_the_index_of_decisions_names_every_page() -> None:
    folder = ROOT / "docs/adr"
    index = (folder / "README.md").read_text()
    assert [path.name for path in folder.glob("0*.md") if f"]({path.name})" not in index] == []
