"""The rows of `git coord` about tasks."""

from __future__ import annotations

from gitcoord.terminal.parser import NONCE, QUIET, REASON, WHY, Option, Verb, row

_DIRTY = Option("dirty", "flag", "In spite of uncommitted changes below the paths that go back.")
_TTL = Option(
    "ttl", "duration", "Expires after this long without activity; default: 60s for a launched worker, else 30m."
)
_WAIT = Option("wait", "duration", "Wait up to this long instead of answering at once.")
_RESULT = Option("result", "text", "A file with the record as JSON; '-' for stdin.", label="FILE")
_CONTENT = (
    Option("body", "text", "What is to be done, at length; '-' for stdin.", "m"),
    Option("priority", "critical|high|normal|low", "How urgent; default: normal."),
    Option("need", "texts", "A task (id or key) that must be done before; may be given again.", label="TASK"),
    Option("path", "texts", "A path or @resource that is claimed with the task; may be given again.", label="PATH"),
    Option("line", "text", "The line of work it belongs to, which one agent at a time moves.", label="LINE"),
    Option("role", "text", "Only agents of this role may take it.", label="ROLE"),
    Option("next", "text", "The concrete next step."),
    Option("expect", "duration", "How long it should take."),
    Option("owner", "text", "Keep it for this agent.", label="AGENT"),
    Option("attempts", "number", "So many owners may be lost before a person has to look; default: 3."),
    Option("branch", "text", "The branch on which the work is done.", label="BRANCH"),
)


def _one(help: str, handler: str, *options: Option, example: str) -> Verb:
    """A verb that changes one task."""
    return row(help, handler, "TASK", *options, QUIET, example=f"task {example}")


VERBS = {
    "task add": row(
        "Put a task into the queue.",
        "tasks.cli_edit:add",
        "[TITLE...]",
        *_CONTENT,
        Option("unsafe", "flag", "Another one may not safely go on with it."),
        Option("review", "flag", "Somebody else looks at the result before it is done."),
        Option("key", "text", "A key of yours: a second task under it is not added.", label="KEY"),
        Option("from", "text", "A JSON file with a list of tasks; '-' for stdin.", label="FILE"),
        QUIET,
        example="task add 'Fix the login page' --path src/login --priority high",
    ),
    "task list": row(
        "List the tasks that are not over, oldest first.",
        "tasks.cli:list_",
        "",
        Option("state", "texts", "Only tasks in this state; may be given again.", label="STATE"),
        Option("owner", "text", "Only tasks of this agent.", label="AGENT"),
        Option("mine", "flag", "Only your own."),
        Option("all", "flag", "Also those that are over.", "a"),
        example="task list --mine",
        opens="read",
    ),
    "task show": row("Show everything about a task.", "tasks.cli:show", "TASK", example="task show t12", opens="read"),
    "task take": _one(
        "Take a task, with the paths that it needs: all or nothing.",
        "tasks.cli:take",
        _TTL,
        _WAIT,
        NONCE,
        example="take t12",
    ),
    "task next": row(
        "Take the next task that can be done now: each goes to exactly one asker.",
        "tasks.cli:next_",
        "",
        _TTL,
        _WAIT,
        Option(
            "while-any",
            "flag",
            "With --wait: only as long as a task is left that somebody does, or that waits for another.",
        ),
        NONCE,
        QUIET,
        example="task next --wait 10m --while-any",
    ),
    "task update": _one(
        "Change what is said of a task.",
        "tasks.cli_edit:update",
        Option("title", "text", "The new title."),
        *_CONTENT,
        Option("safe", "yes|no", "Whether another one may safely go on with it."),
        Option("review", "yes|no", "Whether somebody else looks at the result before it is done."),
        Option("no-needs", "flag", "It waits for nothing any more."),
        Option("no-paths", "flag", "It needs no paths any more."),
        Option("reason", "text", "Why, for the record."),
        example="update t12 --next 'write the test'",
    ),
    "task block": _one("It cannot go on for now.", "tasks.cli:block", REASON, example="block t12 --reason 'no access'"),
    "task unblock": _one("It can go on again.", "tasks.cli:unblock", WHY, example="unblock t12"),
    "task needs-human": _one(
        "A person has to decide before it goes on.",
        "tasks.cli:needs_human",
        REASON,
        example="needs-human t12 --reason 'which of the two?'",
    ),
    "task complete": _one(
        "Hand in the result; claims of the task are released.",
        "tasks.cli:complete",
        Option("message", "text", "The summary, in place of a file.", "m"),
        Option("not-done", "texts", "What was not done; 'none' where nothing is left. Needed with -m."),
        _RESULT,
        _DIRTY,
        NONCE,
        example="complete t12 -m 'login works' --not-done none",
    ),
    "task fail": _one(
        "Say that it failed.",
        "tasks.cli:fail",
        WHY,
        _RESULT,
        _DIRTY,
        NONCE,
        example="fail t12 --reason 'the API is gone'",
    ),
    "task release": _one("Give it back, for others to take.", "tasks.cli:release", WHY, _DIRTY, example="release t12"),
    "task review": _one(
        "Accept a result that waits for a review, or send it back.",
        "tasks.cli:review",
        Option("accept", "flag", "It is done."),
        Option("return", "flag", "It goes back into the queue."),
        WHY,
        example="review t12 --accept",
    ),
    "task abandon": _one(
        "It will not be done.", "tasks.cli:abandon", REASON, _DIRTY, example="abandon t12 --reason 'no longer wanted'"
    ),
    "task reopen": _one(
        "Put a failed or abandoned task into the queue again.", "tasks.cli:reopen", WHY, example="reopen t12"
    ),
    "task join": row(
        "Wait until all of these are over, and gather their results.",
        "tasks.cli_join:join",
        "TASK...",
        _WAIT,
        example="task join t12 t13 --wait 1h",
        opens="read",
    ),
    "task schema": row(
        "Print the JSON schema of a record: assignment, complete, failed or task.",
        "tasks.cli_schema:schema",
        "RECORD",
        example="task schema complete",
        opens="read",
    ),
    "dispatch": row(
        "Keep workers at work on the queue, up to a cap.",
        "tasks.cli_dispatch:dispatch",
        "-- COMMAND...",
        Option("max", "number", "At most so many workers at once."),
        Option("as", "text", "The workers are called NAME-1 and so on; default: worker.", label="NAME"),
        Option("until-empty", "flag", "End when no task is left."),
        example="dispatch --max 4 -- claude -p 'take a task and do it'",
        life="long_lived",
        needs="dulwich",
        json=False,
    ),
}
