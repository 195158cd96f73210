"""The rows of `git coord`, put together; its groups of verbs."""

from __future__ import annotations

from gitcoord.cli.table import gates, ledger, tasks, work

HELP = (
    "Coordinate the writers of one repository. Paths are claimed with git claim, work is handed over with git handoff."
)

VERBS = {**work.VERBS, **tasks.VERBS, **gates.VERBS, **ledger.VERBS}
# Verbs of two or three words belong to a group: its help, and the heading of the help under which it stands.
GROUPS = {
    "journal": ("What people and agents wrote down, and what happened.", "everyday"),
    "worktree": ("Work trees for parallel branches, removed without loss.", "everyday"),
    "task": ("The shared work queue: add tasks, take them, hand them in.", "tasks and handoffs"),
    "rules": ("The project's written rules, and who has read them.", "rules and gates"),
    "policy": ("What the project's policy says, and whether it makes sense.", "rules and gates"),
    "server": ("Judge what is pushed to a repository on this machine.", "machines and servers"),
    "server key": ("The keys with which agents sign their events.", ""),
}
# A group's name alone, or with options of that verb, is its everyday verb.
BARE = {
    "task": ["task", "list"],
    "journal": ["journal", "show"],
    "rules": ["rules", "show"],
    "rules --who": ["rules", "who"],
    "rules --who --json": ["rules", "who", "--json"],
}
