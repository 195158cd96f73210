"""`git coord task add` and `update`: the content of a task, from options or a file."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import UsageError
from gitcoord.base.names import check_agent, printable, quote
from gitcoord.claims import pathspec as paths
from gitcoord.tasks import service as tasks
from gitcoord.tasks.events.task import New
from gitcoord.terminal.call import Call, duration, number, texts
from gitcoord.terminal.input import json_from, text_from
from gitcoord.terminal.parser import Values


def add(call: Call, values: Values, words: list[str]) -> int:
    if bool(words) == ("from" in values):
        raise UsageError("one title, or --from a file", hints=("git coord task add 'Fix the login page'",))
    rows = _from_file(call, str(values["from"])) if "from" in values else (_new(call, values, " ".join(words)),)
    result = tasks.add(call.ctx, call.actor(), rows)
    call.screen.answer(result)
    call.warn(result)
    known: list[str] = result["known"]  # type: ignore[assignment]
    for row in result["tasks"]:  # type: ignore[attr-defined]
        verb = "known already:" if row["id"] in known else "added"
        call.screen.say(f"{verb} {call.screen.paint(row['id'], 'bold')} {printable(row['title'])}")
    return 0


def _new(call: Call, values: Values, title: str) -> New:
    from gitcoord.tasks.events.task import New

    content = _content(call, values)
    content.update(title=title, needs=tuple(texts(values, "need")), paths=tuple(content.get("paths", ())))
    content.update(safe="unsafe" not in values, review="review" in values)
    return New(**content, key=str(values.get("key", "")), owner=str(values.get("owner", "")))


def _content(call: Call, values: Values) -> Record:
    """The fields of a task that the options give."""
    found: Record = {}
    for option in ("title", "priority", "line", "role", "next", "branch"):
        if option in values:
            found[option] = str(values[option])
    if "body" in values:
        found["text"] = text_from(str(values["body"]))
    if "expect" in values:
        found["expected"] = duration(values, "expect")
    if "attempts" in values:
        found["limit"] = number(values, "attempts")
    if "path" in values:
        found["paths"] = list(paths.items(call.ctx.repo, texts(values, "path")))
    return found


_KEYS = {"title": str, "body": str, "priority": str, "needs": list, "paths": list, "line": str, "role": str, "next": str,
         "expected": str, "safe": bool, "review": bool, "attempts": int, "branch": str, "key": str, "owner": str}  # fmt: skip


def _from_file(call: Call, name: str) -> tuple[New, ...]:
    from gitcoord.base.durations import parse_duration
    from gitcoord.tasks.events.task import New

    given = json_from(name)
    if not isinstance(given, list):
        raise UsageError("the file holds no list of tasks", hints=('[{"title": "...", "paths": ["src/a.py"]}, ...]',))
    rows = []
    for index, row in enumerate(given):
        if not isinstance(row, dict) or "title" not in row:
            raise UsageError(f"task {index + 1} of the file has no title")
        for key, value in row.items():
            if type(value) is not _KEYS.get(key):
                raise UsageError(f"task {index + 1} of the file: {quote(key[:40])} is unknown or of the wrong type")
        found = {key: row[key] for key in row if key not in ("body", "attempts", "expected", "needs", "paths")}
        if "expected" in row:
            found["expected"] = parse_duration(row["expected"])
        if "attempts" in row:
            found["limit"] = row["attempts"]
        found["needs"] = tuple(map(str, row.get("needs", ())))
        found["paths"] = paths.items(call.ctx.repo, list(map(str, row.get("paths", ()))))
        rows.append(New(**found, text=row.get("body", "")))
    return tuple(rows)


def update(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.tasks.cli import revise

    content = {
        key: [list(item) for item in value] if key == "paths" else value
        for key, value in _content(call, values).items()
    }
    if "need" in values:
        content["needs"] = texts(values, "need")
    for option, key in (("no-needs", "needs"), ("no-paths", "paths")):
        if option in values:
            if key in content:
                raise UsageError(f"--{option} and its opposite")
            content[key] = []
    for option in ("safe", "review"):
        if option in values:
            content[option] = values[option] == "yes"
    owner = check_agent(str(values["owner"])) if values.get("owner") else ""
    if not content and not owner:
        raise UsageError("nothing to change was named", hints=("git coord task update -h",))
    return revise(call, values, words[0], "assigned" if owner else "", "updated", content=content, owner=owner)
