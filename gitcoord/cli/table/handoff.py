"""The rows of `git handoff`."""

from __future__ import annotations

from gitcoord.terminal.parser import QUIET, REASON, WHY, Option, row

HELP = """Hand your work over to another, whole: the claims, the task, the branch and what they need to know.

git handoff alone lists those that wait."""

VERBS = {
    "new": row(
        "Offer your work to another: the claims you hold, a task, and what they need to know.",
        "handoff.cli:new",
        "[FILE]",
        Option("to", "text", "For whom: an agent, or @role; default: anyone.", label="AGENT"),
        Option("task", "text", "The task that goes along.", label="TASK"),
        Option("path", "texts", "Only the claims on or below this path go along; may be given again.", label="PATH"),
        Option("state", "text", "What works now, what does not, and how you know."),
        Option("changed", "text", "What you changed, and why."),
        Option("remaining", "text", "What is left to do."),
        Option("next", "text", "The one concrete thing to do first."),
        Option("blockers", "text", "The problems that block the work; default: 'none'."),
        Option("assumptions", "text", "Assumptions that you did not check; default: 'none'."),
        Option("file", "text", "Take the document from a file (Markdown or JSON), '-': stdin.", "F", label="FILE"),
        QUIET,
        example="new --to bob --task t12 --state 'all but NFC' --changed src/lex.py --remaining 'three tests' --next 'fix fold()'",
    ),
    "list": row(
        "List the handoffs that wait.",
        "handoff.cli:list_",
        "",
        Option("all", "flag", "Also those that were accepted, declined or withdrawn.", "a"),
        opens="read",
    ),
    "show": row(
        "Show one handoff: its document, its facts, who holds its paths now.",
        "handoff.cli:show",
        "ID",
        example="show h31",
        opens="read",
        completes="handoffs",
    ),
    "accept": row(
        "Take it over: claims, task and branch are yours from now on.",
        "handoff.cli:accept",
        "[ID]",
        Option("without-commits", "flag", "Also if commits that belong to it cannot be had."),
        QUIET,
        example="accept h31",
        completes="handoffs",
    ),
    "decline": row(
        "Say no to a handoff for you.",
        "handoff.cli:decline",
        "ID",
        REASON,
        example="decline h31 --reason 'busy until Friday'",
        completes="handoffs",
    ),
    "withdraw": row(
        "Take back a handoff of yours.", "handoff.cli:withdraw", "ID", WHY, example="withdraw h31", completes="handoffs"
    ),
}
