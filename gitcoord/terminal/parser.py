"""A verb as a row of the command table, and the parser of every row: no library, since each command waits for it."""

from __future__ import annotations

from gitcoord.startup.annotations import Iterator, Mapping
from gitcoord.startup.namedtuple import NamedTuple

Values = dict[str, "str | bool | list[str]"]


class Option(NamedTuple):
    """`kind` is flag, text, texts (may be given again), duration, number or one of several words (a '|' between them)."""

    name: str
    kind: str
    help: str
    short: str = ""
    required: bool = False
    label: str = ""  # the value's name in the help, by which it is also completed; the kind if ''
    also: str = ""  # another name, for those who know it from another verb


class Verb(NamedTuple):
    """One row of the command table; `row` makes it."""

    help: str  # one line
    handler: str  # "package.module:function", which takes (call, values, words) and gives the exit code
    words: str  # the other words as the help shows them: "PATH", "PATH...", "AGENT [ROLE]", "TARGET -- COMMAND..."
    options: tuple[Option, ...]
    example: str  # after `git <command>`; '': the verb's name is example enough
    opens: str  # the repository: "none", "read" or "write"
    life: str  # "one_shot": exits after its answer. "work": goes on after its first write. "long_lived": keeps a connection to a remote.
    needs: str  # what the bare interpreter has not: a library, or "the installation", which knows where the hooks are
    completes: str  # the values that its words are completed with, where their label does not say it


JSON = Option("json", "flag", "Print one JSON object on stdout.")
QUIET = Option("quiet", "flag", "Print nothing but errors.", "q")
NONCE = Option("nonce", "text", "A key of yours: a repeat under it has no second effect.", label="KEY")
REASON = Option("reason", "text", "Why, for the record.", "m", required=True, also="message")
WHY = REASON._replace(required=False)


def row(
    help: str,
    handler: str,
    words: str = "",
    *options: Option,
    example: str = "",
    opens: str = "write",
    life: str = "one_shot",
    needs: str = "",
    completes: str = "",
    json: bool = True,
) -> Verb:
    """A row; it takes --json unless what it prints is not its own."""
    if json:
        options += (JSON,)
    return Verb(help, handler, words, options, example, opens, life, needs, completes)


class NotQuick(Exception):
    """Words that are left to the full command line: help and mistakes."""


def parse(table: Mapping[str, Verb], words: list[str]) -> tuple[str, Values, list[str]]:
    """(name of the verb, options, other words). A verb's name is one word, two or three."""
    for count in (1, 2, 3):
        name = " ".join(words[:count])
        if name in table:
            values, found = _split(table[name], words[count:])
            return name, values, found
    raise NotQuick


def labels(words: str) -> list[str]:
    """The labels of a row's words, one each: 'TARGET', '[ROLE]', 'COMMAND...'."""
    return words.replace("-- ", "").split()


def _split(verb: Verb, words: list[str]) -> tuple[Values, list[str]]:
    by_name = {name: option for option in verb.options for name in (option.name, option.also) if name}
    by_short = {option.short: option for option in verb.options if option.short}
    is_command = verb.words.startswith("-- COMMAND")
    values: Values = {}
    found: list[str] = []
    after: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            after = list(rest)
            found += after
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            _store(by_name.get(name), value if equals else None, rest, values)
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            while letters[1:] and letters[0] in by_short and by_short[letters[0]].kind == "flag":
                values[by_short[letters[0]].name] = True
                letters = letters[1:]
            _store(by_short.get(letters[0]), letters[1:] or None, rest, values)
        else:
            found.append(word)
            if is_command:
                found += rest
    wanted = labels(verb.words)
    least = sum(label[0] != "[" for label in wanted)
    if len(found) < least or (len(found) > len(wanted) and "..." not in verb.words):
        raise NotQuick
    if any(option.required and option.name not in values for option in verb.options):
        raise NotQuick
    if after and verb.words.strip("[]") == "PATH...":
        values["--"] = after  # names that are not checked for mistakes
    return values, found


def _store(option: Option | None, value: str | None, rest: Iterator[str], values: Values) -> None:
    if option is None:
        raise NotQuick
    if option.kind == "flag":
        if value is not None:
            raise NotQuick
        values[option.name] = True
        return
    if value is None:
        value = next(rest, None)
    if value is None or ("|" in option.kind and value not in option.kind.split("|")):
        raise NotQuick
    if option.kind == "texts":
        values[option.name] = [*values.get(option.name, ()), value]  # type: ignore[misc]
    else:
        values[option.name] = value
