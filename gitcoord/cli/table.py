"""The verbs of `git coord` and `git handoff` that are called all day: parsed without a library, by `options.parse_verb`."""

from __future__ import annotations

from gitcoord.terminal.parser import JSON, NONCE, QUIET, REASON, Option, Verb

# A verb of two words belongs to a group, which has its own line in the help.
GROUPS: dict[str, str] = {
    "journal": "What people and agents wrote down, beside what the machine recorded.",
    "task": "The shared work queue: each task is one agent's at a time, with the paths that it needs.",
    "rules": "The project's written rules: what they say, and who has read them.",
}
# What a group does when its name stands alone, or with options of that verb.
BARE: dict[str, list[str]] = {
    "task": ["task", "list"],
    "journal": ["journal", "show"],
    "rules": ["rules", "show"],
    "rules --who": ["rules", "who"],
    "rules --who --json": ["rules", "who", "--json"],
}

_WHY = Option("reason", "text", "Why, for the record.")
_DIRTY = Option("dirty", "flag", "In spite of uncommitted changes below the paths that go back.")
_TTL = Option("ttl", "duration", "The silence it survives; 60s for a launched worker, 30m otherwise.")
_WAIT = Option("wait", "duration", "Wait up to this long instead of answering at once.")
_RESULT = Option("result", "text", "A file with the record as JSON; '-' for stdin.")
_TASK = (
    Option("body", "text", "What is to be done, at length; '-' for stdin.", "m"),
    Option("priority", "critical|high|normal|low", "How urgent; normal unless given."),
    Option("need", "texts", "A task (id or key) that must be done before."),
    Option("path", "texts", "A path or @resource that is claimed with the task."),
    Option("line", "text", "The line of work it belongs to, which one agent at a time moves."),
    Option("role", "text", "Only agents of this role may take it."),
    Option("next", "text", "The concrete next step."),
    Option("expect", "duration", "How long it should take."),
    Option("owner", "text", "Keep it for this agent."),
    Option("attempts", "number", "So many owners may be lost before a person has to look; 3 unless given."),
    Option("branch", "text", "The branch on which the work is done."),
    Option("unsafe", "flag", "Another one may not safely go on with it."),
    Option("review", "flag", "Somebody else looks at the result before it is done."),
)


def _one(help: str, *options: Option, side: str = "tasks.cli") -> Verb:
    """A verb about one task."""
    return Verb(help, "one", (*options, QUIET, JSON), side=side, label="TASK")


_TASKS = {
    "task add": Verb(
        "Put a task into the queue.",
        "any",
        (
            *_TASK,
            Option("key", "text", "A key of yours: a second task under it is not added."),
            Option("from", "text", "A JSON file with a list of tasks; '-' for stdin."),
            QUIET,
            JSON,
        ),
        side="tasks.cli_edit",
        label="TITLE",
    ),
    "task list": Verb(
        "The tasks that are not over, oldest first.",
        "none",
        (
            Option("state", "texts", "Only tasks in this state."),
            Option("owner", "text", "Only tasks of this agent."),
            Option("mine", "flag", "Only your own."),
            Option("all", "flag", "Also those that are over.", "a"),
            JSON,
        ),
        False,
        "tasks.cli",
    ),
    "task show": Verb("Everything about a task.", "one", (JSON,), False, "tasks.cli", "TASK"),
    "task take": _one("Take a task, with the paths that it needs: all or nothing.", _TTL, _WAIT, NONCE),
    "task next": Verb(
        "Take the next task that can be done now: each goes to exactly one asker.",
        "none",
        (_TTL, _WAIT, NONCE, QUIET, JSON),
        side="tasks.cli",
    ),
    "task update": _one(
        "Change what is said of a task.",
        Option("title", "text", "The new title."),
        *_TASK[:-2],
        Option("safe", "yes|no", "Whether another one may safely go on with it."),
        Option("review", "yes|no", "Whether somebody else looks at the result before it is done."),
        Option("no-needs", "flag", "It waits for nothing any more."),
        Option("no-paths", "flag", "It needs no paths any more."),
        side="tasks.cli_edit",
    ),
    "task block": _one("It cannot go on for now.", REASON),
    "task unblock": _one("It can go on again.", _WHY),
    "task needs-human": _one("A person has to decide before it goes on.", REASON),
    "task complete": _one(
        "Hand in the result; what was claimed for the task is released.",
        Option("message", "text", "The summary, in place of a file.", "m"),
        Option("not-done", "texts", "What was not done; 'none' where nothing is left. Needed with -m."),
        _RESULT,
        _DIRTY,
        NONCE,
    ),
    "task fail": _one("Say that it failed.", _WHY, _RESULT, _DIRTY, NONCE),
    "task release": _one("Give it back, for others to take.", _WHY, _DIRTY),
    "task review": _one(
        "Accept a result that waits for a review, or send it back.",
        Option("accept", "flag", "It is done."),
        Option("return", "flag", "It goes back into the queue."),
        _WHY,
    ),
    "task abandon": _one("It will not be done.", REASON, _DIRTY),
    "task reopen": _one("Put a failed or abandoned task into the queue again.", _WHY),
    "task join": Verb(
        "Wait until all of these are over, and gather their results.",
        "some",
        (_WAIT, JSON),
        False,
        "tasks.cli_join",
        "TASK",
    ),
    "task schema": Verb(
        "Print the JSON schema of a record: assignment, complete or failed.",
        "one",
        (JSON,),
        False,
        "tasks.cli_schema",
        "RECORD",
    ),
}

_JOURNAL = {
    "journal add": Verb(
        "Write something down, for all to read: -m, a file, or what comes on stdin.",
        "any",
        (
            Option("message", "texts", "The text; again: one more paragraph.", "m"),
            Option("path", "texts", "A path that it is about; may be given again."),
            Option("task", "text", "The task it is about."),
            QUIET,
            JSON,
        ),
        side="journal.cli",
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
        "journal.cli",
    ),
}

COORD: dict[str, Verb] = {
    "start": Verb(
        "The first thing to run: open your session or go on with it, and be told what there is to know.",
        "none",
        (
            Option("brief", "flag", "For a small context: headlines and numbers.", "b"),
            Option("join", "flag", "Join a session that another process of this name has open."),
            JSON,
        ),
        side="sessions.cli",
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
        side="sessions.cli",
    ),
    **_TASKS,
    **_JOURNAL,
    "number": Verb(
        "Reserve the next number of a sequence (migrations, records, ports), never given twice.",
        "one",
        (
            Option("count", "number", "So many, one after the other; 1 unless given."),
            Option("peek", "flag", "Only tell what the next one would be."),
            JSON,
        ),
        side="effects.cli",
        label="SEQUENCE",
    ),
    "why": Verb(
        "The story of a path (or @resource) in words: who claimed it, was refused, released it with which commit.",
        "one",
        (Option("number", "number", "The last so many things; 50 unless given, 0 for all.", "n"), JSON),
        writes=False,
        side="journal.cli_why",
    ),
    "rules show": Verb(
        "The rules as the branch has them on which work lands, or in the version named.",
        "any",
        (JSON,),
        writes=False,
        side="gates.cli",
        label="VERSION",
    ),
    "rules ack": Verb("Say that you have read the rules.", "any", (JSON,), side="gates.cli", label="VERSION"),
    "rules who": Verb("Who has read which version.", "none", (JSON,), writes=False, side="gates.cli"),
}
HANDOFF: dict[str, Verb] = {
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
        side="handoff.cli",
        label="FILE",
    ),
    "list": Verb(
        "The handoffs that wait.",
        "none",
        (Option("all", "flag", "Also those that were accepted, declined or withdrawn.", "a"), JSON),
        False,
        "handoff.cli",
    ),
    "show": Verb(
        "One handoff: its document, its facts, who holds its paths now.", "one", (JSON,), False, "handoff.cli", "ID"
    ),
    "accept": Verb(
        "Take it over: claims, task and branch are yours from now on.",
        "one",
        (QUIET, JSON),
        side="handoff.cli",
        label="ID",
    ),
    "decline": Verb("Say no to a handoff for you.", "one", (REASON, JSON), side="handoff.cli", label="ID"),
    "withdraw": Verb(
        "Take back a handoff of yours.",
        "one",
        (Option("reason", "text", "Why, for the record."), JSON),
        side="handoff.cli",
        label="ID",
    ),
}
