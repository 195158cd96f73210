"""The rows of `git coord` about rules, gates and those who watch over agents."""

from __future__ import annotations

from gitcoord.terminal.parser import WHY, Option, row

_DRY_RUN = Option("dry-run", "flag", "Only show what would be done.", "n")
_WHOSE = (
    Option("commit", "text", "The policy of this commit; default: trunk's.", label="COMMIT"),
    Option("index", "flag", "The policy as it is staged."),
    Option("worktree", "flag", "The policy as it lies in the work tree."),
)

VERBS = {
    "rules show": row(
        "Show the rules as they are on trunk, or in the version named.", "gates.cli:show", "[VERSION]", opens="read"
    ),
    "rules ack": row("Say that you have read the rules.", "gates.cli:ack", "[VERSION]"),
    "rules who": row("Show who has read which version.", "gates.cli:who", opens="read"),
    "policy explain": row(
        "Show which rules decide for a path, and where they are written.",
        "gates.cli_policy:explain",
        "PATH...",
        *_WHOSE,
        example="policy explain src/app.py",
        opens="read",
    ),
    "policy check": row(
        "Find rules that match nothing, rules that shadow each other, and settings that are not known.",
        "gates.cli_policy:check",
        "",
        *_WHOSE,
        example="policy check --worktree",
        opens="read",
    ),
    "policy suggest": row(
        "Suggest paths to mark, by the names of files and by who changes which file when.",
        "gates.cli_policy:suggest",
        example="policy suggest",
        opens="read",
    ),
    "role": row(
        "Show or give an agent's role: where it may write.",
        "gates.cli_policy:role",
        "AGENT [ROLE]",
        Option("clear", "flag", "Take the role away."),
        example="role alice reviewer",
    ),
    "approvals": row(
        "Show what waits for a person's approval.",
        "gates.cli_approvals:approvals",
        "",
        Option("all", "flag", "Also those that were answered.", "a"),
        Option("diff", "flag", "Show what would change.", "d"),
        example="approvals --diff",
        opens="read",
    ),
    "approve": row(
        "Approve exactly the content that was asked for.",
        "gates.cli_approvals:approve",
        "ID",
        Option("blob", "text", "The content you were shown; refused if another was asked for.", label="BLOB"),
        WHY,
        example="approve a3",
        completes="approvals",
    ),
    "deny": row(
        "Deny what was asked for.",
        "gates.cli_approvals:deny",
        "ID",
        WHY,
        example="deny a3 --reason 'not before the release'",
        completes="approvals",
    ),
    "kill": row(
        "Stop an agent for good: nothing of it gets through.",
        "sessions.cli_kill:kill",
        "AGENT",
        WHY,
        example="kill alice -m 'runs wild'",
    ),
    "revive": row(
        "Let a killed agent's name open sessions again.",
        "sessions.cli_kill:revive",
        "AGENT",
        WHY,
        example="revive alice",
    ),
    "halt": row(
        "Grant nothing to anybody until unhalt.",
        "sessions.cli_kill:halt",
        "",
        WHY,
        example="halt -m 'release day'",
    ),
    "unhalt": row("Go on after a halt.", "sessions.cli_kill:unhalt", "", WHY, example="unhalt -m 'it is out'"),
    "install-hooks": row(
        "Install the hooks that judge commits and pushes.",
        "gates.hooks.cli:install_hooks",
        "",
        _DRY_RUN,
        example="install-hooks --dry-run",
        life="work",
        needs="the installation",
    ),
    "uninstall-hooks": row(
        "Take gitcoord's hooks away; others stay as they were.",
        "gates.hooks.cli:uninstall_hooks",
        "",
        _DRY_RUN,
        life="work",
    ),
    "repositories": row(
        "Show where gitcoord's hooks are on this machine.",
        "gates.hooks.cli_repositories:repositories",
        "",
        Option("uninstall-hooks", "flag", "Take the hooks out of all of them, before gitcoord is uninstalled."),
        example="repositories --uninstall-hooks",
        opens="none",
        life="work",
        needs="the installation",
    ),
    "gate": row(
        "Judge a range of commits as the hooks would: for CI.",
        "gates.cli:gate",
        "BASE..HEAD",
        Option("agent", "text", "Who brings them; the commits' own trailers count too.", label="AGENT"),
        example="gate origin/main..HEAD",
    ),
}
