"""The tables of docs/guard-shell.md, made from the tables that the tests run: `python -m tests.guard.shelldoc` writes them."""

from __future__ import annotations

from pathlib import Path

from tests.guard.shelltable import HELD_OUT, MADE_WITH, Row, rows

PAGE = Path(__file__).parents[2] / "docs/guard-shell.md"
BEGIN, END = "<!-- made by tests/guard/shelldoc.py: {} -->", "<!-- end -->"


def _code(text: str) -> str:
    """A code span that a table's cell can hold."""
    shown = text.replace("\n", " ⏎ ").replace("\t", "⇥").replace("|", "\\|")
    ticks = "``" if "`" in shown else "`"
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _answer(row: Row) -> str:
    if not row.effects:
        return "neither"
    return ", ".join(kind if path == "?" else f"{kind} {_code(path)}" for kind, path in row.effects)


def table(file: Path) -> str:
    lines: list[str] = []
    section = ""
    for row in rows(file):
        if row.section != section:
            section = row.section
            lines += ["", f"**{section}**", "", "| command | answer |", "| --- | --- |"]
        lines.append(f"| {_code(row.command)} | {_answer(row)} |")
    return "\n".join([*lines, ""])


def page(text: str) -> str:
    """The page with its tables as they must be."""
    for file in (MADE_WITH, HELD_OUT):
        head, begin, rest = text.partition(BEGIN.format(file.stem))
        assert begin, file.stem
        _, end, tail = rest.partition(END)
        text = f"{head}{begin}\n{table(file)}\n{end}{tail}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
