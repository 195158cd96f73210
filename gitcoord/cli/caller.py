"""One verb or question at a time in a long-lived process: the same handlers as the command line's, answering with data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitcoord.base.errors import GitcoordError, StoreError
from gitcoord.cli.entry import news_of
from gitcoord.git.files import fingerprint
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.terminal.call import Call, run
from gitcoord.terminal.parser import Values, Verb
from gitcoord.terminal.screen import Screen
from gitcoord.world.open import environ, open_repository

Row = dict[str, Any]


class _Answer(Screen):
    """A screen that keeps a verb's answer: stdout belongs to the protocol."""

    def __init__(self) -> None:
        super().__init__({}, json=True)
        self.row: Row = {}
        self.notes: list[str] = []

    def answer(self, result: Row, *, ok: bool = True) -> None:
        self.row = {"ok": ok, **result, **self.news()[0]}

    def note(self, *lines: str) -> None:
        self.notes += lines


class _KnownCall(Call):
    """A call whose actor is known: the one who started the process."""

    known: Actor

    def actor(self) -> Actor:
        return self.known

    def actor_or_none(self) -> Actor | None:
        return self.known


class Caller:
    """The repository of the current directory, kept open between calls. One call at a time, all from one thread."""

    def __init__(self, actor: Actor | None = None) -> None:
        """`actor`: who acts in all calls; default: resolved in each as everywhere."""
        self._environ = environ()
        self._actor = actor
        self._ctx: Context | None = None
        self._marks: list[tuple[int, ...]] = []

    def call(self, verb: Verb, values: Values, words: list[str]) -> tuple[Row, bool]:
        """(the answer as `--json` gives it, whether it is an error). A refusal has code, message and hints. `said`: what goes to stderr."""
        said = {key: value for key, value in values.items() if value not in ("", False, [])}

        def answer(call: Call) -> Row:
            screen = call.screen
            assert isinstance(screen, _Answer)
            screen.ask_news = lambda: news_of(call)
            run(verb, call, said, words)
            return {**screen.row, "said": screen.notes} if screen.notes else screen.row

        return self.ask(answer)

    def ask(self, question: Callable[[Call], Row]) -> tuple[Row, bool]:
        """(the answer, whether it is an error), in the same way."""
        screen = _Answer()
        try:
            return question(self._call(screen)), False
        except GitcoordError as error:
            if isinstance(error, StoreError):
                self.close()  # git may have ended: the next call starts it again
            row = {"ok": False, "error": error.code, "message": error.message, "hints": list(screen.fit(error.hints))}
            return {**row, **error.data, **screen.news()[0]}, True
        except OSError as error:
            self.close()
            where = f": {error.filename}" if error.filename else ""
            return {"ok": False, "error": "store", "message": f"{error.strerror or error}{where}", "hints": []}, True
        finally:
            if self._ctx is not None:  # interrupts that a landing let wait for its answer come now
                self._ctx.host.one_shot = False
                self._ctx.host.defer_interrupts(False)

    def _call(self, screen: _Answer) -> Call:
        ctx = self._context()
        ctx.snapshot = None  # of an earlier call
        if self._actor is None:
            return Call(ctx, screen, self._environ)
        call = _KnownCall(ctx, screen, self._environ)
        call.known = self._actor
        return call

    def _context(self) -> Context:
        """The context. Settings are read again when they change, refs each time: others write too."""
        ctx = self._ctx
        if ctx is not None and self._marks == _marks(ctx):
            ctx.store.refresh()
            return ctx
        self.close()
        # Git for a swap is started when it is needed: one that has waited may compare with refs that are gone.
        ctx = self._ctx = open_repository(self._environ, writing=False, long_lived=True)
        self._marks = _marks(ctx)
        return ctx

    def close(self) -> None:
        ctx, self._ctx = self._ctx, None
        if ctx is not None:
            ctx.host.one_shot = False
            ctx.host.defer_interrupts(False)
            ctx.store.close()


def _marks(ctx: Context) -> list[tuple[int, ...]]:
    return [fingerprint(f"{ctx.repo.common_dir}/config"), fingerprint(f"{ctx.repo.git_dir}/config.worktree")]
