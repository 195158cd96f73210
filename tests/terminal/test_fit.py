"""Text that fits a terminal: wide characters, names shortened in the middle, columns that give."""

from __future__ import annotations

import pytest

from gitcoord.terminal.fit import columns, cut, fitted, padded, shortened, shrunk, wrapped


def test_columns_of_wide_and_combining_characters() -> None:
    assert [columns(text) for text in ("abc", "日本", "e\u0301", "ｱ")] == [3, 4, 1, 1]
    assert padded("日本", 6) == "日本  "


@pytest.mark.parametrize("width", range(1, 30))
@pytest.mark.parametrize("text", ["docs/very/long/path/guide.md", "src/日本語のファイル名.py", "日" * 20])
def test_nothing_gets_wider_than_it_may(text: str, width: int) -> None:
    assert columns(shortened(text, width)) <= width and columns(cut(text, width)) <= width


def test_a_path_keeps_its_end_and_its_beginning() -> None:
    assert shortened("docs/very/long/path/guide.md", 15) == "docs/…/guide.md"
    assert shortened("src/a.py", 8) == "src/a.py" and cut("abcdef", 4) == "abc…"


def test_names_and_free_text_give_before_what_is_between() -> None:
    assert shrunk([60, 8, 10, 40], 80) == [28, 8, 10, 28]
    assert shrunk([10, 8], 80) == [10, 8]
    assert shrunk([20, 30, 20], 50) == [14, 16, 16], "then those between, down to what can be read"


def test_a_table_fits_with_all_its_columns() -> None:
    rows = [["日" * 40, "alice", "x" * 50], ["a", "bob", ""]]
    for row in fitted(rows, 60):
        assert columns("  ".join(row)) <= 60 and len(row) == 3
    assert fitted(rows[1:], 0) == [["a", "bob", ""]]


def test_a_column_that_could_not_be_read_is_left_out() -> None:
    cells = ["src/checkout/handler.py", "alice", "29m left", "33s ago", "the reason"]
    for room, shown in ((46, [*cells[1:4], "the r…"]), (42, cells[1:4]), (36, cells[1:3])):
        (row,) = fitted([cells], room)
        assert [cell.rstrip() for cell in row[1:]] == shown, "whole, or not at all"


def test_words_are_wrapped() -> None:
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("one two three", 0) == ["one two three"]
    assert wrapped(f"see {'x' * 30} now", 10) == ["see", shortened("x" * 30, 10), "now"]
    assert wrapped(f"see {'x' * 12} now", 10, whole=True) == ["see", "x" * 10, "xx now"]
    assert wrapped("日" * 12, 10, whole=True) == ["日" * 5, "日" * 5, "日" * 2]
