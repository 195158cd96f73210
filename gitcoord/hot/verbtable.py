"""The verbs of `git coord` and `git handoff` that are called all day: parsed without a library, by `options.parse_verb`."""

from gitcoord.hot.options import JSON, QUIET, REASON, Option, Verb

# A verb of two words belongs to a group, which has its own line in the help.
GROUPS: "dict[str, str]" = {"journal": "What people and agents wrote down, beside what the machine recorded."}
# What a group does when its name stands alone.
BARE: "dict[str, list[str]]" = {"journal": ["journal", "show"]}

COORD: "dict[str, Verb]" = {
    "start": Verb(
        "The first thing to run: open your session or go on with it, and be told what there is to know.",
        "none",
        (
            Option("brief", "flag", "For a small context: headlines and numbers.", "b"),
            Option("join", "flag", "Join a session that another process of this name has open."),
            JSON,
        ),
        side="session",
    ),
    "stop": Verb(
        "End your session and release what it holds.",
        "none",
        (
            Option(
                "keep", "flag", "End all the same: leave claims with uncommitted work to their ttl, give tasks back."
            ),
            JSON,
        ),
        side="session",
    ),
}
_ALSO = Option("task", "text", "The task it is about.")

COORD |= {
    "journal add": Verb(
        "Write something down, for all to read: -m, a file, or what comes on stdin.",
        "any",
        (
            Option("message", "texts", "The text; again: one more paragraph.", "m"),
            Option("path", "texts", "A path that it is about; may be given again."),
            _ALSO,
            QUIET,
            JSON,
        ),
        side="journal",
        label="FILE",
    ),
    "journal show": Verb(
        "What was written and what happened, one story, oldest first.",
        "none",
        (
            Option("agent", "text", "Only what is by or about this agent."),
            Option("since", "text", "From an event's number, a duration ago (2h) or a date (UTC) on."),
            Option("path", "text", "Only what touches this path."),
            Option("grep", "text", "Only what has these words, in any case."),
            Option("prose", "flag", "Only what was written."),
            Option("number", "number", "At most so many, the last ones; 50 unless given, 0: all.", "n"),
            JSON,
        ),
        False,
        "journal",
    ),
}

HANDOFF: "dict[str, Verb]" = {
    "new": Verb(
        "Offer your work to another: with the claims you hold, a task, and what they need to know.",
        "any",
        (
            Option("to", "text", "For whom: an agent, or @role; anyone unless given."),
            Option("task", "text", "The task that goes along."),
            Option("path", "texts", "Only the claims on or below this path go along; may be given again."),
            Option("state", "text", "What works now, what does not, and how you know."),
            Option("changed", "text", "What you changed, and why."),
            Option("remaining", "text", "What is left to do."),
            Option("next", "text", "The one concrete thing to do first."),
            Option("blockers", "text", "What stands in the way; 'none' unless given."),
            Option("assumptions", "text", "What you took for granted without checking; 'none' unless given."),
            Option("file", "text", "Take the document from a file (Markdown or JSON), '-': stdin.", "F"),
            QUIET,
            JSON,
        ),
        side="handing",
        label="FILE",
    ),
    "list": Verb(
        "The handoffs that wait.",
        "none",
        (Option("all", "flag", "Also those that were accepted, declined or withdrawn.", "a"), JSON),
        False,
        "handing",
    ),
    "show": Verb(
        "One handoff: its document, its facts, who holds its paths now.", "one", (JSON,), False, "handing", "ID"
    ),
    "accept": Verb(
        "Take it over: claims, task and branch are yours from now on.", "one", (QUIET, JSON), side="handing", label="ID"
    ),
    "decline": Verb("Say no to a handoff for you.", "one", (REASON, JSON), side="handing", label="ID"),
    "withdraw": Verb(
        "Take back a handoff of yours.",
        "one",
        (Option("reason", "text", "Why, for the record."), JSON),
        side="handing",
        label="ID",
    ),
}
