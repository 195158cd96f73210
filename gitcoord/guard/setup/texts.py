"""The texts that setup writes: the skill, the section for instructions, Cursor's rule and OpenCode's plugin."""

from __future__ import annotations

import re
from importlib.resources import files
from zlib import crc32

from gitcoord.guard.setup import sections

_RULE = "---\ndescription: Several writers change this repository at the same time\nalwaysApply: true\n---\n"
_MADE = "// Made by git coord setup, sum "
_FRONT = re.compile(r"---\n(?:[^\n]*\n)*?---\n\s*")


class Foreign(Exception):
    """A file of that name exists and is not gitcoord's."""


def section() -> str:
    return _file("section.md")


def skill() -> tuple[str, str]:
    """Front matter and body of the skill: some tools read the body only when they need it."""
    text = _file("SKILL.md")
    end = text.index("\n---\n", 4) + len("\n---\n")
    return text[:end], text[end:]


def rule() -> tuple[str, str]:
    return _RULE, section()


def put_section(text: str | None, front: str, body: str) -> str:
    """The file with front matter and our section; text that somebody added outside of the section stays."""
    if text is None:
        return front + sections.put(None, body)
    if sections.find(text) is None:
        raise Foreign("the file exists, and gitcoord did not write it")
    return sections.put(text, body)


def remove_section(text: str) -> str | None:
    """The file without our section; None if only front matter would be left. A file without a section is unchanged."""
    if sections.find(text) is None:
        return text
    rest = sections.take(text) or ""
    return None if _FRONT.fullmatch(rest.replace("\r\n", "\n").rstrip("\n") + "\n") else rest


def plugin(text: str | None) -> str:
    if text is not None and _is_edited(text):
        raise Foreign("somebody changed it, or gitcoord did not write it")
    body = _file("opencode.js")
    return f"{_MADE}{crc32(body.encode()):08x}; git coord teardown removes it\n{body}"


def remove_plugin(text: str) -> None:
    """The content without the plugin: None. Raises Foreign unless setup wrote it, in any version."""
    if _is_edited(text):
        raise Foreign("somebody changed it, or gitcoord did not write it")


def _is_edited(text: str) -> bool:
    """Return whether a user changed or replaced the plugin. An older version of ours is not edited."""
    first, _, body = text.partition("\n")
    return not first.startswith(f"{_MADE}{crc32(body.encode()):08x}")


def _file(name: str) -> str:
    return (files("gitcoord.guard.setup") / "files" / name).read_text("utf-8")
