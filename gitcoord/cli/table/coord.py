"""The rows of `git coord`, put together; its groups of verbs."""

from __future__ import annotations

from gitcoord.cli.table import gates, ledger, tasks, work

HELP = (
    "Coordinate the writers of one repository. Paths are claimed with git claim, work is handed over with git handoff."
)

VERBS = {**work.VERBS, **tasks.VERBS, **gates.VERBS, **ledger.VERBS}
# The headings of the help, with the verbs and groups of verbs under each.
HEADINGS = {
    "start here": "setup init start run demo teardown",
    "everyday": "status top page radar commit sync land worktree note journal number once stop",
    "tasks and handoffs": "task dispatch",
    "rules and gates": "rules policy role approvals approve deny kill revive halt unhalt install-hooks uninstall-hooks repositories gate",
    "machines and servers": "deploy deploys server",
    "looking into it": "agents resources log why contention watch fsck doctor audit drill version",
    "plumbing": "sweep guard mcp complete",
}
# The help of a group: verbs of two or three words.
GROUPS = {
    "journal": "What people and agents wrote down, and what happened.",
    "worktree": "Work trees for parallel branches, removed without loss.",
    "task": "The shared work queue: add tasks, take them, hand them in.",
    "rules": "The project's written rules, and who has read them.",
    "policy": "What the project's policy says, and whether it makes sense.",
    "server": "Judge what is pushed to a repository on this machine.",
    "server key": "The keys with which agents sign their events.",
}
# A group's name alone, or with options of that verb, is its everyday verb.
BARE = {
    "task": ["task", "list"],
    "journal": ["journal", "show"],
    "rules": ["rules", "show"],
    "rules --who": ["rules", "who"],
    "rules --who --json": ["rules", "who", "--json"],
}
