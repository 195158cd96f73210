"""The rows of `git coord` about tasks."""

from __future__ import annotations

from gitcoord.terminal.parser import JSON, NONCE, QUIET, REASON, WHY, Option, Verb

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


def _one(help: str, example: str, handler: str, *options: Option) -> Verb:
    """A verb that changes one task."""
    return Verb(help, f"git coord task {example}", handler, "TASK", (*options, QUIET, JSON))


VERBS = {
    "task add": Verb(
        "Put a task into the queue.",
        "git coord task add 'Fix the login page' --path src/login --priority high",
        "tasks.cli_edit:add",
        "[TITLE...]",
        (
            *_CONTENT,
            Option("unsafe", "flag", "Another one may not safely go on with it."),
            Option("review", "flag", "Somebody else looks at the result before it is done."),
            Option("key", "text", "A key of yours: a second task under it is not added.", label="KEY"),
            Option("from", "text", "A JSON file with a list of tasks; '-' for stdin.", label="FILE"),
            QUIET,
            JSON,
        ),
    ),
    "task list": Verb(
        "List the tasks that are not over, oldest first.",
        "git coord task list --mine",
        "tasks.cli:list_",
        "",
        (
            Option("state", "texts", "Only tasks in this state; may be given again.", label="STATE"),
            Option("owner", "text", "Only tasks of this agent.", label="AGENT"),
            Option("mine", "flag", "Only your own."),
            Option("all", "flag", "Also those that are over.", "a"),
            JSON,
        ),
        opens="read",
    ),
    "task show": Verb(
        "Show everything about a task.", "git coord task show t12", "tasks.cli:show", "TASK", (JSON,), opens="read"
    ),
    "task take": _one(
        "Take a task, with the paths that it needs: all or nothing.", "take t12", "tasks.cli:take", _TTL, _WAIT, NONCE
    ),
    "task next": Verb(
        "Take the next task that can be done now: each goes to exactly one asker.",
        "git coord task next --wait 10m",
        "tasks.cli:next_",
        "",
        (_TTL, _WAIT, NONCE, QUIET, JSON),
    ),
    "task update": _one(
        "Change what is said of a task.",
        "update t12 --next 'write the test'",
        "tasks.cli_edit:update",
        Option("title", "text", "The new title."),
        *_CONTENT,
        Option("safe", "yes|no", "Whether another one may safely go on with it."),
        Option("review", "yes|no", "Whether somebody else looks at the result before it is done."),
        Option("no-needs", "flag", "It waits for nothing any more."),
        Option("no-paths", "flag", "It needs no paths any more."),
    ),
    "task block": _one("It cannot go on for now.", "block t12 --reason 'no access'", "tasks.cli:block", REASON),
    "task unblock": _one("It can go on again.", "unblock t12", "tasks.cli:unblock", WHY),
    "task needs-human": _one(
        "A person has to decide before it goes on.",
        "needs-human t12 --reason 'which of the two?'",
        "tasks.cli:needs_human",
        REASON,
    ),
    "task complete": _one(
        "Hand in the result; claims of the task are released.",
        "complete t12 -m 'login works' --not-done none",
        "tasks.cli:complete",
        Option("message", "text", "The summary, in place of a file.", "m"),
        Option("not-done", "texts", "What was not done; 'none' where nothing is left. Needed with -m."),
        _RESULT,
        _DIRTY,
        NONCE,
    ),
    "task fail": _one(
        "Say that it failed.", "fail t12 --reason 'the API is gone'", "tasks.cli:fail", WHY, _RESULT, _DIRTY, NONCE
    ),
    "task release": _one("Give it back, for others to take.", "release t12", "tasks.cli:release", WHY, _DIRTY),
    "task review": _one(
        "Accept a result that waits for a review, or send it back.",
        "review t12 --accept",
        "tasks.cli:review",
        Option("accept", "flag", "It is done."),
        Option("return", "flag", "It goes back into the queue."),
        WHY,
    ),
    "task abandon": _one(
        "It will not be done.", "abandon t12 --reason 'no longer wanted'", "tasks.cli:abandon", REASON, _DIRTY
    ),
    "task reopen": _one("Put a failed or abandoned task into the queue again.", "reopen t12", "tasks.cli:reopen", WHY),
    "task join": Verb(
        "Wait until all of these are over, and gather their results.",
        "git coord task join t12 t13 --wait 1h",
        "tasks.cli_join:join",
        "TASK...",
        (_WAIT, JSON),
        opens="read",
    ),
    "task schema": Verb(
        "Print the JSON schema of a record: assignment, complete, failed or task.",
        "git coord task schema complete",
        "tasks.cli_schema:schema",
        "RECORD",
        (JSON,),
        opens="read",
    ),
    "dispatch": Verb(
        "Keep workers at work on the queue, up to a cap.",
        "git coord dispatch --max 4 -- claude -p 'take a task and do it'",
        "tasks.cli_dispatch:dispatch",
        "-- COMMAND...",
        (
            Option("max", "number", "At most so many workers at once."),
            Option("as", "text", "The workers are called NAME-1 and so on; default: worker.", label="NAME"),
            Option("until-empty", "flag", "End when no task is left."),
        ),
        life="stay",
        quick=False,  # dulwich
        group="tasks and handoffs",
    ),
}
