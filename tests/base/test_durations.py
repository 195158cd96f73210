"""Durations: as people write them, and as they are shown."""

from __future__ import annotations

import pytest

from gitcoord.base.durations import LONGEST, format_duration, parse_duration
from gitcoord.base.errors import UsageError


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0s"), (1, "1s"), (59, "59s"), (60, "1m"), (61, "1m1s"), (3600, "1h"), (3601, "1h"), (3660, "1h1m"), (5400, "1h30m"),
     (86400, "1d"), (86460, "1d"), (90000, "1d1h"), (366 * 86400, "366d")],
)  # fmt: skip
def test_durations_show_two_units(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("1s", 1),
        ("0" * 19 + "1", 1),
        ("30", 30),
        ("90s", 90),
        ("30m", 1800),
        ("1h30m", 5400),
        ("1d", 86400),
        ("7d", 604800),
        ("007s", 7),
    ],
)
def test_durations_as_people_write_them(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "h", "1h30", "1x", "-1", "1.5h", "1 h", "²", "1" * 21, f"{LONGEST + 1}"]
)
def test_no_durations(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


def test_the_longest_duration() -> None:
    assert parse_duration("366d") == LONGEST
