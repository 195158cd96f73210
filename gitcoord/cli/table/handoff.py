"""The rows of `git handoff`."""

from __future__ import annotations

from gitcoord.terminal.parser import JSON, QUIET, REASON, WHY, Option, Verb

HELP = """Hand your work over to another, whole: the claims, the task, the branch and what they need to know.

git handoff alone lists those that wait."""

VERBS = {
    "new": Verb(
        "Offer your work to another: the claims you hold, a task, and what they need to know.",
        "git handoff new --to bob --task t12 --state 'all but NFC' --changed src/lex.py --remaining 'three tests' --next 'fix fold()'",
        "handoff.cli:new",
        "[FILE]",
        (
            Option("to", "text", "For whom: an agent, or @role; default: anyone.", label="AGENT"),
            Option("task", "text", "The task that goes along.", label="TASK"),
            Option(
                "path", "texts", "Only the claims on or below this path go along; may be given again.", label="PATH"
            ),
            Option("state", "text", "What works now, what does not, and how you know."),
            Option("changed", "text", "What you changed, and why."),
            Option("remaining", "text", "What is left to do."),
            Option("next", "text", "The one concrete thing to do first."),
            Option("blockers", "text", "What keeps the work from going on; default: 'none'."),
            Option("assumptions", "text", "What you took for granted without checking; default: 'none'."),
            Option("file", "text", "Take the document from a file (Markdown or JSON), '-': stdin.", "F", label="FILE"),
            QUIET,
            JSON,
        ),
    ),
    "list": Verb(
        "List the handoffs that wait.",
        "git handoff list",
        "handoff.cli:list_",
        "",
        (Option("all", "flag", "Also those that were accepted, declined or withdrawn.", "a"), JSON),
        opens="read",
    ),
    "show": Verb(
        "Show one handoff: its document, its facts, who holds its paths now.",
        "git handoff show h31",
        "handoff.cli:show",
        "ID",
        (JSON,),
        opens="read",
        completes="handoffs",
    ),
    "accept": Verb(
        "Take it over: claims, task and branch are yours from now on.",
        "git handoff accept h31",
        "handoff.cli:accept",
        "ID",
        (QUIET, JSON),
        completes="handoffs",
    ),
    "decline": Verb(
        "Say no to a handoff for you.",
        "git handoff decline h31 --reason 'busy until Friday'",
        "handoff.cli:decline",
        "ID",
        (REASON, JSON),
        completes="handoffs",
    ),
    "withdraw": Verb(
        "Take back a handoff of yours.",
        "git handoff withdraw h31",
        "handoff.cli:withdraw",
        "ID",
        (WHY, JSON),
        completes="handoffs",
    ),
}
