"""The tables of shell commands: read, and run in a small repository. The tests and docs/guard-shell.md are made from them."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from gitcoord.shell.effects import KINDS
from gitcoord.shell.parse import analyse
from gitcoord.shell.paths import normal

HERE = Path(__file__).parent
MADE_WITH, HELD_OUT = HERE / "shell_table.txt", HERE / "shell_held_out.txt"
FILES = ("README.md", "Makefile", "package.json", "src/app.py", "src/util.py", "src/lib/a.c", "docs/a.md", "docs/b.md")

Found = frozenset[tuple[str, str]]  # kind and path


class Row(NamedTuple):
    section: str
    command: str
    effects: tuple[tuple[str, str], ...]  # as the table spells them
    line: int


def rows(file: Path) -> list[Row]:
    found: list[Row] = []
    section = ""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if line.startswith("== "):
            section = line[3:]
        elif line.startswith("$ "):
            found.append(Row(section, line[2:], (), number))
        elif line.startswith("> "):
            found[-1] = found[-1]._replace(command=f"{found[-1].command}\n{line[2:]}")
        elif line.startswith("  "):
            kind, _, path = line.strip().partition(" ")
            assert kind in KINDS, f"{file.name}:{number}"
            found[-1] = found[-1]._replace(effects=(*found[-1].effects, (kind, path)))
        else:
            assert not line or line.startswith("#"), f"{file.name}:{number}"
    return found


class Place:
    """A repository with a few files, all tracked and changed, and a HOME."""

    def __init__(self, path: Path) -> None:
        self.top, self.home = path / "repo", path / "home"
        for name in FILES:
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text("tracked\n")
        for directory in (self.top / "tests", self.home):
            directory.mkdir()
        for words in (["init", "-q", "--template="], ["add", "."]):
            subprocess.run(["git", *words], cwd=self.top, check=True)
        for name in FILES:
            (self.top / name).write_text("x\n")

    def resolved(self, path: str) -> str:
        if path == "?":
            return ""
        if path.startswith("/up/"):
            return normal(f"{self.top.parent}/{path[4:]}")
        if path.startswith("~/"):
            return normal(f"{self.home}/{path[2:]}")
        return normal(path if path.startswith("/") else f"{self.top}/{path}")

    def expected(self, row: Row) -> Found:
        return frozenset((kind, self.resolved(path)) for kind, path in row.effects)

    def answered(self, row: Row) -> Found:
        effects = analyse(row.command, cwd=str(self.top), home=str(self.home))
        return frozenset((effect.kind, effect.path) for effect in effects if effect.kind in KINDS)


class Score(NamedTuple):
    """Counts of effects of one kind: rightly found, wrongly found, missed."""

    right: int
    wrong: int
    missed: int

    def precision(self) -> str:
        return f"{100 * self.right / (self.right + self.wrong):.1f} %" if self.right + self.wrong else "-"

    def recall(self) -> str:
        return f"{100 * self.right / (self.right + self.missed):.1f} %" if self.right + self.missed else "-"


def scores(place: Place, table: list[Row]) -> dict[str, Score]:
    """Scores by kind, and 'all'; 'rows' counts whole rows that are right."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for row in table:
        expected, answered = place.expected(row), place.answered(row)
        right.update(kind for kind, _ in expected & answered)
        wrong.update(kind for kind, _ in answered - expected)
        missed.update(kind for kind, _ in expected - answered)
        (right if expected == answered else wrong).update(["rows"])
    found = {kind: Score(right[kind], wrong[kind], missed[kind]) for kind in (*KINDS, "rows")}
    found["all"] = Score(*(sum(found[kind][n] for kind in KINDS) for n in range(3)))
    return found
