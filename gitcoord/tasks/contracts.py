"""Contracts: the typed records by which work moves. An assignment goes out, `complete` or `failed` comes back.

A worker's record is checked here and kept in the task; `docs/schema/` has the same as JSON schema.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import UsageError
from gitcoord.base.names import is_oid, printable, quote
from gitcoord.base.texts import one_line, prose

MAX_ROWS = 200
TEXT, NOTES, LINES, COMMITS = "text", "notes", "lines", "commits"  # kinds of fields; notes may be empty
FIELDS = {
    "complete": {"summary": TEXT, "not_done": LINES, "done": LINES, "commits": COMMITS, "files": LINES, "notes": NOTES},
    "failed": {"reason": TEXT, "done": LINES, "notes": NOTES},
}
REQUIRED = {"complete": ("summary", "not_done"), "failed": ("reason",)}  # an empty `not_done` says that nothing is left


def checked_record(name: str, given: object) -> Record:
    """The record of this name that a worker hands in: checked, with all of its fields. UsageError where it is none."""
    hints = (f"see: git coord task schema {name}",)
    if not isinstance(given, dict):
        raise UsageError(f"a '{name}' record is a JSON object", hints=hints)
    if given.get("type", name) != name or given.get("v", 1) != 1:
        raise UsageError(f"this is not a '{name}' record of version 1")
    fields = FIELDS[name]
    for key, value in given.items():
        if key not in ("type", "v") and key not in fields:
            raise UsageError(f"'{name}': {quote(str(key)[:40])} is not known here", hints=hints)
        if key in fields and type(value) is not _type(fields[key]):
            what = "text" if _type(fields[key]) is str else "list"
            raise UsageError(f"'{name}': {quote(key)} is not a {what}", hints=hints)
    for key in REQUIRED[name]:
        if key not in given:
            why = ": what was not done must be said" if key == "not_done" else ""
            raise UsageError(f"'{name}' lacks '{key}'{why}", hints=hints)
    return {"type": name, "v": 1, **{key: _checked(given, key, kind) for key, kind in fields.items()}}


def _type(kind: str) -> type:
    return str if kind in (TEXT, NOTES) else list


def _checked(given: Record, key: str, kind: str) -> object:
    if _type(kind) is str:
        return prose(given.get(key, ""), key, empty=kind == NOTES)
    return _commits(given.get(key, [])) if kind == COMMITS else _lines(given.get(key, []), key)


def _lines(rows: list[object], what: str) -> list[str]:
    if len(rows) > MAX_ROWS:
        raise UsageError(f"'{what}' has more than {MAX_ROWS} lines")
    if not all(isinstance(row, str) for row in rows):
        raise UsageError(f"'{what}' is a list of texts")
    return [one_line(str(row), f"'{what}'", 1000) for row in rows]


def _commits(rows: list[object]) -> list[str]:
    found = _lines(rows, "commits")
    for row in found:
        if not is_oid(row):
            raise UsageError(f"'commits' holds what is no full commit id: {printable(row[:60])}")
    return found
