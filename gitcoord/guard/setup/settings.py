"""gitcoord's hooks in a tool's JSON settings: added beside those of others, and removed again to the byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gitcoord.guard.setup import jsontext
from gitcoord.guard.setup.jsontext import Unsafe
from gitcoord.guard.setup.known import COMMAND, SHELL, Known


def put(text: str | None, known: Known) -> str:
    """The settings with our hooks; unchanged if they have them already. None: there is no file yet."""
    if text is None or (_is_whole(text, known) and _owned(text) != known.hooks):
        return snippet(known) + "\n"
    if _owned(text) == known.hooks:
        return text
    text = _without(text)
    for event, entry in known.hooks.items():
        text = jsontext.append(text, ("hooks", event), entry)
    return text


def take(text: str, known: Known) -> str | None:
    """The settings without our hooks; None if the file was made for them and has nothing else."""
    return None if _is_whole(text, known) else _without(text)


def snippet(known: Known) -> str:
    """Settings for a person to add by hand. `hooks` comes first, which `put` does to no existing file."""
    hooks = {event: [entry] for event, entry in known.hooks.items()}
    return json.dumps({"hooks": hooks, **known.skeleton}, indent=2)


def _is_whole(text: str, known: Known) -> bool:
    root = jsontext.parse(text)
    if not isinstance(root.value, dict) or not root.items or root.items[0].key != "hooks":
        return False
    hooks = root.items[0].node
    made = all(node.items and node.items[0].start > node.start + 1 for node in (root, hooks))
    rest = {key: value for key, value in root.value.items() if key != "hooks"}
    return made and rest == known.skeleton and "hooks" not in jsontext.parse(_without(text)).value


def _without(text: str) -> str:
    """The text without our hooks. The last goes first, so that `drop` recognises a list that was made for the first."""
    for path in reversed([*_paths(text)]):
        text = jsontext.drop(text, path)
    return text


def _owned(text: str) -> dict[str, Any]:
    """Our entries by event; None for an event with several of them, which are replaced."""
    root = jsontext.parse(text).value
    found: dict[str, Any] = {}
    for path in _paths(text):
        entry = root
        for step in path[:3]:
            entry = entry[step]
        found[str(path[1])] = None if path[1] in found or len(path) > 3 else entry
    return found


def _paths(text: str) -> Iterator[tuple[str | int, ...]]:
    """Paths of our entries: whole groups, or our hook alone in a group to which somebody added others."""
    root = jsontext.parse(text).value
    if not isinstance(root, dict):
        raise Unsafe("it is no object")
    hooks = root.get("hooks", {})
    if not isinstance(hooks, dict):
        raise Unsafe("'hooks' is not an object")
    for event, entries in hooks.items():
        for place, entry in enumerate(entries if isinstance(entries, list) else ()):
            inner = entry.get("hooks") if isinstance(entry, dict) else None
            if _is_ours(entry):
                yield "hooks", event, place
            elif isinstance(inner, list) and inner:
                ours = [at for at, hook in enumerate(inner) if _is_ours(hook)]
                if len(ours) == len(inner):
                    yield "hooks", event, place
                else:
                    yield from (("hooks", event, place, "hooks", at) for at in ours)


def _is_ours(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    words = [entry.get(key) for key in ("command", "bash")]
    texts = [word for word in words if isinstance(word, str)]
    return any(
        word == COMMAND or word.startswith(COMMAND + " ") or (word.startswith(SHELL) and COMMAND in word)
        for word in texts
    )
