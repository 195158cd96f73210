"""Work trees in which agents edit the same file, and all that must stay as it was."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.cli.support import World
from tests.support import git

TEXT = "".join(f"{n}\n" for n in range(1, 41))


def tree(world: World, name: str, agent: str = "") -> Path:
    done = world.coord("worktree", "add", name, *(["--agent", agent] if agent else []))
    assert done.code == 0, done
    return world.top.parent / f"proj-{name}"


def edit(place: Path, line: int, words: str, name: str = "f") -> None:
    lines = (place / name).read_text().splitlines()
    lines[line - 1] = words
    (place / name).write_text("".join(f"{row}\n" for row in lines))


def commit(place: Path, message: str = "work") -> None:
    git(place, "commit", "-q", "-a", "-m", message, f"--author={place.name} <a@example.com>")


def state(world: World) -> dict[str, str]:
    """All that belongs to the user: refs, objects, indexes, notes of work trees, and the files themselves."""
    marks = {}
    for path in sorted(world.top.parent.rglob("*")):
        name = str(path.relative_to(world.top.parent))
        if path.is_file() and not path.is_symlink() and ".git/gitcoord/" not in name:
            marks[name] = f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return marks
