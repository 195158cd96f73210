"""The entry of `git claim`. What it cannot parse at once (help, mistakes) goes to the full command line."""

from __future__ import annotations

import posix
import sys

import gitcoord
from gitcoord.terminal.parser import VERBS, NotQuick, parse
from gitcoord.world.open import Opening, environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.terminal.parser import Values, Verb


def main(argv: list[str]) -> int:
    if argv[:1] == ["--gate"]:
        from gitcoord.gates.hook import main as gate

        return gate(argv[1:])
    if argv[:1] == ["--receive"]:
        from gitcoord.server.hook import main as receive

        return receive(argv[1:])
    try:
        verb, values, words = parse(argv)
    except NotQuick:
        from gitcoord.cli.typer_claim import main as full

        return full(argv)
    return call_verb(verb, VERBS[verb], values, words)


def call_verb(name: str, verb: Verb, values: Values, words: list[str]) -> int:
    """Open the repository, run the verb, tell its errors. Both command lines end here."""
    env = environ()
    group = "reading" if not verb.writes else "taking" if name == "take" else "writing"
    opening = Opening(env, group, one_shot=True)
    from gitcoord.terminal.screen import Screen, guarded

    screen = Screen(env, json=bool(values.get("json")), quiet=bool(values.get("quiet")))

    def body() -> int:
        ctx = opening.context()
        screen.use_settings(ctx.settings)
        if not screen.json:
            ctx.listen(screen.note)
        from gitcoord.terminal.call import Call, run

        return run(name, verb, Call(ctx, screen, env), values, words)

    return guarded(screen, body)


def entry() -> None:
    leave(main(sys.argv[1:]))


def full_python(program: str, argv: list[str]) -> None:
    """Leave the bare interpreter of the installed command, if this is it, for the one with all libraries."""
    python = getattr(gitcoord, "python", "")
    if python:
        posix.execv(python, [python, "-I", "-m", "gitcoord.cli", program, *argv])


def leave(code: int) -> None:
    """Leave at once when done: the git children see the end of their input and go."""
    sys.stdout.flush()
    sys.stderr.flush()
    posix._exit(code)
