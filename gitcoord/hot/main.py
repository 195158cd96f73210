"""The entry of `git claim`. What it cannot parse at once (help, mistakes) goes to the full command line."""

import posix
import sys

from gitcoord.hot.open import Opening, environ
from gitcoord.hot.options import VERBS, NotQuick, parse


def main(argv: list[str]) -> int:
    if argv[:1] == ["--gate"]:
        from gitcoord.hot.gate import main as gate

        return gate(argv[1:])
    if argv[:1] == ["--receive"]:
        from gitcoord.hot.receive import main as receive

        return receive(argv[1:])
    try:
        verb, values, words = parse(argv)
    except NotQuick:
        from gitcoord.adapters.cli.claim import main as full

        return full(argv)
    return call_verb(verb, values, words)


def call_verb(verb: str, values: "dict[str, str | bool]", words: list[str]) -> int:
    """Open the repository, run the verb, tell its errors. Both command lines end here."""
    env = environ()
    opening = Opening(env, "reading" if not VERBS[verb].writes else "taking" if verb == "take" else "writing")
    from gitcoord.hot.render import Screen, guarded

    screen = Screen(env, json=bool(values.get("json")), quiet=bool(values.get("quiet")))

    def body() -> int:
        ctx = opening.context(tells=True)
        screen.use_settings(ctx.settings)
        from gitcoord.hot.verbs import Call, run

        return run(verb, Call(ctx, screen, env), values, words)

    return guarded(screen, body)


def entry() -> None:
    """Leave at once when done: the git children see the end of their input and go."""
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    posix._exit(code)
