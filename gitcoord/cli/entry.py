"""The entries of `git claim`, `git coord` and `git handoff`: find the row, open the repository, call the handler.

Words that no row understands (help, mistakes) go to the full command line, and so do verbs that need a library: both on the
interpreter that has all of them.
"""

from __future__ import annotations

import posix
import sys

import gitcoord
from gitcoord.terminal.parser import NotQuick, Values, Verb, parse
from gitcoord.world.open import RepositoryOpener, environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.terminal.call import Call
    from gitcoord.terminal.screen import Row


def main(command: str, argv: list[str]) -> int:
    """`git <command> <argv>`; gives the exit code."""
    hook = _hook(command, argv)
    if hook is not None:
        return hook
    from gitcoord.cli.table import expand, table_of

    table = table_of(command)
    try:
        name, values, words = parse(table, expand(command, argv))
    except NotQuick:
        if argv[:1] == ["--version"]:
            print(f"gitcoord {gitcoord.__version__}")
            return 0
        full_python(command, argv)
        from gitcoord.cli.help import main as full

        return full(command, argv, call_verb)
    if table[name].needs:
        full_python(command, argv)
    return call_verb(table[name], values, words)


def _hook(command: str, argv: list[str]) -> int | None:
    """Run a hook: before every commit, push and tool call. Hooks load no table of verbs."""
    if command == "claim" and argv[:1] == ["--gate"]:
        from gitcoord.gates.hook import main as gate

        return gate(argv[1:])
    if command == "claim" and argv[:1] == ["--receive"]:
        from gitcoord.server.hook import main as receive

        return receive(argv[1:])
    if command == "coord" and argv == ["guard"]:
        from gitcoord.guard.hook import main as guard

        return guard()
    return None


def call_verb(verb: Verb, values: Values, words: list[str]) -> int:
    """Open the repository as the row says, call its handler, print its errors."""
    env = environ()
    opener = None
    if verb.opens != "none":
        group = "reading" if verb.opens == "read" else "taking" if verb.handler == "claims.cli:take" else "writing"
        opener = RepositoryOpener(env, group, one_shot=verb.life == "one_shot")
    from gitcoord.terminal.screen import Screen, guarded

    screen = Screen(env, json=bool(values.get("json")), quiet=bool(values.get("quiet")))

    def body() -> int:
        from gitcoord.terminal.call import Call, run

        if opener is None:
            return run(verb, Call(None, screen, env), values, words)
        ctx = opener.context(long_lived=verb.life == "long_lived")
        screen.use_settings(ctx.settings)
        if not screen.json:
            ctx.listen(screen.note)
        call = Call(ctx, screen, env)
        if verb.life != "long_lived":
            screen.ask_news = lambda: news_of(call, granted_now="wait" in values)
        code = run(verb, call, values, words)
        screen.tell_news()
        return code

    return guarded(screen, body)


def news_of(call: Call, *, granted_now: bool = False) -> tuple[Row, list[str]]:
    """The news for the actor: of the queue of claims, and of work that will conflict. Nothing is loaded where there are none."""
    row, lines = _queue_news(call, granted_now=granted_now) if call.ctx.may_have_news() else ({}, [])
    if call.ctx.may_have_warnings():
        from gitcoord.radar.news import news_lines, radar_news

        actor = call.actor_or_none()
        conflicts = radar_news(call.ctx, actor.agent) if actor is not None else []
        if conflicts:
            row = {"news": {**row.get("news", {}), "conflicts": [conflict.to_json() for conflict in conflicts]}}
            lines = [*lines, *news_lines(conflicts)]
    return row, lines


def _queue_news(call: Call, *, granted_now: bool) -> tuple[Row, list[str]]:
    from gitcoord.claims.news import news_lines, news_or_none

    actor = call.actor_or_none()
    news = news_or_none(call.ctx, actor, granted_now=granted_now) if actor is not None else None
    return (news.to_json(), news_lines(call.ctx, news)) if news is not None else ({}, [])


def full_python(command: str, argv: list[str]) -> None:
    """Leave the bare interpreter of the installed command, if this is it, for the one with all libraries."""
    python = getattr(gitcoord, "python", "")
    if python:
        posix.execv(python, [python, "-I", "-m", "gitcoord.cli", command, *argv])


def leave(code: int) -> None:
    """Leave at once when done: the git children see the end of their input and go."""
    sys.stdout.flush()
    sys.stderr.flush()
    posix._exit(code)


def claim() -> None:
    leave(main("claim", sys.argv[1:]))


def coord() -> None:
    leave(main("coord", sys.argv[1:]))


def handoff() -> None:
    leave(main("handoff", sys.argv[1:]))
