"""A whole work tree that changes: nobody can say which of its files."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.shell.interpreter import Run


def whole(run: Run, word: str, detail: str) -> None:
    for cwd in run.state.cwds or ("",):
        run.unknown(word, detail, (run.fs.top(cwd) or cwd) if cwd else "")
