"""Durations as people write them: 90s, 30m, 2h, 1d, 1h30m; a bare number is seconds."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_HINT = ("write it like 90s, 30m, 2h, 1h30m or 1d",)
LONGEST = 366 * 86400


def parse_duration(text: str, longest: int = LONGEST) -> int:
    """Seconds, from 1 to `longest`."""
    if not text or len(text) > 20 or not text.isascii():
        raise UsageError(f"{quote(text[:40])} is not a duration", hints=_HINT)
    total, digits = 0, ""
    for char in text:
        if char.isdigit():
            digits += char
        elif char in _UNITS and digits:
            total += int(digits) * _UNITS[char]
            digits = ""
        else:
            raise UsageError(f"{quote(text[:40])} is not a duration", hints=_HINT)
    if digits and digits != text:
        raise UsageError(f"{quote(text[:40])} is not a duration", hints=_HINT)
    total += int(digits or 0)
    if not 1 <= total <= longest:
        raise UsageError(f"{quote(text[:40])} is out of range: from 1s to {format_duration(longest)}", hints=_HINT)
    return total


def format_duration(seconds: int) -> str:
    """The two largest units: 1d4h, 29m30s, 12s."""
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        amount, seconds = divmod(seconds, size)
        if amount or parts:
            parts.append(f"{amount}{unit}" if amount else "")
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"
