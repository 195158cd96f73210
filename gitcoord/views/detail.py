"""The detail of one subject: every row of the overview that is about it, in full, with its source."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import printable
from gitcoord.startup.annotations import Iterator
from gitcoord.terminal.screen import Row, ago
from gitcoord.views.render import Line, plain

_LISTS = (
    ("needs_you", "needs you"), ("needs_person", "needs a person"), ("early_warnings", "early warning"), ("claims", "claim"),
    ("waits", "request"), ("agents", "agent"), ("tasks", "task"), ("approvals", "approval"), ("deploys", "deploy"), ("contention", "hot spot"),
)  # fmt: skip
_NAMES = ("path", "agent", "id", "owner", "subject")
_TIMES = ("since", "at")
_WORDS = {"silent": "expired"}
_SECONDS = "_seconds"


def detail(model: Row, subject: str) -> list[Line]:
    """A heading for each row that is about this path, agent or task, and a line for each of its fields that is not empty."""
    lines = [plain(printable(subject), "bold")]
    for key, title in _LISTS:
        for row in model.get(key, ()):
            if _is_about(row, subject):
                lines += [plain(title, "yellow"), *_fields(row)]
    return lines if len(lines) > 1 else [*lines, plain("it is gone")]


def _is_about(row: Row, subject: str) -> bool:
    target = f"@deploy/{row['target']}" if "target" in row else ""
    return subject in (target, *(row.get(name) for name in _NAMES), *row.get("paths", ()))


def _fields(row: Row) -> Iterator[Line]:
    for key, value in row.items():
        if value:
            name = _WORDS.get(key, key.removesuffix(_SECONDS).replace("_", " "))
            yield Line(((f"  {name}: ", "dim"), (printable(_shown(key, value)), "")))


def _shown(key: str, value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name.removesuffix(_SECONDS)} {_shown(name, part)}" for name, part in value.items())
    if isinstance(value, list):
        return "; ".join(_shown("", part) for part in value)
    if value is True:
        return "yes"
    if isinstance(value, int) and key in _TIMES:
        return ago(value)
    return format_duration(value) if isinstance(value, int) and key.endswith(_SECONDS) else str(value)
