"""Regular expressions of grep, rg and find. Loaded only where a command has one: `re` takes longer than a whole verdict."""

from __future__ import annotations

import re

from gitcoord.startup.annotations import Callable


def by_expression(pattern: str, *, fixed: bool, basic: bool, folds: bool, words: bool) -> Callable[[str], bool] | None:
    """Whether a line has the pattern; None where that is not tried."""
    if folds:
        pattern = pattern.lower()
    text = re.escape(pattern) if fixed else _from_basic(pattern) if basic else pattern
    repeats = text.count("*") + text.count("+") + text.count("{")
    if len(text) > 200 or repeats > 2 or any(f"){mark}" in text for mark in "*+{"):
        return None  # it could take very long
    try:
        found = re.compile(rf"\b(?:{text})\b" if words else text)
    except (re.error, OverflowError, RecursionError):
        return None
    return lambda line: found.search((line.lower() if folds else line)[:300]) is not None


def _from_basic(pattern: str) -> str:
    """A basic regular expression, in which brackets and the like count with a backslash."""
    out, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and pattern[at + 1 : at + 2] in tuple("(){}|+?"):
            out.append(pattern[at + 1])
            at += 1
        elif char == "\\":
            out.append(pattern[at : at + 2])
            at += 1
        else:
            out.append("\\" + char if char in "(){}|+?" else char)
        at += 1
    return "".join(out)
