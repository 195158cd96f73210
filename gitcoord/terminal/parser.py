"""Verbs and their options: one definition for the quick parser, the full command line and its help; those of `git claim`."""

from __future__ import annotations

from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    Values = dict[str, "str | bool | list[str]"]


class Option(NamedTuple):
    """`kind` is flag, text, texts (may be given again), duration, number or one of several words (a '|' between them)."""

    name: str
    kind: str
    help: str
    short: str = ""
    required: bool = False


class Verb(NamedTuple):
    help: str
    paths: str  # how many words it takes: "none", "one", "any" or "some"
    options: tuple[Option, ...]
    writes: bool = True
    side: str = "claims.cli"  # the module that has its handler
    label: str = "PATH"  # what those words are, in the help


JSON = Option("json", "flag", "Print one JSON object on stdout.")
QUIET = Option("quiet", "flag", "Print nothing but errors.", "q")
NONCE = Option("nonce", "text", "A key of yours: repeating the command under it has no second effect.")
REASON = Option("reason", "text", "Why, for the record.", required=True)

VERBS = {
    "take": Verb(
        "Claim paths (or @resources): all of them or none.",
        "some",
        (
            Option("mode", "read|intent|write", "What you want to do there; write unless given."),
            Option("ttl", "duration", "How long the claim survives your silence; 30m unless given."),
            Option("message", "text", "What for: shown to whoever is refused.", "m"),
            Option("task", "text", "The task this belongs to."),
            Option("expect", "duration", "How long you think you need it."),
            Option("units", "number", "Units of a resource; 1 unless given."),
            Option("wait", "duration", "Wait up to this long instead of failing at once."),
            NONCE,
            Option("dry-run", "flag", "Only tell whether it would be granted.", "n"),
            QUIET,
            JSON,
        ),
    ),
    "release": Verb(
        "Give paths back, with the commit that carries the work.",
        "any",
        (
            Option("all", "flag", "Release everything you hold.", "a"),
            Option("commit", "text", "The commit that carries the work; HEAD where the path changed, unless given."),
            Option("dirty", "flag", "Release in spite of uncommitted changes."),
            QUIET,
            JSON,
        ),
    ),
    "renew": Verb(
        "Send a heartbeat now; with --ttl, change how long the claims survive silence.",
        "any",
        (Option("ttl", "duration", "The new ttl of the claims named, or of all."), QUIET, JSON),
    ),
    "list": Verb(
        "Who holds what.",
        "none",
        (
            Option("mine", "flag", "Only your own claims."),
            Option("all", "flag", "Also claims whose holders fell silent.", "a"),
            JSON,
        ),
        False,
        "claims.cli_views",
    ),
    "show": Verb("Everything about the claims on, above and below a path.", "one", (JSON,), False, "claims.cli_views"),
    "check": Verb(
        "May I write here now? 0: yes, 1: no, 4: could not judge.", "some", (QUIET, JSON), False, "claims.cli_views"
    ),
    "disown": Verb(
        "Clear the record of released work on a path: it was abandoned or rewritten.", "one", (REASON, JSON)
    ),
    "takeover": Verb(
        "A person takes a live claim away, naming its token.",
        "one",
        (
            Option("token", "number", "The token of the claim, from 'git claim show'.", required=True),
            Option("force", "flag", "Yes, from a live holder.", required=True),
            REASON,
            JSON,
        ),
    ),
}


class NotQuick(Exception):
    """Words that the quick parser leaves to the full command line: help, mistakes, abbreviations."""


def arrange(words: list[str]) -> list[str]:
    """A verb after its flags (`git claim --json list`) comes first, as it would after any git command."""
    verb = next((word for word in words if not word.startswith("-") or word == "--"), "")
    before = words[: words.index(verb)] if verb in VERBS else []
    flags = {f"--{option.name}" for option in VERBS[verb].options if option.kind == "flag"} if before else set()
    return [verb, *before, *words[len(before) + 1 :]] if before and flags.issuperset(before) else words


def parse(words: list[str]) -> tuple[str, Values, list[str]]:
    """(verb, options, paths). Bare: list. No verb: take, or list if there is no path."""
    words = arrange(words)
    verb, rest = "", words
    if words and words[0] in VERBS:
        verb, rest = words[0], words[1:]
    named = verb or "take"
    try:
        values, paths = _split(VERBS[named], rest)
    except NotQuick:
        if verb:
            raise
        values, paths = _split(VERBS["list"], rest)
        named = "list"
    if not verb and named == "take" and not paths:
        named = "list"
        values, paths = _split(VERBS["list"], rest)
    _require(VERBS[named], values, paths)
    return named, values, paths


def parse_verb(table: dict[str, Verb], words: list[str]) -> tuple[str, Values, list[str]]:
    """The same with a table in which a verb is one word or two, and nothing is left out."""
    name = words[0] if words else ""
    rest = words[1:]
    if name not in table and rest:
        name, rest = f"{name} {rest[0]}", rest[1:]
    if name not in table:
        raise NotQuick
    values, found = _split(table[name], rest)
    _require(table[name], values, found)
    return name, values, found


def _require(verb: Verb, values: Values, words: list[str]) -> None:
    wanted = verb.paths
    if (wanted == "none" and words) or (wanted == "some" and not words) or (wanted == "one" and len(words) != 1):
        raise NotQuick
    if any(option.required and option.name not in values for option in verb.options):
        raise NotQuick


def _split(verb: Verb, words: list[str]) -> tuple[Values, list[str]]:
    by_name = {option.name: option for option in verb.options}
    by_short = {option.short: option for option in verb.options if option.short}
    values: Values = {}
    paths: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            paths += rest
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            _store(by_name.get(name), value if equals else None, rest, values)
        elif word.startswith("-") and len(word) > 1:
            _store(by_short.get(word[1]), word[2:] or None, rest, values)
        else:
            paths.append(word)
    return values, paths


def _store(option: Option | None, value: str | None, rest: object, values: Values) -> None:
    if option is None:
        raise NotQuick
    if option.kind == "flag":
        if value is not None:
            raise NotQuick
        values[option.name] = True
        return
    if value is None:
        value = next(rest, None)  # type: ignore[call-overload]
    if value is None or ("|" in option.kind and value not in option.kind.split("|")):
        raise NotQuick
    if option.kind == "texts":
        values[option.name] = [*values.get(option.name, ()), value]  # type: ignore[misc]
    else:
        values[option.name] = value
