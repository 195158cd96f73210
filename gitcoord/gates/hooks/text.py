"""The text of an installed hook, and how ours are recognised."""

from __future__ import annotations

from zlib import crc32

from gitcoord.startup.namedtuple import NamedTuple

KEPT = ".before-gitcoord"
_MADE = b"# Made by git coord install-hooks, sum "


class Kit(NamedTuple):
    """The sources of the hooks by file name, the path of git-claim, and the list of repositories that uninstalling reads."""

    sources: dict[str, str]
    git_claim: str
    registry: str = ""


def render(kit: Kit, event: str, *, chained: bool) -> bytes:
    """One self-contained file, from the hook's own lines and the shared parts."""
    shared = _without_note(kit.sources["gate.sh"]).replace(
        "git_claim=''", "git_claim='" + kit.git_claim.replace("'", "'\\''") + "'", 1
    )
    lines = []
    for line in kit.sources[event].splitlines():
        if line == '. "${0%/*}/gate.sh"':
            lines.append(shared.rstrip("\n"))
        else:
            lines.append(line)
        if chained and line.startswith("event="):
            lines.append(_without_note(kit.sources["before.sh"]).rstrip("\n"))
    body = ("\n".join(lines[1:]) + "\n").encode("utf-8", "surrogateescape")
    own = f"; lines of your own belong in {event}{KEPT}" if chained else ""
    return f"{lines[0]}\n".encode() + _MADE + f"{crc32(body):08x}{own}\n".encode() + body


def _without_note(source: str) -> str:
    """The source without its first line, which is for shellcheck."""
    return source.partition("\n")[2]


def is_ours(data: bytes) -> bool:
    lines = data.split(b"\n", 2)
    return len(lines) == 3 and lines[1].startswith(_MADE)


def is_edited(data: bytes) -> bool:
    """Whether a user changed or replaced this hook. An older version of ours is not edited."""
    if not is_ours(data):
        return True
    _, made, body = data.split(b"\n", 2)
    return made.removeprefix(_MADE)[:8] != f"{crc32(body):08x}".encode()
