"""Contracts: the typed records by which work moves. An assignment goes out, `complete` or `failed` comes back.

What a worker hands in is checked here and kept in the task as it was made; `docs/schema/` has the same as JSON schema.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import UsageError
from gitcoord.base.names import is_oid, printable, quote
from gitcoord.base.texts import one_line, prose

MAX_ROWS = 200
_COMPLETE: dict[str, type] = {"summary": str, "not_done": list}
_COMPLETE_MORE: dict[str, type] = {"done": list, "commits": list, "files": list, "notes": str}
_FAILED: dict[str, type] = {"reason": str}
_FAILED_MORE: dict[str, type] = {"done": list, "notes": str}


def complete_record(given: object) -> Record:
    """The record of finished work. `not_done` is required; an empty list means that nothing is left."""
    record = _shaped(given, "complete", _COMPLETE, _COMPLETE_MORE)
    return {
        "type": "complete",
        "v": 1,
        "summary": prose(record["summary"], "summary"),
        "not_done": _lines(record["not_done"], "not_done"),
        "done": _lines(record.get("done", []), "done"),
        "commits": _commits(record.get("commits", [])),
        "files": _lines(record.get("files", []), "files"),
        "notes": prose(record.get("notes", ""), "notes", empty=True),
    }


def failed_record(given: object) -> Record:
    record = _shaped(given, "failed", _FAILED, _FAILED_MORE)
    return {
        "type": "failed",
        "v": 1,
        "reason": prose(record["reason"], "reason"),
        "done": _lines(record.get("done", []), "done"),
        "notes": prose(record.get("notes", ""), "notes", empty=True),
    }


def _shaped(given: object, name: str, needed: dict[str, type], more: dict[str, type]) -> Record:
    if not isinstance(given, dict):
        raise UsageError(f"a '{name}' record is a JSON object", hints=(f"see: git coord task schema {name}",))
    record = {key: value for key, value in given.items() if key not in ("type", "v")}
    if given.get("type", name) != name or given.get("v", 1) != 1:
        raise UsageError(f"this is not a '{name}' record of version 1")
    for key, value in record.items():
        kind = needed.get(key) or more.get(key)
        if kind is None or type(value) is not kind:
            what = "is not known here" if kind is None else f"is not a {'list' if kind is list else 'text'}"
            raise UsageError(f"'{name}': {quote(str(key)[:40])} {what}", hints=(f"see: git coord task schema {name}",))
    for key in needed:
        if key not in record:
            raise UsageError(
                f"'{name}' lacks '{key}'" + (": what was not done must be said" if key == "not_done" else ""),
                hints=(f"see: git coord task schema {name}",),
            )
    return record


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
