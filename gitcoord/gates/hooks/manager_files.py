"""Edits of a hook manager's own files, so that it asks gitcoord: husky's scripts, lefthook's and pre-commit's YAML.

The edits are made as text: every other byte of the file stays. A file in a form that is not known here is not edited.
"""

from __future__ import annotations

from gitcoord.gates.hooks.files import look
from gitcoord.gates.hooks.managers import (
    HUSKY,
    LEFTHOOK,
    PRE_COMMIT,
    Managed,
    calls_hook,
    lefthook_command,
    line_for,
    pre_commit_item,
)
from gitcoord.git.files import is_link
from gitcoord.startup.namedtuple import NamedTuple

_YAML = (".yml", ".yaml")


class FileEdit(NamedTuple):
    """One file, its old content (None: there is none), its new one, and the lines that are added."""

    name: str
    before: bytes | None
    after: bytes
    added: list[str]


def plan_edits(top: str, managed: Managed) -> tuple[list[FileEdit], list[str]]:
    """The edits that are missing, and the files that have to be edited by hand."""
    if managed.manager == HUSKY:
        found = [_script(top, event) for event in managed.events]
        edits = [edit for edit in found if isinstance(edit, FileEdit)]
        return edits, [name for name in found if isinstance(name, str) and name]
    if managed.manager not in (LEFTHOOK, PRE_COMMIT):
        return [], []
    name = managed.file
    before = look(f"{top}/{name}")
    if not name.endswith(_YAML) or is_link(f"{top}/{name}") or b"\t" in (before or b""):
        return [], [name]
    lines = (before or b"").decode("utf-8", "surrogateescape").split("\n")
    missing = [event for event in managed.events if not calls_hook(before or b"", event)]
    if not missing:
        return [], []
    if managed.manager == PRE_COMMIT and len(missing) < len(managed.events):
        return [], [name]
    added = _add_to_lefthook(lines, missing) if managed.manager == LEFTHOOK else _add_to_pre_commit(lines)
    if not added:
        return [], [name]
    return [FileEdit(name, before, "\n".join(lines).encode("utf-8", "surrogateescape"), added)], []


def files_that_ask(top: str, managed: Managed) -> list[str]:
    """The manager's own files that ask gitcoord."""
    names = dict.fromkeys((managed.file_of(event), event) for event in managed.events)
    found = [name for name, event in names if name and calls_hook(look(f"{top}/{name}") or b"", event)]
    return list(dict.fromkeys(found))


def plan_removals(top: str, managed: Managed) -> tuple[list[FileEdit], list[str]]:
    """The edits that take our lines out again, and the places (`file:line`) of those that were changed since."""
    edits: list[FileEdit] = []
    left: list[str] = []
    for name in files_that_ask(top, managed):
        before = look(f"{top}/{name}") or b""
        lines = before.decode("utf-8", "surrogateescape").split("\n")
        removed = _take_out(lines, managed)
        after = "\n".join(lines).encode("utf-8", "surrogateescape")
        if removed:
            edits.append(FileEdit(name, before, after, removed))
        asking = [any(calls_hook(line, event) for event in managed.events) for line in after.split(b"\n")]
        left += [f"{name}:{number}" for number, asks in enumerate(asking, 1) if asks]
    return edits, left


def _take_out(lines: list[str], managed: Managed) -> list[str]:
    """Take our lines out where they are as they were written. Gives the lines that are gone."""
    if managed.manager == PRE_COMMIT:
        removed, place = _cut(lines, pre_commit_item())
        if removed and lines[place - 1].rstrip() == "repos:" and _is_childless(lines, place - 1):
            lines[place - 1] = "repos: []"
        return removed
    gone: list[str] = []
    for event in managed.events:
        if managed.manager == HUSKY:
            gone += [line for line in lines if line == line_for(event)]
            lines[:] = [line for line in lines if line != line_for(event)]
            continue
        removed, place = _cut(lines, lefthook_command(event))
        for key in ("commands:", f"{event}:") if removed else ():
            if place and lines[place - 1].strip() == key and _is_childless(lines, place - 1):
                place -= 1
                removed.insert(0, lines.pop(place))
        gone += removed
    return gone


def _cut(lines: list[str], block: list[str]) -> tuple[list[str], int]:
    """Remove these lines, at whatever depth, unless more belongs to their first one. Gives them, and where they were."""
    for start, text in enumerate(lines):
        end = start + len(block)
        if lines[start:end] == [" " * _indent(text) + line for line in block]:
            if _block(lines, start) > end and any(map(_counts, lines[end : _block(lines, start)])):
                return [], 0
            removed = lines[start:end]
            del lines[start:end]
            return removed, start
    return [], 0


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _is_childless(lines: list[str], place: int) -> bool:
    inner = [text for text in lines[place + 1 : _block(lines, place)] if _counts(text)]
    # The items of a list may stand as deep as its key.
    after = [text for text in lines[place + 1 :] if _counts(text)][:1]
    return not inner and not (after and after[0].startswith(" " * _indent(lines[place]) + "- "))


def _script(top: str, event: str) -> FileEdit | str:
    """The edit of one script of husky; its name where it has to be edited by hand, '' where nothing is missing."""
    name, line = f".husky/{event}", line_for(event)
    before = look(f"{top}/{name}")
    if before is None:
        return FileEdit(name, None, f"#!/bin/sh\n{line}\n".encode(), ["#!/bin/sh", line])
    if calls_hook(before, event):
        return ""
    lines = before.decode("utf-8", "surrogateescape").split("\n")
    if is_link(f"{top}/{name}") or (lines[0].startswith("#!") and not lines[0].rstrip().endswith("sh")):
        return name
    if event == "pre-push" and any(text.strip() for text in lines):
        # git-claim reads the list of refs: a command before it may need it, and one that ends the script would skip it.
        if any(text.split()[:1] in (["exit"], ["exec"]) for text in lines):
            return name
        place = len(lines) - 1 if not lines[-1] else len(lines)
    else:
        heads = [i for i, text in enumerate(lines) if text and not text.startswith(("#", ". "))]
        place = heads[0] if heads else len(lines) - 1
    lines.insert(place, line)
    text = "\n".join(lines)
    return FileEdit(
        name, before, (text if text.endswith("\n") else text + "\n").encode("utf-8", "surrogateescape"), [line]
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _block(lines: list[str], start: int) -> int:
    """The index after the lines that belong to the key at `start`."""
    depth = _indent(lines[start])
    for index in range(start + 1, len(lines)):
        text = lines[index]
        if text.strip() and not text.lstrip().startswith("#") and _indent(text) <= depth:
            return index
    return len(lines)


def _key(lines: list[str], name: str, start: int, end: int, depth: int) -> int | None:
    """The index of the line `name:` of this depth, without a value on the same line."""
    for index in range(start, end):
        text = lines[index].partition(" #")[0].rstrip()
        if text.strip() in (f"{name}:", f'"{name}":', f"'{name}':") and _indent(text) == depth:
            return index
    return None


def _child_depth(lines: list[str], start: int, end: int) -> int:
    inner = [text for text in lines[start + 1 : end] if text.strip() and not text.lstrip().startswith("#")]
    return _indent(inner[0]) if inner else _indent(lines[start]) + 2


def _add_to_lefthook(lines: list[str], events: list[str]) -> list[str]:
    """Add the command 'gitcoord' to each hook. Gives the added lines; none where a hook is written in another form."""
    if any(text.startswith(f"{event}:") and _key([text], event, 0, 1, 0) is None for text in lines for event in events):
        return []
    added: list[str] = []
    for event in events:
        command, hook = lefthook_command(event), _key(lines, event, 0, len(lines), 0)
        if hook is None:
            new = [f"{event}:", "  commands:", *(f"    {line}" for line in command)]
            while lines and not lines[-1].strip():
                lines.pop()
            lines += [*new, ""]
        else:
            end = _block(lines, hook)
            depth = _child_depth(lines, hook, end)
            commands = _key(lines, "commands", hook + 1, end, depth)
            new = [] if commands is not None else [" " * depth + "commands:"]
            place = hook if commands is None else commands
            inner = depth + 2 if commands is None else _child_depth(lines, commands, _block(lines, commands))
            new += [" " * inner + line for line in command]
            lines[place + 1 : place + 1] = new
        added += new
    return added


def _add_to_pre_commit(lines: list[str]) -> list[str]:
    """Add the local hooks as the first item of `repos`. Gives the added lines; none where the list has another form."""
    for index, text in enumerate(lines):
        if text.partition(" #")[0].replace(" ", "") == "repos:[]":
            lines[index] = "repos:"
    place = _key(lines, "repos", 0, len(lines), 0)
    if place is None:
        return []
    items = [text for text in lines[place + 1 :] if text.lstrip().startswith("- repo:")]
    depth = _indent(items[0]) if items else 0
    added = [" " * depth + line for line in pre_commit_item()]
    lines[place + 1 : place + 1] = added
    return added
