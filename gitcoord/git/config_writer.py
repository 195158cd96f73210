"""Writing git's settings. git takes the file's lock or fails at once; so whoever meets another writer waits here."""

from __future__ import annotations

from gitcoord.git.process import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.git.repo import Repo

_TRIES = 60


def change_settings(repo: Repo, words: list[str], pause: Callable[[float], None]) -> tuple[int, str]:
    """`git config <words>`: its exit code, and what it said. Waits some seconds for another writer of the same file."""
    for number in range(1, _TRIES):
        code, _, complaint = run(["git", "config", *words], repo.env)
        if not code or "could not lock config file" not in complaint or "File exists" not in complaint:
            return code, complaint
        pause(min(0.01 * number, 0.1))
    return code, f"{complaint} (if no git process is running here, remove its lock file)"
