"""Edits of JSON settings as text: entries are added and removed, and every other byte stays.

Comments and trailing commas are understood and kept, since some tools allow them. What `append` puts in, `drop` takes out to the
byte: an entry that follows another goes right behind it; a container that was empty gets its first entry right behind its bracket;
a container that had to be made has white space there, and goes with its last entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

Path = Sequence[str | int]

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,:\[\]{}\"/]+")


class Unsafe(Exception):
    """The text cannot be edited without guessing; the message says why."""


class Node(NamedTuple):
    start: int
    end: int
    value: Any  # the parsed value
    items: list[Item] | None = None  # of an object or an array


class Item(NamedTuple):
    """One entry of a container: `start` is that of its key, where it has one."""

    start: int
    key: str
    node: Node
    comma: int  # the index of the comma behind it; -1 for none

    @property
    def end(self) -> int:
        return self.node.end


def parse(text: str) -> Node:
    """The text as a tree of spans. Unsafe where it is no JSON, or where two readers could differ."""
    reader = _Reader(text)
    try:
        node = reader.value(reader.blank(len(text) - len(text.lstrip("\ufeff"))))
    except (IndexError, RecursionError):
        raise Unsafe("it ends in the middle") from None
    if reader.blank(node.end) != len(text):
        raise Unsafe("something follows the settings")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def blank(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        assert found is not None  # it matches nothing, too
        return found.end()

    def value(self, at: int) -> Node:
        head = self.text[at]
        if head in "{[":
            return self._container(at, "}" if head == "{" else "]")
        found = (_STRING if head == '"' else _WORD).match(self.text, at)
        try:
            return Node(at, found.end(), json.loads(found.group(), parse_constant=_refuse)) if found else _refuse(head)
        except ValueError:
            raise Unsafe(f"line {self._line(at)} is no JSON") from None

    def _container(self, start: int, close: str) -> Node:
        items: list[Item] = []
        at = self.blank(start + 1)
        while self.text[at] != close:
            if items and items[-1].comma < 0:
                raise Unsafe(f"a comma is missing in line {self._line(at)}")
            begin, key = at, ""
            if close == "}":
                name = self.value(at)
                colon = self.blank(name.end)
                if not isinstance(name.value, str) or self.text[colon] != ":":
                    raise Unsafe(f"line {self._line(at)} is no JSON")
                key, at = name.value, self.blank(colon + 1)
            node = self.value(at)
            at = self.blank(node.end)
            comma = at if self.text[at] == "," else -1
            items.append(Item(begin, key, node, comma))
            at = at if comma < 0 else self.blank(at + 1)
        if close == "]":
            return Node(start, at + 1, [item.node.value for item in items], items)
        value = {item.key: item.node.value for item in items}
        if len(value) != len(items):
            raise Unsafe(f"a key stands twice in line {self._line(start)} and below")
        return Node(start, at + 1, value, items)

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1


def _refuse(word: str) -> Any:
    raise ValueError(word)


# --- in ---------------------------------------------------------------------------------------------------------------


def append(text: str, keys: Sequence[str], entry: object) -> str:
    """The text with `entry` as the last one of the array below `keys`; missing containers on the way are made."""
    node = parse(text)
    if not isinstance(node.value, dict):
        raise Unsafe("it is no object")
    for depth, key in enumerate(keys):
        wanted = "an object" if depth + 1 < len(keys) else "a list"
        found = next((item.node for item in node.items or () if item.key == key), None)
        if found is None:
            made: object = [entry]
            for name in reversed(keys[depth + 1 :]):
                made = {name: made}
            return _insert(text, node, json.dumps(key) + ": ", made)
        if not isinstance(found.value, dict if wanted == "an object" else list):
            raise Unsafe(f"'{'.'.join(keys[: depth + 1])}' is not {wanted}")
        node = found
    return _insert(text, node, "", entry)


def _insert(text: str, container: Node, key: str, value: object) -> str:
    items = container.items or []
    if not items:
        at = container.start + 1
        return text[:at] + key + _render(text, value, _indent(text, container.start)) + text[at:]
    last = items[-1]
    indent = _indent(text, last.start)
    alone = not text[: last.start].rpartition("\n")[2].strip() and "\n" in text[: last.start]
    piece = (f"{_newline(text)}{indent}" if alone else " ") + key + _render(text, value, indent)
    if last.comma >= 0:
        return text[: last.comma + 1] + piece + "," + text[last.comma + 1 :]
    return text[: last.end] + "," + piece + text[last.end :]


def _render(text: str, value: object, indent: str) -> str:
    """The value in the style of the file. Its containers begin with white space, by which `drop` recognises them."""
    if "\n" not in text.strip():
        return _flat(value)
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)}: {_flat(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[ " + ", ".join(map(_flat, value)) + " ]"
    return json.dumps(value, ensure_ascii=False)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str, at: int) -> str:
    line = text[:at].rpartition("\n")[2]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """The indentation of one level, taken from the first level of the file."""
    root = parse(text)
    return (_indent(text, root.items[0].start) if root.items else "") or "  "


# --- out --------------------------------------------------------------------------------------------------------------


def drop(text: str, path: Path) -> str:
    """The text without the entry at `path`, and without the containers that were made for it."""
    chain = [parse(text)]
    for step in path[:-1]:
        chain.append((chain[-1].items or [])[_place(chain[-1], step)].node)
    return _drop(text, chain, [_place(node, step) for node, step in zip(chain, path, strict=True)])


def _place(node: Node, step: str | int) -> int:
    if isinstance(step, int):
        return step
    return next(place for place, item in enumerate(node.items or ()) if item.key == step)


def _drop(text: str, chain: list[Node], places: list[int]) -> str:
    items, place = chain[-1].items or [], places[-1]
    item = items[place]
    if len(items) == 1 and len(chain) > 1 and item.start > chain[-1].start + 1:
        return _drop(text, chain[:-1], places[:-1])
    # Together with the white space before it, unless somebody wrote a comment there.
    gap = (items[place - 1].comma if place else chain[-1].start) + 1
    spans = [(item.start if text[gap : item.start].strip() else gap, item.end)]
    if item.comma >= 0:
        spans.append((item.comma, item.comma + 1))
    elif place:
        spans.append((gap - 1, gap))
    return _cut(text, spans)


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text
