"""The records by which work moves, as JSON schemas: `git coord task schema <record>`; `docs/schema/` has the same."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote
from gitcoord.base.texts import PROSE
from gitcoord.tasks.contracts import COMMITS, FIELDS, LINES, MAX_ROWS, NOTES, REQUIRED, TEXT
from gitcoord.tasks.model import PRIORITIES, STATES
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import put

Schema = dict[str, object]

_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": PROSE}
_NOTES: Schema = {"type": "string", "maxLength": PROSE}
_LINES: Schema = {
    "type": "array",
    "maxItems": MAX_ROWS,
    "items": {"type": "string", "minLength": 1, "maxLength": 1000},
}
_COMMITS: Schema = {
    "type": "array",
    "maxItems": MAX_ROWS,
    "items": {"type": "string", "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$"},
}
_NUMBER: Schema = {"type": "integer", "minimum": 0}
_WORD: Schema = {"type": "string"}


def _record(name: str, description: str) -> Schema:
    """The schema of a record that a worker hands in."""
    kinds = {TEXT: _TEXT, NOTES: _NOTES, LINES: _LINES, COMMITS: _COMMITS}
    return _object(name, description, {k: kinds[kind] for k, kind in FIELDS[name].items()}, list(REQUIRED[name]))


def _object(name: str, description: str, properties: Schema, required: list[str]) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "description": description,
        "type": "object", "properties": {"type": {"const": name}, "v": {"const": 1}, **properties},
        "required": required, "additionalProperties": False,
    }  # fmt: skip


_CLAIM: Schema = {
    "type": "object",
    "description": "A claim that was granted with the task, as 'git claim list --json' shows it.",
    "properties": {"path": _WORD, "token": _NUMBER, "mode": {"enum": ["read", "intent", "write"]}, "ttl_seconds": _NUMBER},
    "required": ["path", "token", "mode", "ttl_seconds"],
}  # fmt: skip
SCHEMAS: dict[str, Schema] = {
    "assignment": _object(
        "assignment",
        "What 'git coord task take --json' and 'task next --json' print as 'assignment'; 'task' beside it is the task.",
        {
            "id": {"type": "string", "pattern": "^t[1-9][0-9]*$"}, "agent": _WORD, "token": _NUMBER,
            "attempt": {"type": "integer", "minimum": 1}, "silence_seconds": {"type": "integer", "minimum": 1},
            "claims": {"type": "array", "items": _CLAIM},
        },
        ["type", "v", "id", "agent", "token", "attempt", "silence_seconds", "claims"],
    ),
    "complete": _record(
        "complete",
        "What a worker hands in with 'git coord task complete --result'. 'not_done' must be there: [] says nothing is left.",
    ),
    "failed": _record(
        "failed",
        "What a worker hands in with 'git coord task fail --result'.",
    ),
    "task": {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "task", "type": "object",
        "description": "A row of the list that 'git coord task add --from' reads.",
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 200}, "body": _NOTES, "priority": {"enum": list(PRIORITIES)},
            "needs": {"type": "array", "items": _WORD}, "paths": {"type": "array", "items": _WORD}, "line": _WORD, "role": _WORD,
            "next": _WORD, "expected": {"type": "string", "examples": ["30m", "2h"]}, "safe": {"type": "boolean"},
            "review": {"type": "boolean"}, "attempts": {"type": "integer", "minimum": 1}, "branch": _WORD, "key": _WORD, "owner": _WORD,
        },
        "required": ["title"], "additionalProperties": False, "x-states": list(STATES),
    },
}  # fmt: skip


def schema(call: Call, values: Values, words: list[str]) -> int:
    found = SCHEMAS.get(words[0])
    if found is None:
        raise UsageError(f"{quote(words[0][:40])} is no record", hints=(", ".join(SCHEMAS),))
    if call.screen.json:
        call.screen.answer({"schema": found})
    else:
        put(1, pretty(found) + "\n")
    return 0


def pretty(value: object, indent: str = "") -> str:
    """JSON for people: one key a line."""
    from gitcoord.base.codec import dumps

    if isinstance(value, dict) and value:
        rows = [f"{indent}  {dumps(key)}: {pretty(inner, indent + '  ')}" for key, inner in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    return dumps(value)
