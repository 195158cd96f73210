"""changelog: a change that users notice adds a line to the changelog."""

from __future__ import annotations

from gitcoord.base.names import printable, shell_word
from gitcoord.startup.annotations import Iterable
from gitcoord.validators import BLOCK, Result, Validator

FILE = "CHANGELOG.md"
_SHOWN = 3


def file_of(validator: Validator) -> str:
    return validator.get("file", FILE)


def has_new_line(old: bytes, new: bytes) -> bool:
    """Return whether a line with words was added. Moving lines adds none."""
    before: dict[bytes, int] = {}
    for line in old.split(b"\n"):
        before[line.strip()] = before.get(line.strip(), 0) + 1
    for line in new.split(b"\n"):
        word = line.strip()
        if not word.strip(b"#-*=_ "):
            continue
        if not before.get(word):
            return True
        before[word] -= 1
    return False


def judge(validator: Validator, concerned: Iterable[str], old: bytes, new: bytes) -> Result | None:
    """`concerned`: the changed paths that the section names; `old`, `new`: the changelog's content."""
    file = file_of(validator)
    paths = sorted(path for path in concerned if path != file)
    if not paths or has_new_line(old, new):
        return None
    message = f"{first_paths(paths)} changed, and {printable(file)} has no new line"
    return validator.result(BLOCK, message, (f"say what users notice, in {shell_word(file)}",))


def first_paths(paths: list[str]) -> str:
    """The first few paths, for a message."""
    shown = ", ".join(map(printable, paths[:_SHOWN]))
    return shown + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
