"""The verbs of `git coord` and `git handoff` that are called all day: parsed without a library, by `options.parse_verb`."""

from gitcoord.hot.options import JSON, Option, Verb

# A verb of two words belongs to a group, which has its own line in the help.
GROUPS: "dict[str, str]" = {}
# What a group does when its name stands alone.
BARE: "dict[str, list[str]]" = {}

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
}
HANDOFF: "dict[str, Verb]" = {}
