"""Texts of people and agents: what is refused, and that the rest is kept."""

from __future__ import annotations

import pytest

from gitcoord.base.errors import StoreError, UsageError
from gitcoord.base.texts import PROSE, one_line, prose

HOSTILE = {
    "escape": "\x1b[31mred",
    "bell": "a\x07",
    "null": "a\0b",
    "delete": "a\x7f",
    "C1": "a\x9bb",
    "carriage return inside": "safe\rrm -rf",
    "right to left override": "a\u202eb",
    "isolate": "a\u2066b",
    "left to right mark": "a\u200eb",
    "line separator": "a\u2028b",
    "zero width space": "a\u200bb",
    "byte order mark": "a\ufeffb",
    "lone surrogate": "a\udcffb",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_could_mislead_is_refused(text: str) -> None:
    for check in (one_line, prose):
        with pytest.raises(UsageError):
            check(text, "the title")


def test_size_and_emptiness() -> None:
    for text in ("", "  ", "x" * 201, "é" * 101):
        with pytest.raises(UsageError):
            one_line(text, "the title")
    for text in ("", "\n \n", "x" * (PROSE + 1), "x" * 10_000_000, "\n" * 10_000_000):
        with pytest.raises(UsageError):
            prose(text, "the body")
    assert one_line("", "the title", empty=True) == ""


def test_lines() -> None:
    with pytest.raises(UsageError):
        one_line("two\nlines", "the title")
    assert prose("\n\none  \r\n\n\ttwo\n", "the body") == "one\n\n\ttwo"


@pytest.mark.parametrize("text", ["---\nv: 1\n---", "[a](javascript:b)", "Seq: 1\nKind: kill", "日本語 👩‍💻 naïve"])
def test_what_is_only_odd_is_kept(text: str) -> None:
    assert prose(text, "the body") == text


def test_what_git_says_in_several_lines_is_one_message() -> None:
    """Else it would be printed with escapes in it."""
    said = "dubious ownership in 'x'\nTo add an exception, call:\n\n\tgit config --global --add safe.directory x\n"
    message = (
        "git failed: dubious ownership in 'x'; To add an exception, call: git config --global --add safe.directory x"
    )
    assert StoreError(f"git failed: {said}").message == message
    assert StoreError("plain;").message == "plain;"
