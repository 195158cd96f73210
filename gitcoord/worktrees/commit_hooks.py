"""The project's own git hooks, run as `git commit` runs them."""

from __future__ import annotations

from gitcoord.base.errors import refused
from gitcoord.git.commands.worktrees import run_hook
from gitcoord.git.process import Environ
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Callable

Tell = Callable[[str], None]


class Hooks:
    """`environ` is the caller's own: a hook may depend on all of it. What hooks write is told, line by line."""

    def __init__(self, ctx: Context, environ: Environ, tell: Tell) -> None:
        self._ctx = ctx
        # Without what would point at another repository or index; language and the rest stay as they were.
        self._env = {key: value for key, value in environ.items() if key in ctx.repo.env}
        self._tell = tell

    def run(self, name: str, *words: str, index: str = "") -> bool:
        """False if there is such a hook and it failed."""
        env = {**self._env, b"GIT_EDITOR": b":"}  # no editor is used
        if index:
            env[b"GIT_INDEX_FILE"] = index.encode("utf-8", "surrogateescape")
        code, _, said = run_hook(env, name, *words)
        for line in said.split("\n") if said else ():
            self._tell(line)
        return code == 0

    def require(self, name: str, *words: str, index: str = "") -> None:
        if not self.run(name, *words, index=index):
            raise refused("hook", f"the {name} hook said no: nothing was committed")
