"""Every verb of the three commands, a row each: the parser, the help, completion and the man pages read these tables, and MCP calls their handlers."""

from __future__ import annotations

from gitcoord.terminal.parser import Verb

COMMANDS = ("claim", "coord", "handoff")


def table_of(command: str) -> dict[str, Verb]:
    """The rows of `git <command>`, by the verb's name; only these are loaded."""
    if command == "claim":
        from gitcoord.cli.table.claim import VERBS
    elif command == "coord":
        from gitcoord.cli.table.coord import VERBS
    else:
        from gitcoord.cli.table.handoff import VERBS
    return VERBS


def expand(command: str, words: list[str]) -> list[str]:
    """The words with the verb that they leave out: `git claim PATH...` takes, a group's name alone is its everyday verb."""
    if command == "claim":
        from gitcoord.cli.table.claim import expand as expand_claim

        return expand_claim(words)
    if command == "handoff":
        return words or ["list"]
    from gitcoord.cli.table.coord import BARE

    known = BARE.get(" ".join(words))
    if (
        known is not None
        or len(words) < 2
        or words[0] not in BARE
        or words[1][:1] != "-"
        or words[1] in ("-h", "--help")
    ):
        return known or words
    return [*BARE[words[0]], *words[1:]]
