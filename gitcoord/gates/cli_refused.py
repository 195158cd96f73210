"""After a refusal of a hook: what git has written already is put back, and the hints say how the operation ends that is under way."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import printable, shell_word
from gitcoord.gates.cli_verdicts import SHOWN
from gitcoord.gates.refused_merge import clean_up, refused_pick, restore_renamed
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.files import read_file
from gitcoord.git.operations import Operation, hints_now, needs_none, operation, under_way
from gitcoord.git.process import Environ
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.context import Context
from gitcoord.terminal.screen import Screen


class Ending:
    """How the operation of git ends whose commit this hook judges: after a refusal git keeps it under way."""

    def __init__(self, ctx: Context, hook: str, moves: list[RefUpdate]) -> None:
        self._ctx = ctx
        self._hook = hook
        self._moves = moves
        self._put_back = False
        self._picks = False  # it is a revert or cherry-pick without a conflict

    def fit(self, hints: tuple[str, ...]) -> tuple[str, ...]:
        """The hints as they can be followed here. What was refused cannot be finished before a hint that needs a work tree without it."""
        if not needs_none(hints):
            return hints
        found = self._operation()
        if found is None:
            return hints_now(hints, self._ctx.repo.git_dir)
        self._put_back = True
        return (f"put everything back first: {found.undo}", *hints, f"then begin the {found.name} again")

    def hints(self) -> tuple[str, ...]:
        """After all other hints of a refusal."""
        found = None if self._put_back else self._operation()
        if found is None:
            return ()
        staged = f"the {found.name} is staged; " if self._picks else ""
        return (f"{staged}then go on: {found.go_on}; or put everything back: {found.undo}",)

    def _operation(self) -> Operation | None:
        if self._hook == "pre-merge-commit":
            return operation("merge")  # git has not noted it yet
        if self._hook == "reference-transaction":
            picked = refused_pick(self._ctx.repo.git_dir)
            if picked is not None:
                self._picks = True
                return picked
        found = under_way(self._ctx.repo.git_dir) if self._hook != "pre-push" else None
        if found is None or found.name == "bisect":  # no commit ends that
            return None
        if self._hook == "pre-commit":
            return found
        if found.name == "rebase":
            names = [read_file(f"{self._ctx.repo.git_dir}/rebase-{kind}/head-name") for kind in ("merge", "apply")]
            refs = [name.decode("utf-8", "surrogateescape").strip() for name in names]
            return found if any(move.ref in refs for move in self._moves) else None
        return found if found.name == "merge" and _concludes_merge(self._ctx, self._moves) else None


def _concludes_merge(ctx: Context, moves: list[RefUpdate]) -> bool:
    """Return whether the branch of this work tree was to get the commit of the merge that is under way."""
    merging = read_file(f"{ctx.repo.git_dir}/MERGE_HEAD").decode("ascii", "replace").split()
    here = read_file(f"{ctx.repo.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
    new = next((move.new for move in moves if here == f"ref: {move.ref}"), "")
    if not merging or not new or new in merging:
        return False
    try:
        return is_ancestor(ctx.repo.env, merging[0], new) is True
    except (GitcoordError, OSError):
        return False  # the refusal stands, without this hint


def clean_up_after(ctx: Context, screen: Screen, env: Environ, moves: list[RefUpdate]) -> None:
    """Put back the files that a refused move wrote, where that is safe, and print the outcome."""
    try:
        renamed = restore_renamed(ctx) if not all(move.new for move in moves) else None
        if renamed is not None:
            name, tip, is_back = renamed
            screen.note(f"note: git had taken {printable(name)} away already" + ": it is back" * is_back)
            if not is_back:
                screen.hint(f"bring it back: git branch {shell_word(name)} {tip[:12]}")
        done = clean_up(ctx, env, moves)
    except (GitcoordError, OSError, ValueError) as error:
        screen.note(f"note: the files that git wrote already were left: {printable(str(error))}")
        return
    if done is None:
        return
    files = f"{len(done.paths)} file{'s' if len(done.paths) > 1 else ''}"
    if not done.why and done.lost:
        screen.note(
            f"note: index and work tree are those of HEAD again: {files} of {done.new[:12]} put back",
            f"note: {done.lost}",
        )
        return
    if not done.why:
        screen.note(f"note: index and work tree are as before: {files} of {done.new[:12]} put back")
        screen.hint(*done.hints)
        return
    screen.note(f"note: git has written {files} of {done.new[:12]} already, and nothing was put back: {done.why}")
    screen.note(*(f"  {printable(path)}" for path in done.paths[:SHOWN]))
    screen.hint(*done.hints)
