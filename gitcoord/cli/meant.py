"""The command that a word was meant for: verbs of another command, misspelt verbs, verbs of similar tools."""

from __future__ import annotations

from gitcoord.base.names import LEDGER, shell_word
from gitcoord.cli.table import COMMANDS, table_of
from gitcoord.startup.annotations import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.context import Context

# Words that people try and that are no verbs here.
_OTHER_WORDS = {
    "acquire": "git claim",
    "claims": "git claim list",
    "help": "git claim -h",
    "lock": "git claim",
    "locks": "git claim list",
    "ls": "git claim list",
    "merge": "git coord land",
    "push": "git coord land",
    "submit": "git coord land",
    "unclaim": "git claim release",
    "unlock": "git claim release",
    "wait": "git claim --wait 10m",
}
# They end another's work or take a gate away: a person looks them up.
_NEVER_NAMED = ("kill", "revive", "takeover", "unhalt", "approve", "teardown", "uninstall-hooks", "disown")
_SHORT = (
    4  # a verb of so few letters is recognised where two are swapped or one is missing: `dist` and `lint` are no `list`
)
_LONG = 6  # one of so many letters is recognised with two mistakes


def meant(word: str, rest: list[str], *, exact: bool = False) -> str:
    """The command for a word like a verb, with the words after it; '' where it is like none."""
    if word in COMMANDS:
        return _line(f"git {word}", rest)
    for command, verb in _verbs():
        if word == verb:
            return _named(command, verb, rest)
    if exact and (word == "help" or word not in _OTHER_WORDS):
        return ""
    if word in _OTHER_WORDS:
        return _line(_OTHER_WORDS[word], [] if word == "help" else rest) + " <path>" * (word == "wait" and not rest)
    for command, verb in _verbs():
        if is_misspelt(word, verb):
            return _named(command, verb, rest)
    like = next((other for other in _OTHER_WORDS if is_misspelt(word, other)), "")
    return meant(like, rest) if like else ""


def _verbs() -> Iterator[tuple[str, str]]:
    for command in COMMANDS:
        for name in dict.fromkeys(name.partition(" ")[0] for name in table_of(command)):
            yield command, name


def _named(command: str, verb: str, rest: list[str]) -> str:
    if (verb, bool(rest)) == ("status", True):  # of one path
        command, verb = "claim", "show"
    return f"git {command} -h" if verb in _NEVER_NAMED else _line(f"git {command} {verb}", rest)


def _line(command: str, rest: list[str]) -> str:
    return " ".join([command, *map(shell_word, rest)])


def meant_branches(ctx: Context, word: str) -> list[str]:
    """The commands to land branches that are named nearly like the word."""
    places = ("refs/heads/", f"refs/remotes/{ctx.remote or 'origin'}/")
    names = {ref.removeprefix(place) for place in places for ref in ctx.local.list_refs(place) if ref != LEDGER}
    return [f"git coord land {shell_word(name)}" for name in sorted(names) if is_misspelt(word, name)]


def is_misspelt(word: str, verb: str) -> bool:
    """Two letters swapped; of a verb that is not short, also one too many, missing or wrong; of a long one, two of these. The first letter is
    right."""
    if word[:1] != verb[:1] or abs(len(word) - len(verb)) > 2:
        return False
    far = _distance(word, verb)
    if far == 2:
        return len(verb) >= _LONG
    swapped = len(word) == len(verb) and sorted(word) == sorted(verb)
    return far == 1 and (swapped or len(verb) > _SHORT or (len(verb) == _SHORT and len(word) < _SHORT))


def is_slip(name: str, other: str) -> bool:
    """Whether a file's name is like another's: a letter too many or missing, or two swapped. Numbered files are no slips."""
    words = ["".join(letter for letter in each if not letter.isdecimal()) for each in (name, other)]
    moved = len(name) != len(other) or sorted(name) == sorted(other)
    return words[0] != words[1] and moved and _distance(name, other) == 1


def _distance(word: str, verb: str) -> int:
    """How many letters were added, left out, changed or swapped with the next one."""
    before, row = list[int](), list(range(len(verb) + 1))
    for at, letter in enumerate(word):
        older, before, row = before, row, [at + 1]
        for to, other in enumerate(verb):
            steps = [before[to + 1] + 1, row[to] + 1, before[to] + (letter != other)]
            if at and to and (letter, other) == (verb[to - 1], word[at - 1]):
                steps.append(older[to - 1] + 1)
            row.append(min(steps))
    return row[-1]
