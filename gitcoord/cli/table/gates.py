"""The rows of `git coord` about rules, gates and those who watch over agents."""

from __future__ import annotations

from gitcoord.terminal.parser import JSON, WHY, Option, Verb

_DRY_RUN = Option("dry-run", "flag", "Only show what would be done.", "n")
_SHORT_WHY = WHY._replace(short="m")
_WHOSE = (
    Option("commit", "text", "The policy of this commit; default: trunk's.", label="COMMIT"),
    Option("index", "flag", "The policy as it is staged."),
    Option("worktree", "flag", "The policy as it lies in the work tree."),
)

VERBS = {
    "rules show": Verb(
        "Show the rules as they are on trunk, or in the version named.",
        "git coord rules show",
        "gates.cli:show",
        "[VERSION]",
        (JSON,),
        "read",
    ),
    "rules ack": Verb(
        "Say that you have read the rules.", "git coord rules ack", "gates.cli:ack", "[VERSION]", (JSON,)
    ),
    "rules who": Verb("Show who has read which version.", "git coord rules who", "gates.cli:who", "", (JSON,), "read"),
    "policy explain": Verb(
        "Show which rules decide for a path, and where they are written.",
        "git coord policy explain src/app.py",
        "gates.cli_policy:explain",
        "PATH...",
        (*_WHOSE, JSON),
        "read",
    ),
    "policy check": Verb(
        "Find rules that match nothing, rules that shadow each other, and settings that are not known.",
        "git coord policy check --worktree",
        "gates.cli_policy:check",
        "",
        (*_WHOSE, JSON),
        "read",
    ),
    "role": Verb(
        "Show or give an agent's role: where it may write.",
        "git coord role alice reviewer",
        "gates.cli_policy:role",
        "AGENT [ROLE]",
        (Option("clear", "flag", "Take the role away."), JSON),
        group="rules and gates",
    ),
    "approvals": Verb(
        "Show what waits for a person's approval.",
        "git coord approvals --diff",
        "gates.cli_approvals:approvals",
        "",
        (
            Option("all", "flag", "Also those that were answered.", "a"),
            Option("diff", "flag", "Show what would change.", "d"),
            JSON,
        ),
        "read",
        group="rules and gates",
    ),
    "approve": Verb(
        "Approve exactly the content that was asked for.",
        "git coord approve a3",
        "gates.cli_approvals:approve",
        "ID",
        (
            Option("blob", "text", "The content you were shown; refused if another was asked for.", label="BLOB"),
            WHY,
            JSON,
        ),
        group="rules and gates",
        completes="approvals",
    ),
    "deny": Verb(
        "Deny what was asked for.",
        "git coord deny a3 --reason 'not before the release'",
        "gates.cli_approvals:deny",
        "ID",
        (WHY, JSON),
        group="rules and gates",
        completes="approvals",
    ),
    "kill": Verb(
        "Stop an agent for good: nothing of it gets through.",
        "git coord kill alice -m 'runs wild'",
        "sessions.cli_kill:kill",
        "AGENT",
        (_SHORT_WHY, JSON),
        group="rules and gates",
    ),
    "revive": Verb(
        "Let a killed agent's name open sessions again.",
        "git coord revive alice",
        "sessions.cli_kill:revive",
        "AGENT",
        (JSON,),
        group="rules and gates",
    ),
    "halt": Verb(
        "Grant nothing to anybody until unhalt.",
        "git coord halt -m 'release day'",
        "sessions.cli_kill:halt",
        "",
        (_SHORT_WHY, JSON),
        group="rules and gates",
    ),
    "unhalt": Verb(
        "Go on after a halt.", "git coord unhalt", "sessions.cli_kill:unhalt", "", (JSON,), group="rules and gates"
    ),
    "install-hooks": Verb(
        "Install the hooks that judge commits and pushes.",
        "git coord install-hooks --dry-run",
        "gates.hooks.cli:install_hooks",
        "",
        (_DRY_RUN, JSON),
        life="work",
        quick=False,  # the hooks are installed with the full interpreter
        group="rules and gates",
    ),
    "uninstall-hooks": Verb(
        "Take gitcoord's hooks away; others stay as they were.",
        "git coord uninstall-hooks",
        "gates.hooks.cli:uninstall_hooks",
        "",
        (_DRY_RUN, JSON),
        life="work",
        quick=False,
        group="rules and gates",
    ),
    "gate": Verb(
        "Judge a range of commits as the hooks would: for CI.",
        "git coord gate origin/main..HEAD",
        "gates.cli:gate",
        "BASE..HEAD",
        (
            Option("agent", "text", "Who brings them; the commits' own trailers count too.", label="AGENT"),
            JSON,
        ),
        group="rules and gates",
    ),
}
