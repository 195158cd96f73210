"""The command that a word was meant for: verbs of another command, misspelt verbs, verbs of similar tools."""

from __future__ import annotations

from gitcoord.base.names import shell_word
from gitcoord.cli.table import COMMANDS, table_of
from gitcoord.startup.annotations import Iterator

# Words that people try and that are no verbs here.
_OTHER_WORDS = {
    "acquire": "git claim",
    "claims": "git claim list",
    "help": "git claim -h",
    "lock": "git claim",
    "locks": "git claim list",
    "ls": "git claim list",
    "unclaim": "git claim release",
    "unlock": "git claim release",
    "wait": "git claim --wait 10m",
}
# They end another's work or take a gate away: a person looks them up.
_NEVER_NAMED = ("kill", "revive", "takeover", "unhalt", "approve", "teardown", "uninstall-hooks", "disown")
_SHORT = 4  # a verb of so few letters is only recognised where two of them are swapped: `dist` and `lint` are no `list`


def meant(word: str, rest: list[str], *, exact: bool = False) -> str:
    """The command for a word like a verb, with the words after it; '' where it is like none."""
    if word in COMMANDS:
        return _line(f"git {word}", rest)
    for command, verb in _verbs():
        if word == verb:
            return _named(command, verb, rest)
    if exact:
        return ""
    if word in _OTHER_WORDS:
        return _line(_OTHER_WORDS[word], [] if word == "help" else rest) + " <path>" * (word == "wait" and not rest)
    for command, verb in _verbs():
        if _is_misspelt(word, verb):
            return _named(command, verb, rest)
    return ""


def _verbs() -> Iterator[tuple[str, str]]:
    for command in COMMANDS:
        for name in dict.fromkeys(name.partition(" ")[0] for name in table_of(command)):
            yield command, name


def _named(command: str, verb: str, rest: list[str]) -> str:
    return f"git {command} -h" if verb in _NEVER_NAMED else _line(f"git {command} {verb}", rest)


def _line(command: str, rest: list[str]) -> str:
    return " ".join([command, *map(shell_word, rest)])


def _is_misspelt(word: str, verb: str) -> bool:
    """One letter too many, missing or wrong, or two swapped; the first letter is right."""
    at = 0
    while word[at : at + 1] == verb[at : at + 1] != "":
        at += 1
    ours, theirs = word[at:], verb[at:]
    if at == 0 or not (ours or theirs):
        return False
    if ours[1::-1] + ours[2:] == theirs:
        return True
    return len(verb) > _SHORT and theirs in (ours[1:], theirs[:1] + ours[1:], theirs[:1] + ours)
