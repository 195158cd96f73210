"""The verbs of `git coord` and `git handoff` that are called all day: parsed without a library, by `options.parse_verb`."""

from gitcoord.hot.options import JSON, Option, Verb

# A verb of two words belongs to a group, which has its own line in the help.
GROUPS: "dict[str, str]" = {
    "rules": "The project's written rules: what they say, and who has read them.",
}
# What a group does when its name stands alone.
BARE: "dict[str, list[str]]" = {
    "rules": ["rules", "show"],
    "rules --json": ["rules", "show", "--json"],
    "rules --who": ["rules", "who"],
    "rules --who --json": ["rules", "who", "--json"],
}

COORD: "dict[str, Verb]" = {
    "start": Verb(
        "Open your session, or go on with it.",
        "none",
        (Option("join", "flag", "Join a session that another process of this name has open."), JSON),
        side="session",
    ),
    "stop": Verb(
        "End your session and release what it holds.",
        "none",
        (Option("keep", "flag", "Leave claims with uncommitted work to their ttl."), JSON),
        side="session",
    ),
    "number": Verb(
        "Reserve the next number of a sequence (migrations, records, ports), never given twice.",
        "one",
        (
            Option("count", "number", "So many, one after the other; 1 unless given."),
            Option("peek", "flag", "Only tell what the next one would be."),
            JSON,
        ),
        side="numbers",
        label="SEQUENCE",
    ),
    "why": Verb(
        "The story of a path (or @resource) in words: who claimed it, was refused, released it with which commit.",
        "one",
        (Option("number", "number", "The last so many things; 50 unless given, 0 for all.", "n"), JSON),
        writes=False,
        side="story",
    ),
    "rules show": Verb(
        "The rules as the branch has them on which work lands, or in the version named.",
        "any",
        (JSON,),
        writes=False,
        side="rules",
        label="VERSION",
    ),
    "rules ack": Verb("Say that you have read the rules.", "any", (JSON,), side="rules", label="VERSION"),
    "rules who": Verb("Who has read which version.", "none", (JSON,), writes=False, side="rules"),
}
HANDOFF: "dict[str, Verb]" = {}
