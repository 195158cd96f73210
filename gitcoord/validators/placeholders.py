"""placeholders: nothing unfinished is deployed: TODO, TBD, FIXME, "coming soon", lorem ipsum."""

from __future__ import annotations

from gitcoord.base.names import printable
from gitcoord.startup.annotations import Iterable
from gitcoord.validators import BLOCK, Result, Validator

# Words match only in capitals and as whole words: not 'todo' or 'MASTODON'. Phrases match in any case.
WORDS = ("TODO", "TBD", "FIXME", "XXX")
PHRASES = ("coming soon", "lorem ipsum")
LONGEST = 1 << 20  # bytes of a file that are searched
_SHOWN = 10


def find(data: bytes, marks: Iterable[str] = ()) -> list[tuple[int, str]]:
    """(line, mark) of each line with a placeholder, and its first one. Binary files have none."""
    if b"\0" in data[:8192]:
        return []
    text = data[:LONGEST].decode("utf-8", "replace")
    folded = text.casefold()
    phrases = (*PHRASES, *(mark.casefold() for mark in marks if mark))
    if not any(word in text for word in WORDS) and not any(phrase in folded for phrase in phrases):
        return []
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        low = line.casefold()
        mark = next((word for word in WORDS if _has_word(line, word)), "") or next((p for p in phrases if p in low), "")
        if mark:
            found.append((number, mark))
    return found


def _has_word(line: str, word: str) -> bool:
    at = line.find(word)
    while at >= 0:
        before, after = line[at - 1 : at] if at else "", line[at + len(word) : at + len(word) + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            return True
        at = line.find(word, at + 1)
    return False


def judge(validator: Validator, files: Iterable[tuple[str, bytes]]) -> list[Result]:
    """One result for each of the first few files, and one that counts the rest."""
    marks = validator.every("mark")
    wrong = [(path, rows) for path, data in files if (rows := find(data, marks))]
    results = []
    for path, rows in wrong[:_SHOWN]:
        lines = ", ".join(f"line {number}: {printable(mark)}" for number, mark in rows[:3])
        more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
        results.append(
            validator.result(BLOCK, f"it is unfinished ({lines}{more})", ("finish it, or take it out",), path)
        )
    if len(wrong) > _SHOWN:
        results.append(validator.result(BLOCK, f"{len(wrong) - _SHOWN} more files are unfinished"))
    return results
