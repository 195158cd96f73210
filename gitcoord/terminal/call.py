"""One call of a verb: its repository, environment, screen and actor."""

from __future__ import annotations

from gitcoord.base.durations import LONGEST, format_duration, parse_duration
from gitcoord.base.errors import NotInitialised, ServerBehind, UsageError
from gitcoord.base.names import LEDGER, TIP, check_word, quote, shell_word
from gitcoord.git.host import isatty
from gitcoord.git.process import Environ
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Part
from gitcoord.sessions.identity import NAMING_HINTS, person_by_setting, resolve, resolve_or_none
from gitcoord.startup.annotations import Any, Callable
from gitcoord.terminal.parser import Values, Verb
from gitcoord.terminal.screen import Row, Screen

Handler = Callable[["Call", Values, list[str]], int]

_LONGEST_TEXT = 1000


class Call:
    """The context, screen and environment that a handler gets."""

    ctx: Context

    def __init__(self, ctx: Context | None, screen: Screen, environ: Environ) -> None:
        if ctx is not None:  # a row that opens no repository has none
            self.ctx = ctx
            screen.fit = lambda hints: _fitted(hints, ctx.repo.git_dir)
        self.screen = screen
        self.environ = environ

    def actor(self) -> Actor:
        return resolve(self.ctx, self.environ, terminal=at_terminal())

    def person(self, action: str) -> Actor:
        """The actor of a command for people. Where nobody is named the error asks for a person: almost no agent's name would help."""
        try:
            return self.actor()
        except UsageError as error:
            if error.hints != NAMING_HINTS:
                raise
            raise UsageError(f"only a person at a terminal may {action}", hints=("ask one of them",)) from error

    def repair_actor(self) -> Actor:
        """A repair needs no agent: without a name it acts as 'fsck'."""
        return self.actor_or_none() or Actor("fsck")

    def typed(self, path: str) -> str:
        """A path of the repository as one would type it in the current directory."""
        prefix = self.ctx.repo.prefix
        if path.startswith("@") or not prefix:
            return shell_word(path)
        return shell_word(path.removeprefix(prefix) if path.startswith(prefix) else f":/{path}")

    def actor_if_set_up(self) -> Actor | None:
        """The actor, for a question: without a name the person of `gitcoord.person`, as commits are judged. None where nobody is
        named and gitcoord is not set up, so that no name is needed."""
        actor = self.actor_or_none() or person_by_setting(self.ctx, self.environ)
        if actor is None and not has_ledger(self.ctx):
            return None
        return actor or self.actor()

    def recent(self, most: int = 0, *, warns: bool = True) -> dict[str, object]:
        """Before looking: at a remote authority, look there if the last look is more than so many seconds ago. Tells how
        old what this clone knows is, also where it cannot be renewed. `warns`: say so where this is not the project's ledger."""
        if warns:
            self._warn_of_another_ledger()
        if not self.ctx.remote:
            return {}
        from gitcoord.ledger.remote.fetch import refresh_if_older

        told = refresh_if_older(self.ctx, most)
        if "offline" in told:
            age = told["as_of_seconds"]
            since = f"as it was {format_duration(int(str(age)))} ago" if age is not None else "never seen"
            if str(told["offline"]).startswith(ServerBehind.differs):
                since = "the state that this clone has seen, which is not the server's"
            elif str(told["offline"]).startswith(ServerBehind.words):
                since = "the newer state that this clone has seen"
            why = str(told["offline"]).removesuffix("; nothing was changed")  # a look changes nothing anyway
            self.screen.note(f"note: {why}", f"note: what follows is {since}")
        return told

    def read(self, look: Callable[[], Row], seconds: int | None = 0, **empty: object) -> Row:
        """The result of `look`. Before gitcoord is set up it is `empty`, with a note: looking is no error then.

        At a remote authority, look there first if the last look is more than so many seconds ago (None: do not).
        """
        age = self.recent(seconds) if seconds is not None else {}
        try:
            return {"initialised": True, **look(), **age}
        except NotInitialised:
            self.note_not_set_up()
            return {"initialised": False, **empty, **age}

    def show(self, look: Callable[[], Row], seconds: int | None = 0, **empty: object) -> Row | None:
        """As `read`, and answered as JSON; None where there is nothing to tell, since gitcoord is not set up."""
        result = self.read(look, seconds, **empty)
        self.screen.answer(result)
        return result if result["initialised"] else None

    def do(self, command: Any, prefetch: tuple[Part, ...] = ()) -> Row:
        """Make a command happen by the rule that stands beside it, and answer with its result."""
        from gitcoord.ledger.transaction import transact

        rule = __import__(type(command).__module__, fromlist=("decide",)).decide
        result = transact(self.ctx, rule, command, prefetch=prefetch)
        self.screen.answer(result)
        return result

    def note_not_set_up(self) -> None:
        """Reading before gitcoord is set up shows nothing. That is no error, but a note says so."""
        from gitcoord.ledger.named_ledger import setup_command

        self.screen.note("note: gitcoord is not set up in this repository")
        self.screen.hint(f"set it up: {setup_command(self.ctx)}")

    def _warn_of_another_ledger(self) -> None:
        """Looking at a ledger that may not be used is allowed; a warning says which one it is."""
        if not self.ctx.may_name_another_ledger():
            return
        from gitcoord.ledger.setup import find_other_ledger

        error = find_other_ledger(self.ctx)
        if error is not None:
            self.screen.note(f"warning: {error.message}")
            self.screen.hint(*error.hints)

    def warn(self, result: dict[str, object]) -> None:
        """Print the warnings of validators."""
        self.screen.note(*(f"warning: {line}" for line in result.get("warnings", ())))  # type: ignore[attr-defined]

    def actor_or_none(self) -> Actor | None:
        """The actor; None where nobody is named: reading needs no name."""
        return resolve_or_none(self.ctx, self.environ, terminal=at_terminal())


def _fitted(hints: tuple[str, ...], git_dir: str) -> tuple[str, ...]:
    if not hints:
        return hints
    from gitcoord.git.operations import hints_now  # only where something is hinted at

    return hints_now(hints, git_dir)


def at_terminal() -> bool:
    return isatty(0) and isatty(2)


def run(verb: Verb, call: Call, values: Values, words: list[str]) -> int:
    """Call the verb's handler; only its own module gets loaded."""
    module, _, function = verb.handler.partition(":")
    handler: Handler = getattr(__import__(f"gitcoord.{module}", fromlist=(function,)), function)
    for option in verb.options:
        value = str(values.get(option.name, "")) if option.kind == "duration" else ""
        if value.isdecimal() and len(value) < 6 and value.strip("0"):  # many a tool counts in minutes
            call.screen.note(f"note: --{option.name} {value} is {value} seconds; {value} minutes are {value}m")
    return handler(call, values, words)


def is_set_up(ctx: Context) -> bool:
    return bool(ctx.settings.get("gitcoord.root") or any(ctx.store.resolve([LEDGER, TIP])))


def has_ledger(ctx: Context) -> bool:
    """Return whether there is a ledger. CouldNotJudge where the project has one that this clone has not joined."""
    if is_set_up(ctx):
        return True
    from gitcoord.ledger.named_ledger import no_ledger

    error = no_ledger(ctx)
    if not isinstance(error, NotInitialised):
        raise error
    return False


def text(values: Values, name: str) -> str:
    """An option's text: one line that cannot upset a terminal."""
    value = str(values.get(name, ""))
    if len(value) > _LONGEST_TEXT:
        raise UsageError(f"--{name} is longer than {_LONGEST_TEXT} characters")
    if not all(c.isprintable() for c in value):
        raise UsageError(f"--{name} holds a character that cannot be printed: {quote(value[:60])}")
    return value


def nonce(values: Values) -> str:
    """The key of the caller under which a repeat has no second effect; '' where none is given."""
    return check_word(str(values["nonce"]), "nonce") if "nonce" in values else ""


def texts(values: Values, name: str) -> list[str]:
    """All values of an option that may be given again."""
    found = values.get(name, ())
    assert isinstance(found, (list, tuple))
    return [text({name: value}, name) for value in found]


def words_of(values: Values, name: str) -> list[str]:
    """The same as they were said: paths, and texts that are checked elsewhere."""
    found = values.get(name, ())
    assert isinstance(found, (list, tuple))
    return list(found)


def number(values: Values, name: str, default: int = 0) -> int:
    value = str(values.get(name, default))
    if not (value.isascii() and value.isdecimal() and len(value) < 16):
        raise UsageError(f"--{name} needs a number, not {quote(value[:40])}")
    return int(value)


def duration(values: Values, name: str, longest: int = LONGEST) -> int:
    return parse_duration(str(values[name]), longest) if name in values else 0
